"""cogrid on a real host that has Python and nothing else, over nothing but SSH."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from importlib import resources
from pathlib import Path

import pytest

from cogrid import __version__
from cogrid.errors import HostError, HostFault
from cogrid.model.host import Scope
from cogrid.ops.delivery import bundle as bundling
from cogrid.ops.delivery.bundle import Bundle
from cogrid.ops.delivery.gather import gather
from cogrid.ops.delivery.pip import Pip
from cogrid.ops.delivery.python import HostPython
from cogrid.ops.delivery.read_python import read_python
from cogrid.ops.delivery.refusal import DeliveryError
from cogrid.ops.delivery.stage import (
    prune,
    read_installed,
    remove,
    stage,
    switch,
)
from cogrid.remote.connection import Connection, connect
from tests.hosts.host import Host, bring_up
from tests.ops.delivery.build import a_bundle
from tests.wait import until

FACTS = resources.files("cogrid.ops.delivery").joinpath("facts.py").read_text()
IP = "192.168.74.41"
BOBS = "/home/bob/.local/share"
PLACES = "/opt/cogrid /home /root /usr/local /var/lib"
"""Where an installation could leave something."""
WAITS = """
import os, time
deadline = time.monotonic() + 30
while not os.path.exists("/tmp/cut") and time.monotonic() < deadline:
    time.sleep(0.02)
"""
"""A module that takes as long to load as the test wants."""


@pytest.fixture(scope="module")
def bare() -> Iterator[Host]:
    """Its Python has neither pip nor any package of ours; ada may sudo, bob may not."""
    with bring_up("bundle", IP) as host:
        host.ssh(
            "rm -rf /usr/lib/python3/dist-packages/pip* /usr/share/python-wheels /usr/bin/pip*"
        )
        for module in ("redis", "pip", "ensurepip._bundled", "click"):
            assert host.ssh(f"python3 -c 'import {module}' 2>&1 || echo absent").endswith("absent")
        host.login("ada", sudo="ALL=(ALL) NOPASSWD: ALL")
        host.login("bob")
        yield host


@pytest.fixture(scope="module")
def python(bare: Host) -> HostPython:
    with log_in(bare) as there:
        return read_python(there)


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory, python: HostPython) -> Callable[..., Bundle]:
    """A package of cogrid's name that does nothing, for all that does not need the real one."""

    def make(version: str, **modules: str) -> Bundle:
        return a_bundle(tmp_path_factory.mktemp("small"), version, python=python, modules=modules)

    return make


def log_in(host: Host, user: str = "root") -> Connection:
    return connect(replace(host.target, user=user), host.access)


def looks(host: Host) -> str:
    """All files there, with owners, modes and sizes."""
    return host.ssh(f"find {PLACES} -printf '%p %u %m %l %s\\n' 2>/dev/null | sort")


