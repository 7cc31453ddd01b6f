"""A real host becomes a worker by one command, and that worker runs on whatever goes wrong."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from cogrid.engine.demo import MODEL
from cogrid.model.chat import Dialect, Request, encode_request
from cogrid.model.names import TaskId, shared_queue
from cogrid.model.task import Kind, OnClose, State
from cogrid.ops.install.plan import Act
from cogrid.store.task_hashes import read_tasks
from cogrid.store.tasks import Submission, submit
from tests.hosts.installing import (
    ENVIRONMENT,
    HERE,
    PASSWORD,
    SCALE,
    UNIT,
    First,
    Site,
    a_job,
    as_user,
    cut_after,
    old_runs,
    old_workers,
    without_processes,
)
from tests.servers import free_port
from tests.wait import until

pytestmark = pytest.mark.timeout(300)
"""The first one waits for a real installation, which takes a minute on a busy machine."""


def test_a_bare_host_polls_after_one_command(first: First) -> None:
    site, done = first.site, first.done
    assert done.returncode == 0, done.stderr
    (host,) = json.loads(done.stdout)["hosts"]
    assert (host["unit"], host["state"], host["error"]) == (UNIT, "installed", None)
    assert first.took_s < 90
    worker = site.worker()
    assert worker
    assert worker.polled_at_ms > 0
    assert site.unit("ActiveState") == "active"
    assert site.unit("UnitFileState") == "enabled"
    assert site.host.ssh(f"stat -c '%a %U' {ENVIRONMENT}") == "600 root"
    # Only its own environment has what it needs.
    assert "No module" in site.host.ssh("python3 -c 'import redis' 2>&1 || :")
    assert PASSWORD not in done.stdout + done.stderr


def test_the_same_again_changes_and_restarts_nothing(site: Site) -> None:
    before, process = site.fingerprint(), site.unit()
    done = site.cli("install-unit", "--id", "esxi", "--engine", "demo", "--yes", "--json")
    assert done.returncode == 0, done.stderr
    (host,) = json.loads(done.stdout)["hosts"]
    assert (host["state"], host["steps"], host["diff"]) == ("nothing to do", [], [])
    assert (site.unit(), site.fingerprint()) == (process, before)


def test_changed_settings_restart_once_and_what_runs_is_finished_first(site: Site) -> None:
    task = _long_task(site)
    (host,) = site.install(slots=2).hosts
    assert host.state == "installed", host
    assert "drain esxi, which runs 1 task" in host.steps
    assert _state(site, task) is State.DONE
    worker = site.worker()
    assert worker
    assert (worker.slots, worker.wish.state) == (2, "run")
    starts = site.host.ssh(f"journalctl -q -o cat -u {UNIT} | grep -c '^Started'")
    assert site.install(slots=2).hosts[0].state == "nothing to do"
    assert site.host.ssh(f"journalctl -q -o cat -u {UNIT} | grep -c '^Started'") == starts


def test_drop_ins_stay_and_what_was_edited_is_shown_and_kept(site: Site) -> None:
    host, path = site.host, f"/etc/systemd/system/{UNIT}"
    host.ssh(f"mkdir {path}.d")
    host.write(f"{path}.d/gpu.conf", "[Service]\nEnvironment=CUDA_VISIBLE_DEVICES=1\n")
    text = (host.root / path[1:]).read_text()
    host.write(path, text.replace("RestartSec=10", "RestartSec=3"))
    host.ssh("systemctl daemon-reload")
    before = site.fingerprint()
    done = site.cli("install-unit", "--id", "esxi", "--engine", "demo", "--slots", "2", "--yes")
    assert done.returncode == 5
    assert "-RestartSec=3" in done.stdout
    assert f"{path} was edited by hand" in done.stdout
    assert site.fingerprint() == before
    (result,) = site.install(slots=2, force=True).hosts
    assert result.state == "installed", result
    assert "RestartSec=10" in (host.root / path[1:]).read_text()
    environ = host.ssh(f"tr '\\0' '\\n' </proc/{site.unit()}/environ")
    assert "CUDA_VISIBLE_DEVICES=1" in environ
    assert f"stays as it is: {path}.d/gpu.conf" in result.notes
    host.ssh(f"rm -r {path}.d && systemctl daemon-reload")


CHANGE_STEPS = [
    Act.UNIT, Act.DRAIN, Act.REPLACE, Act.FREEZE, Act.START, Act.ACTIVE, Act.POLLED,
]  # fmt: skip


def test_wherever_the_connection_breaks_the_old_worker_runs_on(site: Site) -> None:
    """Every step of a change, each cut after it. Before the start its process stays the same."""
    with old_workers(site):
        job = a_job(site, site.order(replace=True), slots=3)
        assert [step.act for step in job.plan.steps] == [*CHANGE_STEPS, Act.END]
        before = without_processes(site.fingerprint())
        for number, act in enumerate(CHANGE_STEPS, start=1):
            process = site.unit()
            cut_after(site, job, number)
            until(lambda: site.unit("ActiveState") == "active" and old_runs(site.host), 30)
            assert (site.unit() != process) is (number > CHANGE_STEPS.index(Act.START))
            assert without_processes(site.fingerprint()) == before, act
            _no_wish_left(site)


def test_ctrl_c_takes_back_what_was_begun(site: Site) -> None:
    before = without_processes(site.fingerprint())
    words = site.words("install-unit", "--id", "esxi", "--engine", "demo", "--slots", "4", "--yes")
    with subprocess.Popen(
        words, env={**os.environ, **site.cache, **site.env}, stderr=subprocess.PIPE, text=True,
        stdout=subprocess.DEVNULL,
    ) as process:  # fmt: skip
        lines = process.stderr
        assert lines
        until(lambda: next(lines).startswith(f"{site.host.ip}: restart {UNIT}"), 60)
        process.send_signal(signal.SIGINT)
        said = lines.read()
        assert process.wait(60) == 130
    assert f"{site.host.ip}: interrupted; what was begun is taken back" in said
    until(lambda: site.unit("ActiveState") == "active", 30)
    assert without_processes(site.fingerprint()) == before
    _no_wish_left(site)


def test_a_worker_that_does_not_start_is_taken_back_with_its_last_words(site: Site) -> None:
    """What keeps it from starting is found by no check before."""
    before = without_processes(site.fingerprint())
    place = f"/run/systemd/system/{UNIT}.d"
    line = "ExecStartPre=/bin/sh -c 'echo no luck today; exit 3'"
    site.host.ssh(f"mkdir {place}; cat >{place}/x.conf <<'END'\n[Service]\n{line}\nEND")
    site.host.ssh("systemctl daemon-reload")
    (host,) = site.install(slots=2).hosts
    site.host.ssh(f"rm -r {place}; systemctl daemon-reload; systemctl restart {UNIT}")
    assert (host.state, host.step) == ("failed", "active")
    assert host.error
    assert "it was taken back: the host is as it was" in host.error
    assert "no luck today" in host.journal
    assert without_processes(site.fingerprint()) == before


def test_the_line_that_cogrid_up_prints_makes_this_host_its_worker(
    site: Site, tmp_path: Path
) -> None:
    """Without a password in it, and without any other setting than where cogrid up runs."""
    env = {
        **{name: value for name, value in os.environ.items() if not name.startswith("COGRID_")},
        "XDG_STATE_HOME": str(tmp_path),
        "COGRID_TIME_SCALE": SCALE,
        "COGRID_COORDINATOR_LISTEN": f"{HERE}:{free_port()}",
        "XDG_CACHE_HOME": site.cache["XDG_CACHE_HOME"],
    }
    words = [sys.executable, "-m", "cogrid.cli.main", "up", "--listen", f"{HERE}:{free_port()}"]
    with subprocess.Popen(
        words, env=env, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, cwd=tmp_path
    ) as up:
        try:
            assert up.stdout
            lines = iter(up.stdout.readline, "")
            line = next(each for each in lines if "another machine" in each)
            password = (tmp_path / "cogrid/valkey/password").read_text().strip()
            assert line.split()[2:] == ["cogrid", "install-unit", "--host", "USER@MACHINE"]
            done = subprocess.run(
                site.words("install-unit", "--id", "esxi", "--engine", "demo", "--yes", "--json"),
                env=env, capture_output=True, text=True, check=False, cwd=tmp_path,
                stdin=subprocess.DEVNULL,
            )  # fmt: skip
            assert done.returncode == 0, done.stderr
            assert password not in done.stdout + done.stderr
            listed = subprocess.run(
                [sys.executable, "-m", "cogrid.cli.main", "worker", "list", "--json"],
                env=env, capture_output=True, text=True, check=True, cwd=tmp_path,
            )  # fmt: skip
            workers = {each["id"]: each for each in json.loads(listed.stdout)["workers"]}
            assert workers["esxi"]["health"] == "healthy"
        finally:
            up.terminate()
            site.install(force=True)


# What the user's own manager runs.


def test_a_user_without_any_right_has_a_worker_of_their_own(site: Site) -> None:
    host = site.host
    host.login("dora")
    before = site.fingerprint()
    access = replace(host.access, config=as_user(host, "dora"))
    fields = {"scope": "user", "id": "doras"}
    (refused,) = site.install(access, **fields).hosts
    assert [each.what for each in refused.objections] == [
        "its units end with the last login, since lingering is off for that user"
    ]
    assert site.fingerprint() == before
    host.ssh("loginctl enable-linger dora")
    until(
        lambda: host.ssh("systemctl is-active user@$(id -u dora).service", check=False) == "active"
    )
    host.ssh(
        "mkdir -p ~dora/.local/share && cp -a /opt/cogrid ~dora/.local/share/"
        " && chown -R dora: ~dora/.local"
    )
    (done,) = site.install(access, **fields).hosts
    assert done.state == "installed", done
    assert site.install(access, **fields).hosts[0].state == "nothing to do"
    path = "/home/dora/.config/cogrid/cogrid-worker@doras.env"
    assert host.ssh(f"stat -c '%a %U' {path}") == "600 dora"
    done_ = site.cli(
        "uninstall-unit", "--ssh-config", str(access.config), "--scope", "user", "--id", "doras",
        "--yes",
    )  # fmt: skip
    assert done_.returncode == 0, done_.stderr
    left = host.ssh("find /home/dora -path '*cogrid*'")
    assert left == ""
    host.ssh("loginctl disable-linger dora; userdel -r dora 2>/dev/null || :", check=False)


# Away again.


def test_an_uninstalled_unit_leaves_only_what_is_not_its_own(site: Site) -> None:
    host, path = site.host, f"/etc/systemd/system/{UNIT}"
    host.ssh(f"mkdir -p {path}.d && echo '[Service]' >{path}.d/mine.conf")
    other = "/etc/systemd/system/cogrid-worker@two.service"
    host.write(other, "[Service]\nExecStart=/opt/cogrid/current/bin/cogrid worker run --id two\n")
    shown = site.cli("uninstall-unit", "--id", "esxi", "--dry-run")
    assert shown.returncode == 0, shown.stderr
    assert f"remove {path}" in shown.stdout
    assert site.unit("ActiveState") == "active"
    done = site.cli("uninstall-unit", "--id", "esxi", "--yes", "--json")
    assert done.returncode == 0, done.stderr
    (result,) = json.loads(done.stdout)["hosts"]
    assert result["state"] == "removed"
    assert result["left"] == [
        f"{path}.d: not cogrid's",
        "/opt/cogrid: used by cogrid-worker@two.service",
    ]
    assert site.worker() is None
    assert host.ssh("ls -d /etc/cogrid /var/lib/cogrid 2>/dev/null", check=False) == ""
    assert host.ssh(f"ls -d {path}*") == f"{path}.d"
    again = site.cli("uninstall-unit", "--id", "esxi", "--yes", "--json")
    assert json.loads(again.stdout)["hosts"][0]["state"] == "nothing to do"
    host.ssh(f"rm -r {path}.d {other}; systemctl daemon-reload")


def _no_wish_left(site: Site) -> None:
    worker = site.worker()
    assert worker
    assert worker.wish.state != "drain"


def _long_task(site: Site) -> TaskId:
    """A task of some seconds, at work on esxi."""
    task = TaskId(f"long{time.monotonic_ns()}")
    words = {"model": MODEL, "messages": [{"role": "user", "content": "word " * 150}]}
    body = encode_request(Request(Kind.CHAT, Dialect.OPENAI, MODEL, words))
    shared = shared_queue("cpu", MODEL)
    made = Submission(task, Kind.CHAT, MODEL, shared, shared, body, "ada", on_close=OnClose.KEEP)
    with contextlib.closing(site.store()) as store:
        assert store.do(submit(store.keys, made)).status == "new"
    until(lambda: _state(site, task) is State.RUNNING, 20)
    return task


def _state(site: Site, task: TaskId) -> State | None:
    with contextlib.closing(site.store()) as store:
        found = store.read(read_tasks(store.keys, (task,)))[task]
    return found.state if found else None
