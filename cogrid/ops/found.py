"""What somebody named on a command line: the task, the worker or the model that it means, or an
error with the names that are near."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

from cogrid.errors import NotFoundError, UsageError
from cogrid.model.names import TASK_ID, TaskId, normal_model
from cogrid.model.snapshot import Snapshot
from cogrid.model.worker import Worker
from cogrid.rules.homes import all_models
from cogrid.store.client import Store
from cogrid.store.follow import find_tasks
from cogrid.store.gaps import LISTS, Part

NEAR = 3
"""So many names are suggested."""
SHOWN = 5
"""So many tasks are named where a prefix fits more than one."""


def the_task(store: Store, prefix: str) -> TaskId:
    """The one task whose id begins so, open, ended or dead. NotFoundError where there is none or
    more than one, UsageError for what is no id."""
    if not TASK_ID.fullmatch(prefix):
        raise UsageError(f"{prefix!r} is no task's id", "an id is of letters and digits")
    found = store.read(find_tasks(store.keys, prefix, SHOWN + 1))
    if not found:
        store.demand((Part.TASKS, *LISTS))
        raise NotFoundError(
            f"there is no task {prefix}",
            "it ended longer ago than tasks are kept, or never was; cogrid task list shows those "
            "that are open",
        )
    if len(found) > 1:
        more = " and more" if len(found) > SHOWN else ""
        raise NotFoundError(
            f"more than one task begins with {prefix}: {', '.join(found[:SHOWN])}{more}",
            "write more of its id",
        )
    return found[0]


def the_worker(snapshot: Snapshot, name: str) -> Worker:
    """The worker of that name. NotFoundError with the names that are near."""
    worker = snapshot.worker(name)
    if worker is None:
        near = _near(name, (each.id for each in snapshot.workers))
        raise NotFoundError(f"there is no worker {name!r}", near or "cogrid worker list shows all")
    return worker


def the_model(snapshot: Snapshot, name: str) -> str:
    """The model's normal name. NotFoundError where the grid does not know it."""
    model = normal_model(name)
    known = {*all_models(snapshot), *(queue.model for queue in snapshot.queues if queue.model)}
    if model not in known:
        near = _near(model, known)
        raise NotFoundError(
            f"model {model!r} is not known to this grid", near or "cogrid model list shows all"
        )
    return model


def _near(name: str, known: Iterable[str]) -> str:
    """The hint with the names that are near, "" where none is."""
    by_lower = {each.lower(): each for each in sorted(known)}
    near = get_close_matches(name.lower(), by_lower, n=NEAR)
    near += [each for each in by_lower if name and each.startswith(name.lower())][:NEAR]
    names = dict.fromkeys(by_lower[each] for each in near)
    return f"did you mean {' or '.join(names)}?" if names else ""
