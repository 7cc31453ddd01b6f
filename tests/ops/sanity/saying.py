"""What a host might print, as ``look.sh`` does."""

from __future__ import annotations

import json

from cogrid.ops.unit.render import render
from cogrid.ops.unit.settings import UnitSettings

MARK = "5f0e"
UNIT = "cogrid-worker@esxi.service"
RUNNING = {
    "LoadState": "loaded", "ActiveState": "active", "SubState": "running", "Result": "success",
    "MainPID": "77", "FragmentPath": f"/etc/systemd/system/{UNIT}", "UnitFileState": "enabled",
    "NeedDaemonReload": "no",
}  # fmt: skip
ARGV = ["/opt/cogrid/current/bin/cogrid", "worker", "run", "--id", "esxi"]
TEXT = render(UnitSettings(id="esxi")).unit_text


def part(name: str, text: str) -> str:
    return f"\n{MARK} {name}\n{text}"


def a_unit(
    show: dict[str, str] | None = None,
    *,
    name: str = UNIT,
    scope: str = "system",
    text: str = TEXT,
    argv: list[str] | None = None,
    mode: str = "600",
    rights: str = "readable",
    journal: tuple[dict[str, str], ...] = (),
    version: str = "0.1.0",
) -> str:
    """One unit's parts."""
    shown = {"Id": name, **RUNNING, **(show or {})}
    words = ARGV if argv is None else argv
    bus = (
        {"type": "a(sasbttttuii)", "data": [[words[0], words, False, 0, 0, 0, 0, 0, 0, 0]]},
        {"type": "as", "data": ["A=1 2"]},
        {"type": "a(sb)", "data": [["/etc/cogrid/cogrid-worker@esxi.env", True]]},
        {"type": "s", "data": "cogrid"},
        {"type": "s", "data": ""},
        {"type": "s", "data": "!/srv"},
    )
    where = f"{scope} {name}"
    return "".join(
        (
            part(f"show {where}", "".join(f"{key}={value}\n" for key, value in shown.items())),
            part(f"text {where}", text),
            part(f"version {where}", f"cogrid, version {version}\n"),
            part(f"bus {where}", "".join(json.dumps(each) + "\n" for each in bus)),
            part(f"files {where}", f"{mode} root /etc/cogrid/cogrid-worker@esxi.env\n"),
            part(f"rights {where}", f"{rights}\n"),
            part(f"journal {where}", "".join(json.dumps(each) + "\n" for each in journal)),
        )
    )


def a_line(text: str, by: str = "cogrid", at_us: int = 1_780_799_147_000_000) -> dict[str, str]:
    """An entry of the journal."""
    return {"__REALTIME_TIMESTAMP": str(at_us), "MESSAGE": text, "SYSLOG_IDENTIFIER": by}


def a_host(*units: str, **parts: str) -> str:
    """A whole answer of a host that is well. parts: others instead, by name."""
    usual = {
        "who": "root\n0\n\n",
        "host": "esxi\nLinux x86_64\n",
        "init": "systemd\n",
        "python": "Python 3.11.2\nPython 3.9.2\n",
        "memory": "MemTotal:       16000000 kB\nMemAvailable:    8000000 kB\n",
        "disk": "/dev/sda1  100000000 40000000 60000000 40% /\n",
        "gpu": "",
        "stray": "",
        "engines": "ollama.service\n",
    }
    said = "".join(part(name, text) for name, text in {**usual, **parts}.items())
    clock = parts.get("clock", "1780799147.25\n")
    return part("clock", clock) + said + "".join(units) + part("clock", clock)
