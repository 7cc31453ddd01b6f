"""A model that the fault engine pretends to have."""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import sha256

COMPLETION = ("completion", "tools", "thinking", "vision")
SIZE_BYTES = 1_000_000


@dataclass(frozen=True, slots=True)
class FaultModel:
    """name: as a client asks for it. capabilities: in Ollama's words. load_s: how long the first
    request waits for it. vram_bytes: what /api/ps says of it once it is loaded."""

    name: str
    capabilities: tuple[str, ...] = COMPLETION
    load_s: float = 0.0
    size_bytes: int = SIZE_BYTES
    vram_bytes: int = 0
    context: int = 4096

    @property
    def tagged(self) -> str:
        """The name as Ollama lists it."""
        return self.name if ":" in self.name.rpartition("/")[2] else f"{self.name}:latest"

    @property
    def digest(self) -> str:
        """Bare hex, the same for the same name."""
        return sha256(self.tagged.encode()).hexdigest()


def parse_model(text: str, load_s: float = 0.0) -> FaultModel:
    """``name[@capability+capability][=BYTES]``. ValueError."""
    text, _, size = text.partition("=")
    name, _, capabilities = text.partition("@")
    named = tuple(capabilities.split("+")) if capabilities else COMPLETION
    return FaultModel(name, named, load_s, int(size or SIZE_BYTES))
