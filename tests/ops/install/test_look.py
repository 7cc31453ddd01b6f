"""What is read of a machine, tried on this one."""

from __future__ import annotations

import json
import os
import socket
import ssl
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cogrid.ops.install import look
from tests.servers import REDIS7, Server

PASSWORD = "p w'\"%"


def asked(server: Server, **fields: Any) -> dict[str, Any]:
    usual = {
        "host": "127.0.0.1", "port": server.port, "tls": False, "authorities": "",
        "username": "", "password": PASSWORD,
    }  # fmt: skip
    return {**usual, **fields}


def greet(server: Server, **fields: Any) -> dict[str, Any]:
    question = asked(server, **fields)
    with look.connected(question) as link:
        return look.greeting(link, question)


def test_a_server_lets_in_with_its_password_only(own_server: Callable[..., Server]) -> None:
    server = own_server(password=PASSWORD)
    assert greet(server) == {"fault": "", "said": ""}
    assert greet(server, password="other") == {"fault": "password", "said": "WRONGPASS"}
    assert greet(server, password="") == {"fault": "password", "said": "NOAUTH"}
    assert greet(server, username="nobody") == {"fault": "password", "said": "WRONGPASS"}


def test_a_server_with_tls_is_checked_against_the_authority_that_is_given(
    own_server: Callable[..., Server],
) -> None:
    server = own_server(REDIS7, password=PASSWORD, tls=True)
    assert server.certificates
    port = int(server.tls_url.partition("@")[2].partition(":")[2].partition("/")[0])
    authority = server.certificates.authority.read_text()
    assert greet(server, port=port, tls=True, authorities=authority) == {"fault": "", "said": ""}
    with pytest.raises(ssl.SSLCertVerificationError):
        greet(server, port=port, tls=True)


def test_what_is_no_redis_is_told_by_its_first_word() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        question = {"host": "127.0.0.1", "port": port, "tls": False, "authorities": ""}
        with look.connected(question) as link:
            other, _ = listener.accept()
            other.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")
            found = look.greeting(link, {"username": "", "password": ""})
            other.close()
    assert found == {"fault": "server", "said": "HTTP/1.1"}


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "::1", "127.8.8.8", "0.0.0.0"])
def test_an_address_that_means_the_host_itself_is_not_even_tried(host: str) -> None:
    question = {"host": host, "port": 1, "tls": False, "authorities": ""}
    assert look.reach_redis(question)["fault"] == "itself"


def test_a_name_without_an_address(monkeypatch: pytest.MonkeyPatch) -> None:
    def none(*_: object, **__: object) -> None:
        raise socket.gaierror(-2, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", none)
    question = {"host": "no.such", "port": 1, "tls": False, "authorities": ""}
    assert look.reach_redis(question) == {"fault": "name", "said": "Name or service not known"}


def test_an_engine_is_whatever_answers(own_server: Callable[..., Server]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    assert look.find_engine([f"http://127.0.0.1:{port}"]) == ""
    assert look.find_engine([]) == ""


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("python3 /home/u/worker.py", True),
        ("/home/u/venv/bin/python -u worker.py --id x", True),
        ("/opt/cogrid/bin/python /opt/cogrid/current/bin/cogrid worker run --id esxi", True),
        ("python -m cogrid.cli.main worker run", True),
        ("cogrid worker list", False),
        ("vim worker.py", False),
        ("ssh esxi python worker.py", False),
        ("cogrid reaper --daemon", False),
    ],
)
def test_which_process_is_a_worker(words: str, expected: bool) -> None:
    assert look.is_worker([*words.split(), ""]) is expected


@pytest.mark.parametrize(
    ("group", "expected"),
    [
        ("0::/system.slice/cogrid-worker@esxi.service\n", True),
        ("0::/user.slice/user-1000.slice/session-3.scope\n", False),
        ("0::/user.slice/user-1000.slice/user@1000.service/app.slice/mine.service\n", True),
        ("0::/user.slice/user-1000.slice/user@1000.service\n", False),
    ],
)
def test_which_process_a_unit_has(group: str, expected: bool) -> None:
    assert look.in_unit(group) is expected


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("ExecStart=/home/u/venv/bin/python /home/u/worker.py", True),
        ("ExecStart=/opt/cogrid/current/bin/cogrid worker run --id esxi", True),
        ("ExecStart = /usr/bin/env python3 worker.py", True),
        ("ExecStart=/opt/cogrid/current/bin/cogrid reaper --daemon", False),
        ("# ExecStart=/home/u/worker.py", False),
        ("ExecStart=/usr/bin/worker.pyx", False),
    ],
)
def test_which_unit_runs_a_worker(line: str, expected: bool) -> None:
    assert bool(look.RUNS_A_WORKER.search(f"[Service]\n{line}\n")) is expected


@pytest.mark.parametrize(
    ("make", "expected"),
    [
        (lambda path: path.mkdir(), ""),
        (lambda path: None, "missing"),
        (lambda path: path.touch(), "file"),
        (lambda path: path.symlink_to("/nowhere"), "file"),
    ],
)
def test_a_working_directory(tmp_path: Path, make: Callable[[Path], None], expected: str) -> None:
    make(tmp_path / "it")
    assert look.workdir(str(tmp_path / "it"), "root") == expected


def test_a_working_directory_that_needs_none_or_is_not_in_full() -> None:
    assert look.workdir("", "root") == ""
    assert look.workdir("~/x", "root") == "relative"


@pytest.mark.skipif(os.geteuid() != 0, reason="tried as another user")
def test_a_working_directory_is_tried_as_its_user(tmp_path: Path) -> None:
    tmp_path.chmod(0o700)
    assert look.workdir(str(tmp_path), "root") == ""
    assert look.workdir(str(tmp_path), "nobody") == "closed"
    assert look.workdir(str(tmp_path), "no-such-user") == ""


def test_the_program_runs_by_itself_and_knows_nothing_of_ours(tmp_path: Path) -> None:
    question = {
        "scope": "system", "unit": "x.service", "unit_path": str(tmp_path / "x.service"),
        "environment_path": str(tmp_path / "x.env"), "authorities_path": str(tmp_path / "x.pem"),
        "user": "root", "workdir": "", "base": str(tmp_path / "a" / "b"), "engines": [],
        "redis": None, "show": ["show"],
    }  # fmt: skip
    (tmp_path / "x.env").write_text("A=1\n")
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", Path(look.__file__).read_text()],
        input=json.dumps(question), capture_output=True, text=True, check=True,
    )  # fmt: skip
    said = json.loads(done.stdout)
    assert (said["unit"]["text"], said["environment"], said["authorities"]) == (None, "A=1\n", None)
    assert said["place"]["path"] == str(tmp_path)
    assert said["place"]["free_bytes"] > 0
    assert said["account"] == {"uid": 0, "home": "/root"} or said["account"]["uid"] == 0
