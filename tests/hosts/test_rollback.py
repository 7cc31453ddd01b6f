"""A real host goes back to the cogrid that it ran before."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from tests.hosts.installing import Site
from tests.wait import until

pytestmark = pytest.mark.timeout(300)
"""The first one waits for a real installation, which takes a minute on a busy machine."""
BASE = "/opt/cogrid"


@pytest.fixture
def upgraded(site: Site) -> Iterator[str]:
    """As after --upgrade: the version before lies beside the one that runs. Its name."""
    now = site.host.ssh(f"readlink {BASE}/current").rpartition("/")[2]
    before = "0.0.9-before"
    # It cannot be moved, but its copy runs: by the programs of the other one.
    site.host.ssh(
        f"cp -a {BASE}/versions/{now} {BASE}/versions/{before} &&"
        f" touch -d '1 hour ago' {BASE}/versions/{before}/cogrid-bundle.json"
    )
    yield before
    site.host.ssh(f"ln -sfn versions/{now} {BASE}/current && rm -rf {BASE}/versions/{before}")


def test_it_goes_back_once_and_polls(site: Site, upgraded: str) -> None:
    words = ("install-unit", "--id", "esxi", "--rollback", "--yes", "--json")
    process, worker = site.unit(), site.worker()
    assert worker

    shown = json.loads(site.cli(*words, "--dry-run").stdout)["hosts"][0]
    assert shown["steps"][0].startswith(f"use cogrid {upgraded} again (was ")
    assert site.unit() == process
    done = site.cli(*words)
    assert done.returncode == 0, done.stderr
    (host,) = json.loads(done.stdout)["hosts"]
    assert (host["state"], host["steps"]) == ("rolled back", shown["steps"])
    assert site.host.ssh(f"readlink {BASE}/current") == f"versions/{upgraded}"
    assert site.unit() != process
    after = site.worker()
    assert after
    assert (after.instance != worker.instance, after.polled_at_ms > worker.polled_at_ms) == (
        True, True,
    )  # fmt: skip
    assert site.host.ssh("ls -A /var/lib/cogrid-install 2>/dev/null || echo gone") == "gone"

    process = site.unit()
    again = site.cli(*words)
    assert again.returncode == 5
    (host,) = json.loads(again.stdout)["hosts"]
    assert host["state"] == "refused"
    assert host["objections"][0]["what"] == f"there is no cogrid to go back to from {upgraded}"
    assert site.unit() == process


def test_where_the_one_before_does_not_start_the_host_is_as_it_was(
    site: Site, upgraded: str
) -> None:
    now = site.host.ssh(f"readlink {BASE}/current")
    site.host.ssh(f"rm {BASE}/versions/{upgraded}/bin/cogrid")
    done = site.cli("install-unit", "--id", "esxi", "--rollback", "--yes", "--json")
    assert done.returncode == 5
    (host,) = json.loads(done.stdout)["hosts"]
    assert (host["state"], host["step"]) == ("failed", "active")
    assert "the host is as it was" in host["error"]
    assert site.host.ssh(f"readlink {BASE}/current") == now
    until(lambda: site.unit("ActiveState") == "active", 30, "the worker of before")
