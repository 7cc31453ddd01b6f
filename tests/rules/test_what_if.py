"""What would be lost without a worker, a host or a pool."""

from __future__ import annotations

from cogrid.model.limits import Limits
from cogrid.model.names import DEMO_MODEL, WorkerId
from cogrid.model.snapshot import Snapshot
from cogrid.rules.what_if import Loss, going, loss, losses, without
from tests.build import a_queue, a_snapshot, a_task, a_worker

LIMITS = Limits()


def fleet(**fields: object) -> Snapshot:
    return a_snapshot(
        a_worker("esxi", "gemma3:1b", "llama3.2:1b", host="h1"),
        a_worker("mini", "llama3.2:1b", host="h1"),
        a_worker("ai-core", "llama3.2:1b", "llama3.2:3b", host="h2", pool="gpu"),
        **fields,
    )


def test_a_worker_that_alone_has_a_model() -> None:
    queues = (
        a_queue("tasks:cpu:shared:gemma3:1b", 2),
        a_queue("tasks:cpu:mini", 1),
    )
    own = (a_task("aa", queue="tasks:cpu:mini"),)
    (found,) = loss(fleet(queues=queues, tasks=own), ("esxi",), (), LIMITS)
    assert (found.kind, found.subject) == ("lost_model", "gemma3:1b")
    assert found.what == (
        "without esxi, no worker could serve gemma3:1b; add a worker on another machine that has it"
    )
    assert found.evidence == "3 tasks queued for it now, which would wait for nothing"


def test_a_host_takes_its_workers_along() -> None:
    found = loss(fleet(), (), ("h1",), LIMITS)
    assert [(each.kind, each.subject) for each in found] == [
        ("lost_model", "gemma3:1b"),
        ("left_with_one", "llama3.2:1b"),
    ]
    assert found[1].what == (
        "without esxi, mini, only ai-core could serve llama3.2:1b; add a worker on another machine "
        "that has it"
    )
    assert [each.mend for each in found] == ["", ""]


def test_the_mend_is_a_pull_on_those_that_would_be_left() -> None:
    snapshot = a_snapshot(
        a_worker("esxi", "gemma3:1b", "llama3.2:1b", engine="ollama"),
        a_worker("ai-core", "llama3.2:1b", engine="ollama"),
        a_worker("twin", "llama3.2:3b", engine="ollama", host="ai-core"),
        a_worker("other", "llama3.2:3b", engine="openai"),
        a_worker("nas", "llama3.2:3b", engine="ollama"),
    )
    found = loss(snapshot, ("esxi",), (), LIMITS)
    assert {each.subject: each.mend for each in found} == {
        "gemma3:1b": "cogrid model pull gemma3:1b --worker ai-core --worker nas",
        "llama3.2:1b": "cogrid model pull llama3.2:1b --worker nas",
    }


def test_the_built_in_model_is_not_pulled() -> None:
    spare = a_worker("nas", engine="ollama 0.9.3")
    grid = a_snapshot(a_worker("demo-1", DEMO_MODEL, engine="demo 0.1.0"), spare)
    (found,) = loss(grid, ("demo-1",), (), LIMITS)
    assert found.what.endswith(
        "it is built in: run `cogrid worker run --engine demo` on another machine"
    )
    assert found.mend == ""


def test_what_was_single_before_is_not_its_fault() -> None:
    assert loss(fleet(), ("mini",), (), LIMITS) == ()


def test_a_worker_that_does_not_say_its_host_is_one_of_its_own() -> None:
    snapshot = a_snapshot(a_worker("esxi", host=""), a_worker("ai-core", host="h2"))
    assert [each.id for each in going(snapshot, (), ("esxi",))] == ["esxi"]
    assert [each.id for each in without(snapshot, ("ai-core",), ()).workers] == ["esxi"]


def test_hosts_and_pools_whose_loss_takes_models() -> None:
    two, one = (WorkerId("esxi"), WorkerId("mini")), (WorkerId("ai-core"),)
    assert losses(fleet(), LIMITS) == (
        Loss("host", "h1", two, ("gemma3:1b",)),
        Loss("host", "h2", one, ("llama3.2:3b",)),
        Loss("pool", "cpu", two, ("gemma3:1b",)),
        Loss("pool", "gpu", one, ("llama3.2:3b",)),
    )
