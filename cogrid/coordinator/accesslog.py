"""One line a request: what it asked for, where it ran, how long that took, how it ended."""

from __future__ import annotations

import logging
import time
from dataclasses import dataclass, field

from cogrid.coordinator.shown import shown

log = logging.getLogger(__name__)


@dataclass(slots=True)
class Line:
    """Filled in while a request is answered. Times are of the monotonic clock, 0: not yet.
    outcome: done, left (the client went), or the code of an error."""

    method: str
    path: str
    began_at: float = field(default_factory=time.monotonic)
    first_at: float = 0.0
    status: int = 0
    task: str = ""
    model: str = ""
    queue: str = ""
    worker: str = ""
    user: str = ""
    outcome: str = "done"
    prompt_tokens: int = 0
    completion_tokens: int = 0

    def seconds(self) -> float:
        """Since the request came."""
        return time.monotonic() - self.began_at

    def write(self) -> None:
        """Log it."""
        if not log.isEnabledFor(logging.INFO):
            return
        said = [f"{self.method} {shown(self.path)} {self.status or '-'} {self.outcome}"]
        if self.task:
            said.append(f"task={self.task}")
        for name in ("model", "queue", "worker", "user"):
            value = getattr(self, name)
            if value:
                said.append(f"{name}={shown(value, 300)}")
        if self.first_at:
            said.append(f"first={self.first_at - self.began_at:.3f}s")
        if self.completion_tokens or self.prompt_tokens:
            said.append(f"tokens={self.prompt_tokens}+{self.completion_tokens}")
        said.append(f"total={self.seconds():.3f}s")
        log.info(" ".join(said))
