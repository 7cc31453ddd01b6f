"""Many hosts are freed at once: at which step each that was not done stands."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import pytest

from cogrid.errors import HostError, HostFault
from cogrid.model.host import Host
from cogrid.ops.install import uninstall
from cogrid.ops.install.removal import Removal
from cogrid.remote.access import Access
from cogrid.store.client import Store
from tests.ops.install.build import an_order, some_settings


@pytest.mark.parametrize(
    ("kind", "step"), [(HostFault.STOPPED, None), (HostFault.TIMEOUT, "connect")]
)
def test_a_host_that_the_time_stopped_did_not_fail_to_connect(
    monkeypatch: pytest.MonkeyPatch, kind: HostFault, step: str | None
) -> None:
    def ask_all(targets: tuple[Any, ...], *_: Any) -> tuple[HostError, ...]:
        return tuple(HostError("no answer", host=target.name, kind=kind) for target in targets)

    monkeypatch.setattr(uninstall, "ask_all", ask_all)
    removal = Removal(
        Host("esxi"), "esxi", "cogrid-worker@esxi.service", steps=("stop it",),
        settings=some_settings(),
    )  # fmt: skip
    no_store = cast(Callable[[], Store], None)
    done = uninstall.uninstall((removal,), an_order(), Access(), no_store, lambda *_: None)
    assert [(host.state, host.step, host.error) for host in done.hosts] == [
        ("failed", step, "no answer")
    ]
