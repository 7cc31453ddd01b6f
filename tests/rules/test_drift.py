"""Models that have one name and are not the same everywhere."""

from __future__ import annotations

from cogrid.model.worker import OfferState
from cogrid.rules.drift import drift
from tests.build import a_snapshot, a_worker, an_offer


def test_different_digests_under_one_name() -> None:
    snapshot = a_snapshot(
        a_worker("a", an_offer("m", digest="1" * 64), an_offer("n", digest="x")),
        a_worker("b", an_offer("m", digest="2" * 64), an_offer("n", digest="x"), engine="ollama"),
        a_worker("c", an_offer("m", digest="1" * 64), an_offer("n", digest="")),
        a_worker("d", an_offer("n", digest="y", state=OfferState.MISSING)),
    )
    (found,) = drift(snapshot)
    assert (found.kind, found.subject, found.at_risk) == ("drift", "m", ("b",))
    assert found.evidence == "111111111111 on a, c; 222222222222 on b"
    assert found.what == "m is not the same on every worker; pull it again on b"
    assert found.mend == "cogrid model pull m --worker b"
