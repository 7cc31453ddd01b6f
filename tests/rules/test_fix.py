"""The pulls that make every model served from two hosts."""

from __future__ import annotations

from typing import Any

from cogrid.model.limits import Limits
from cogrid.model.names import DEMO_MODEL
from cogrid.model.snapshot import Snapshot
from cogrid.rules.fix import DISK_SPARE_BYTES, Fix, Pull, fix
from tests.build import a_snapshot, a_worker, an_offer

LIMITS = Limits()
GB = 1_000_000_000


def an_ollama(name: str, *models: Any, disk_gb: float | None = None, **fields: Any) -> Any:
    report = {} if disk_gb is None else {"disk_free_bytes": int(disk_gb * GB) + DISK_SPARE_BYTES}
    return a_worker(name, *models, engine="ollama 0.9.3", report=report, **fields)


def fixed(*workers: Any, model: str | None = None) -> Fix:
    snapshot: Snapshot = a_snapshot(*workers)
    return fix(snapshot, LIMITS, model)


def where(found: Fix) -> list[tuple[str, str]]:
    return sorted((pull.model, pull.host) for pull in found.pulls)


def test_two_hosts_need_nothing() -> None:
    assert fixed(an_ollama("esxi"), an_ollama("ai-core")) == Fix((), (), True, 1)


def test_an_empty_grid_says_that_there_was_none_to_look_at() -> None:
    assert fixed() == Fix((), (), True, 0)


def test_the_incident_needs_one_pull() -> None:
    found = fixed(an_ollama("esxi", an_offer(size_bytes=5)), an_ollama("ai-core", "gemma3:1b", "x"))
    assert found == Fix((Pull("x", "esxi", "esxi", 0),), (), True, 2)  # type: ignore[arg-type]


def test_the_built_in_model_is_not_pulled() -> None:
    demo = a_worker("demo-1", DEMO_MODEL, engine="demo 0.1.0")
    found = fixed(demo, an_ollama("esxi"), an_ollama("ai-core"))
    assert found.pulls == ()
    (left,) = found.unfixed
    assert left.model == DEMO_MODEL
    assert "`cogrid worker run --engine demo` on another machine" in left.why


def test_two_workers_of_one_host_are_one() -> None:
    found = fixed(
        an_ollama("a", host="box"), an_ollama("b", host="box"), an_ollama("c", "y", host="nas")
    )
    assert where(found) == [("gemma3:1b", "nas"), ("y", "box")]


def test_pulls_are_spread() -> None:
    found = fixed(an_ollama("a", "m1", "m2"), an_ollama("b", "z"), an_ollama("c", "z"))
    assert {host for _, host in where(found)} == {"b", "c"}


def test_pulls_are_spread_even_where_the_first_choices_crowd() -> None:
    """Each host lacks two of three models. The emptiest disk would get two of the pulls."""
    found = fixed(
        an_ollama("a", "m1", disk_gb=10), an_ollama("b", "m2", disk_gb=30),
        an_ollama("c", "m3", disk_gb=20),
    )  # fmt: skip
    assert sorted(host for _, host in where(found)) == ["a", "b", "c"]


def test_disks_are_filled_as_far_as_they_go() -> None:
    models = [an_offer("big", size_bytes=6 * GB), an_offer("mid", size_bytes=5 * GB)]
    found = fixed(
        an_ollama("a", *models), an_ollama("b", "z", disk_gb=5.5), an_ollama("c", "z", disk_gb=6.5)
    )
    assert where(found) == [("big", "c"), ("mid", "b")]
    assert found.unfixed == ()
    found = fixed(an_ollama("a", *models), an_ollama("b", "z", disk_gb=5.5), an_ollama("c", "z"))
    assert where(found) == [("big", "c"), ("mid", "b")] or len(found.pulls) == 2
    found = fixed(
        an_ollama("a", *models), an_ollama("b", "z", disk_gb=7), an_ollama("c", "z", disk_gb=1)
    )
    assert [each.why for each in found.unfixed] == ["the other models leave no room for it"]
    assert len(found.pulls) == 1


def test_a_choice_that_seems_best_may_have_to_give_way() -> None:
    """The larger model fits on both hosts, the smaller on one only: by room alone it would be
    crowded out."""
    large = an_offer("large", size_bytes=6 * GB)
    small = an_offer("small", size_bytes=5 * GB)
    found = fixed(
        an_ollama("a", large, disk_gb=0), an_ollama("b", small, disk_gb=6),
        an_ollama("c", "z", disk_gb=6.5),
        an_ollama("d", "z", disk_gb=0),
    )  # fmt: skip
    assert found.unfixed == ()
    assert where(found) == [("large", "b"), ("small", "c")]


def test_who_cannot_pull_is_not_asked() -> None:
    found = fixed(
        an_ollama("esxi"),
        a_worker("cpp", "y", engine="openai b5000"),
        an_ollama("small", "z", disk_gb=0),
        model="gemma3:1b",
    )
    assert where(found) == [("gemma3:1b", "small")]
    offer = an_offer(size_bytes=GB)
    found = fixed(an_ollama("esxi", offer), an_ollama("nas", "z", disk_gb=0.5), model="gemma3:1b")
    assert found.pulls == ()
    assert found.unfixed[0].why == (
        "1 more host with Ollama and room for it is needed, there is none"
    )


def test_many_models_are_placed_one_after_another_and_it_says_so() -> None:
    models = [f"m{n}" for n in range(21)]
    found = fixed(an_ollama("a", *models), an_ollama("b", "m0"))
    assert (len(found.pulls), found.exact) == (20, True)
    found = fixed(an_ollama("a", *models, "m99"), an_ollama("b", "m99"))
    assert (len(found.pulls), found.exact) == (21, False)
