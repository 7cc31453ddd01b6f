"""The line above an answer: what it says of a task that is on its way to another worker."""

from __future__ import annotations

import pytest

from cogrid.coordinator.status_line import StatusLine
from cogrid.model.chat import Moved

SHARED = "tasks:cpu:shared:gemma3:1b"


@pytest.mark.parametrize(
    ("candidates", "to"),
    [
        (("ai-core", "esxi"), "ai-core"),
        (("esxi",), "another worker"),
        ((), "another worker"),
    ],
)
def test_a_task_is_not_said_to_go_where_it_was_taken_from(
    candidates: tuple[str, ...], to: str
) -> None:
    """Although the coordinator may not have seen yet what is wrong with that worker."""
    line = StatusLine("general", "gemma3:1b", "tasks:cpu:esxi", ("esxi",))
    assert line.waiting(1).endswith("worker esxi · queue tasks:cpu:esxi · ⏳ waiting, position 1")
    assert line.left(Moved("esxi", "ghost_pending", SHARED), candidates) == (
        f"domain general · model gemma3:1b · worker {to} · queue {SHARED} · "
        f"moved from esxi (ghost_pending) to {to}"
    )


@pytest.mark.parametrize(("queue", "who"), [(SHARED, "-"), ("tasks:cpu:esxi", "esxi")])
def test_where_nobody_can_take_it_yet_the_worker_has_no_empty_name(queue: str, who: str) -> None:
    line = StatusLine("general", "gemma3:1b", queue, ())
    assert line.waiting(2) == (
        f"domain general · model gemma3:1b · worker {who} · queue {queue} · ⏳ waiting, position 2"
    )
    assert line.running("nas", SHARED).endswith(f"worker nas · queue {SHARED} · running on nas")


def test_the_owner_of_a_queue_may_have_it_again() -> None:
    line = StatusLine("general", "gemma3:1b", "tasks:cpu:esxi", ("esxi",))
    line.left(Moved("esxi", "ghost_pending", SHARED), ())
    assert line.running("esxi", "tasks:cpu:esxi").endswith(" · running on esxi")
