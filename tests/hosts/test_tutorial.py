"""docs/tutorial.md: every command of it is run, literally and in its order, on a host of the
incident's address; what it says is shown is shown."""

from __future__ import annotations

import shlex
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.cli.terminal import on_terminal
from tests.conftest import needs
from tests.e2e.daemon import Daemon
from tests.hosts.carried import carry_files
from tests.hosts.fleet import more_of_this_machine
from tests.hosts.host import Host, bring_up
from tests.hosts.told import Step, steps
from tests.mends import assert_is_a_command
from tests.servers import VALKEY9
from tests.test_layers import ROOT
from tests.wait import until

PAGE = ROOT / "docs/tutorial.md"
STEPS = list(steps(PAGE))
HERE, ESXI = "192.168.0.10", "192.168.0.41"
SCALE = 0.4
"""A ghost may be silent for 6 s then: time enough to ask it something before."""
COLUMNS = 200
LIMIT_S = 300
"""Where other tests run beside it, twenty commands and an installation need more than the usual."""
GEMMA, LLAMA = "gemma3:1b=815319791", "llama3.2:1b=1321098329"
VENV = "/home/ops/venv"
ENGINE = f"""\
[Service]
Environment=PYTHONPATH={VENV}/lib
ExecStart=/usr/bin/python3 -m cogrid.engine.fault --port 11434 --models {GEMMA},{LLAMA}
"""
AI_CORE = 'hostname ai-core; mount --bind "$0" /etc/ssh/ssh_config; exec "$@"'
"""A machine of that name that knows esxi. OpenSSH's client asks nobody but the system where a
user's own configuration is."""


@dataclass(frozen=True, slots=True)
class Story:
    """Where it takes place: ai-core is this machine under another name."""

    esxi: Host
    up: Daemon

    def play(self, step: Step) -> str:
        """Types it; what was shown."""
        if step.where:
            return self._there(step)
        program, *words = shlex.split(step.typed)
        assert program == "cogrid"
        if words[0] == "up":
            assert tuple(words) == self.up.words
            self.up.start()
            until(lambda: self.up.lines("[register] worker_id=ai-core"), 30, "ai-core to register")
            until(lambda: not step.missing(self.up.log), 30, step.typed)
            return self.up.log
        code, shown = on_terminal(
            *words, columns=COLUMNS, cues=step.cues, before=self.up.before, **self.up.env
        )
        assert code == step.code, f"{step.typed} ended with {code}\n{shown}"
        return shown

    def _there(self, step: Step) -> str:
        """Somebody looks until it is there."""

        def look() -> str:
            shown = self.esxi.ssh(f"{self._session}\n{step.typed}", user="ops")
            return "" if step.missing(shown) else f"shown: {shown}"

        return until(look, 20, step.typed)

    @property
    def _session(self) -> str:
        """What somebody has set there before: the password, and for this test that the claim loop
        hangs, and its times."""
        password = self.up.file.parent / "state/cogrid/valkey/password"
        return (
            f"export COGRID_REDIS_PASSWORD={shlex.quote(password.read_text().strip())}\n"
            f"export COGRID_TEST_HANG_CLAIMS={VENV} COGRID_TIME_SCALE={SCALE:g}"
        )


@pytest.fixture
def story(tmp_path: Path, fetched: dict[str, str]) -> Iterator[Story]:
    needs(VALKEY9)
    with ExitStack() as stack:
        esxi = stack.enter_context(bring_up("esxi", ESXI))
        more_of_this_machine(HERE, stack)
        _furnish(esxi)
        up = Daemon(
            "up", ("up", "--listen", HERE), _env(tmp_path, fetched, _engine(stack)), tmp_path,
            ("unshare", "--uts", "--mount", "sh", "-ec", AI_CORE, str(_ssh_config(esxi, tmp_path))),
        )  # fmt: skip
        stack.callback(up.end)
        yield Story(esxi, up)
        print(up.tail)


def _furnish(esxi: Host) -> None:
    """An engine, a user, and a cogrid that this user has put into a directory of their own."""
    esxi.login("ops", sudo="ALL=(ALL) NOPASSWD: ALL")
    carry_files(esxi, VENV)
    esxi.write("/etc/systemd/system/ollama.service", ENGINE)
    esxi.ssh("systemctl daemon-reload; systemctl start ollama")


def _ssh_config(esxi: Host, directory: Path) -> Path:
    config = directory / "ssh_config"
    usual = (esxi.place / "ssh_config").read_text()
    config.write_text(usual.replace("User root", "User ops").replace("Host *", f"Host {ESXI}"))
    return config


def _engine(stack: ExitStack) -> str:
    """Of ai-core, with one model, and gemma3:1b to pull; its URL."""
    words = ("-m", "cogrid.engine.fault", "--models", LLAMA, "--offers", GEMMA)
    engine = stack.enter_context(
        subprocess.Popen((sys.executable, *words), stdout=subprocess.PIPE, text=True)
    )
    stack.callback(engine.terminate)
    assert engine.stdout
    return engine.stdout.readline().strip()


def _env(directory: Path, fetched: dict[str, str], engine: str) -> dict[str, str]:
    kept = {name: text for name, text in fetched.items() if not name.startswith("COGRID_")}
    return {
        **kept,
        "HOME": str(directory),
        "XDG_STATE_HOME": str(directory / "state"),
        "XDG_CONFIG_HOME": str(directory / "config"),
        "COGRID_TIME_SCALE": f"{SCALE:g}",
        "COGRID_WORKER_ENGINE": engine,
    }


@pytest.mark.timeout(LIMIT_S)
def test_the_incident_is_cured_as_the_page_says(story: Story) -> None:
    for step in STEPS:
        shown = story.play(step)
        part = step.missing(shown)
        assert not part, f"{step.typed} does not show\n{part}\nbut\n{shown}"


def test_its_commands_are_commands() -> None:
    here = [step for step in STEPS if not step.where]
    assert len(here) > 10
    for step in here:
        assert_is_a_command(step.typed)
