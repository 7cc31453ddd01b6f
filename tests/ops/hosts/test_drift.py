"""What differs between hosts."""

from __future__ import annotations

from cogrid.model.finding import Finding
from cogrid.model.host import Host
from cogrid.model.names import WorkerId
from cogrid.model.snapshot import Snapshot
from cogrid.model.worker import Offer, Worker
from cogrid.ops.hosts.drift import differences
from cogrid.ops.sanity.facts import HostFacts
from cogrid.ops.sanity.parse import parse_look
from cogrid.ops.unit.render import render
from cogrid.ops.unit.settings import UnitSettings
from tests.ops.sanity.saying import MARK, a_host, a_unit

HERE = "0.1.0"


def a_machine(name: str, version: str = HERE, more: str = "", **settings: object) -> HostFacts:
    """With one worker of that name."""
    made = UnitSettings(id=name, **settings)  # type: ignore[arg-type]
    argv = ["/opt/cogrid/current/bin/cogrid", "worker", "run", "--id", name]
    text = render(made).unit_text + more
    unit = a_unit(name=made.unit_name, text=text, argv=argv, version=version)
    return parse_look(a_host(unit), MARK)


def a_worker(name: str, engine: str, digest: str = "d1") -> Worker:
    offers = (Offer("gemma3:1b", digest=digest),)
    return Worker(WorkerId(name), True, 1, engine=engine, offers=offers)


def found(machines: dict[str, HostFacts], *workers: Worker) -> tuple[Finding, ...]:
    seen = {Host(address): facts for address, facts in machines.items()}
    return differences(seen, Snapshot(0, workers), HERE)


def test_machines_that_are_alike_do_not_drift() -> None:
    """Ids, users and what else was chosen may differ."""
    machines = {"a": a_machine("a"), "b": a_machine("b", user="bob", models=("x:1b",))}
    assert found(machines, a_worker("a", "ollama 0.9.3"), a_worker("b", "ollama 0.9.3")) == ()


def test_versions_of_cogrid() -> None:
    machines = {"a": a_machine("a"), "b": a_machine("b", "0.0.9"), "c": a_machine("c", "0.0.8")}
    (one,) = found(machines)
    assert (one.kind, one.at_risk) == ("drift_cogrid", ("b", "c"))
    assert one.evidence == "0.1.0 here; 0.0.8 on c; 0.0.9 on b; 0.1.0 on a"
    assert one.mend == "cogrid install-unit --upgrade --host b --host c"


def test_versions_of_engines_of_one_kind() -> None:
    workers = [a_worker(name, "ollama 0.9.3") for name in "ab"]
    (one,) = found({}, *workers, a_worker("c", "ollama 0.9.1"), a_worker("d", "openai 1"))
    assert (one.kind, one.subject, one.at_risk) == ("drift_engine", "ollama", ("c",))
    assert one.evidence == "0.9.3 on a, b; 0.9.1 on c"


def test_models_by_their_digest() -> None:
    (one,) = found({}, a_worker("a", "x"), a_worker("b", "x"), a_worker("c", "x", "d2"))
    assert (one.kind, one.subject, one.at_risk) == ("drift", "gemma3:1b", ("c",))


def test_the_text_of_units_of_one_role() -> None:
    machines = {name: a_machine(name) for name in "ab"}
    machines["c"] = a_machine("c", more="LimitNOFILE=10\n")
    (one,) = found(machines)
    assert (one.kind, one.subject) == ("drift_unit", "cogrid-worker@c.service on c")
    assert one.evidence == "+LimitNOFILE=10"
    assert one.mend == "cogrid install-unit --id c --dry-run --host c"


def test_comments_and_the_first_line_are_no_difference() -> None:
    assert found({"a": a_machine("a"), "b": a_machine("b", more="# mine\n\n")}) == ()