def test_from_a_bare_host_to_a_cogrid_that_runs(
    bare: Host, fetched: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[str] = []
    with log_in(bare, "ada") as there:
        python = read_python(there)
        bundle = gather(python, None, fetched)
        assert read_installed(there, Scope.SYSTEM, python).versions == ()
        staged = stage(there, bundle, Scope.SYSTEM, told.append)
        assert staged.fresh
        assert told[0].startswith("sending ")
        assert not bare.ssh("ls /opt/cogrid").count("current"), "it is not yet in use"
        assert switch(there, staged) == ""
        found = read_installed(there, Scope.SYSTEM, python)
        assert (found.version, found.works) == (__version__, f"cogrid, version {__version__}")

        # The same once more: nothing is sent.
        monkeypatch.setattr(bundling, "_tar", lambda _: pytest.fail("it was sent again"))
        again = stage(there, bundle, Scope.SYSTEM)
        assert (again.fresh, again.name) == (False, staged.name)
        assert switch(there, again) == staged.name

        # The same wheels from a directory, without pip and without a network.
        monkeypatch.setattr(Pip, "_run", lambda *_: pytest.fail("pip was run"))
        for wheel in (*bundle.wheels, bundle.pip):
            (tmp_path / wheel.path.name).write_bytes(wheel.path.read_bytes())
        assert gather(python, tmp_path, fetched).name == bundle.name

    assert "async-timeout" in {wheel.name for wheel in bundle.wheels}, "3.11.2 needs it, 3.11.3 not"
    nobody = "runuser -u nobody -- /opt/cogrid/current/bin/cogrid"
    assert bare.ssh(f"{nobody} --version") == f"cogrid, version {__version__}"
    assert "--engine" in bare.ssh(f"{nobody} worker run --help")
    assert (
        bare.ssh("find /opt/cogrid ! -user root -o -type f ! -perm -o=r -o -perm /022 ! -type l")
        == ""
    )
    first_line = bare.ssh("head -1 /opt/cogrid/current/bin/cogrid")
    assert first_line == f"#!/opt/cogrid/versions/{bundle.name}/bin/python", "as it is, it runs on"


def test_a_user_without_rights_has_one_of_their_own(
    bare: Host, small: Callable[..., Bundle]
) -> None:
    with log_in(bare, "bob") as there:
        staged = stage(there, small("0.3.0"), Scope.USER)
        assert switch(there, staged) == ""
        program = f"{staged.base}/current/bin/cogrid"
        assert bare.ssh(f"{program} --version", user="bob") == "cogrid, version 0.3.0"
        assert bare.ssh("find /home/bob/.local ! -user bob") == ""
        assert remove(there, Scope.USER, staged.python).removed == (staged.name,)
    assert bare.ssh(f"ls -A {BOBS}") == ""


def test_a_new_version_and_back_again(bare: Host, small: Callable[..., Bundle]) -> None:
    with log_in(bare, "bob") as there:
        names: list[str] = []
        pythons = small("0.4.0").python
        for version in ("0.4.0", "0.4.1", "0.4.2"):
            staged = stage(there, small(version), Scope.USER)
            assert switch(there, staged) == (names[-1] if names else "")
            names.append(staged.name)
        assert read_installed(there, Scope.USER, pythons).current == names[2]
        assert prune(there, Scope.USER, pythons) == (names[0],)
        installed = read_installed(there, Scope.USER, pythons)
        assert {each.name for each in installed.versions} == set(names[1:])
        assert set(remove(there, Scope.USER, pythons).removed) == set(names[1:])
    assert bare.ssh(f"ls -A {BOBS}") == ""


def test_who_may_not_is_told(bare: Host, small: Callable[..., Bundle]) -> None:
    before = looks(bare)
    with log_in(bare, "bob") as there, pytest.raises(HostError) as caught:
        stage(there, small("0.5.0"), Scope.SYSTEM)
    assert caught.value.kind == HostFault.SUDO
    assert looks(bare) == before


@pytest.mark.parametrize(
    ("options", "kind", "what"),
    [
        ("noexec", "noexec", "mounted noexec"),
        ("size=1m", "space", "MiB that it takes"),
        ("ro", "readonly", "Read-only file system"),
    ],
)
def test_a_place_that_will_not_do(
    bare: Host, small: Callable[..., Bundle], options: str, kind: str, what: str
) -> None:
    bare.ssh(f"mkdir -p {BOBS} && mount -t tmpfs -o mode=777,{options} x {BOBS}")
    try:
        before = looks(bare)
        bundle = small("0.6.0")
        if kind == "space":
            bundle = replace(
                bundle, wheels=tuple(replace(w, unpacked_bytes=1 << 30) for w in bundle.wheels)
            )
        with log_in(bare, "bob") as there, pytest.raises(DeliveryError) as caught:
            stage(there, bundle, Scope.USER)
        assert (caught.value.kind, caught.value.exit_code) == (kind, 5)
        assert what in caught.value.message
        assert looks(bare) == before
    finally:
        bare.ssh(f"umount {BOBS} && rm -r /home/bob/.local")


def test_a_disk_that_fills_up_on_the_way(
    bare: Host, small: Callable[..., Bundle], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bundling, "BYTECODE", 0.0)
    bundle = small("0.7.0")
    size = bundle.packed_bytes + 16384
    bare.ssh(f"mkdir -p /opt/cogrid && mount -t tmpfs -o mode=755,size={size} x /opt/cogrid")
    try:
        before = looks(bare)
        with log_in(bare) as there, pytest.raises(DeliveryError) as caught:
            stage(there, bundle, Scope.SYSTEM)
        assert caught.value.kind == "space"
        assert looks(bare) == before
    finally:
        bare.ssh("umount /opt/cogrid")


def test_a_python_that_is_too_old_is_refused_before_anything_is_touched(bare: Host) -> None:
    says = bare.ssh("python3 -E -s - <<'END'\n" + FACTS + "\nEND").replace(
        "[3, 11, 2]", "[3, 9, 2]"
    )
    assert "[3, 9, 2]" in says
    before = looks(bare)
    bare.ssh("mkdir /run/old && mv /usr/bin/python3* /run/old/")
    try:
        bare.write(
            "/usr/bin/python3.9",
            f"#!/bin/sh\necho '{says.replace('python3.11', 'python3.9')}'\n",
            0o755,
        )
        with log_in(bare) as there, pytest.raises(DeliveryError) as caught:
            read_python(there)
    finally:
        bare.ssh("rm /usr/bin/python3.9 && mv /run/old/* /usr/bin/ && rmdir /run/old")
    assert caught.value.message == (
        f"root@{IP}: no Python that cogrid can use: /usr/bin/python3.9 is 3.9.2, cogrid needs 3.11"
    )
    assert looks(bare) == before


def test_whoever_gives_up_on_the_way_leaves_nothing(
    bare: Host, small: Callable[..., Bundle]
) -> None:
    """As Ctrl-C does, and a connection that ends: in the middle of each part."""
    before = looks(bare)
    bundle = small("0.8.0")
    for part in ("receiving", "installing"):

        def give_up(line: str, part: str = part) -> None:
            if line.startswith(part):
                raise KeyboardInterrupt

        with log_in(bare) as there, pytest.raises(KeyboardInterrupt):
            stage(there, bundle, Scope.SYSTEM, give_up)
        until(lambda: looks(bare) == before, what=f"nothing is left of {part}")


def test_a_connection_that_is_cut_leaves_nothing(bare: Host, small: Callable[..., Bundle]) -> None:
    """Nobody is there to undo anything: what works on the host finds out and clears up."""
    before = looks(bare)
    bundle = small("0.9.0", waits=WAITS)

    def cut(line: str) -> None:
        if line.startswith("proving"):
            bare.ssh("pkill -KILL -u ada sshd && touch /tmp/cut")

    with log_in(bare, "ada") as there, pytest.raises(HostError) as caught:
        stage(there, bundle, Scope.USER, cut)
    assert caught.value.kind == HostFault.LOST
    until(lambda: looks(bare) == before, what="it clears up")
    with log_in(bare, "ada") as there:
        staged = stage(there, bundle, Scope.USER)
        assert staged.fresh
        assert remove(there, Scope.USER, staged.python).removed == (staged.name,)
