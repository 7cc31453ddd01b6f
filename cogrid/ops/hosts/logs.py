"""The journals of many machines, as one."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime

from cogrid.errors import HostError
from cogrid.model.host import Host
from cogrid.ops.hosts.machines import ask_each
from cogrid.ops.journal import FIELDS, JournalLine, journal_line
from cogrid.remote.access import Access
from cogrid.remote.connection import Connection, connect
from cogrid.remote.target import parse_target

READ_S = 30.0

JOURNAL = """\
as_root=
[ "$(id -u)" = 0 ] || { sudo -n true 2>/dev/null && as_root='sudo -n'; }
fields=$1 lines=$2 since=$3 after=$4 follow=$5
shift 5
readable() {
    [ "$(id -u)" = 0 ] || [ -n "$as_root" ] && return
    id=$(cat /etc/machine-id)
    for file in "/var/log/journal/$id/system.journal" "/run/log/journal/$id/system.journal"; do
        [ -r "$file" ] && return
    done
    return 1
}
for unit in "$@"; do set -- "$@" --unit "$unit"; shift; done
set -- "$@" --no-pager --quiet --output json --output-fields "$fields"
[ -z "$since" ] || set -- "$@" --since "$since"
[ -z "$after" ] || set -- "$@" --after-cursor "$after"
[ -n "$after" ] || set -- "$@" --lines "$lines"
[ -z "$follow" ] || set -- "$@" --follow
if [ "$(id -u)" != 0 ] && ls ~/.config/systemd/user/*.service >/dev/null 2>&1; then
    journalctl --user "$@" &
fi
if readable; then echo '#readable'; $as_root journalctl "$@" & else echo '#unreadable'; fi
wait
"""
"""The first line says whether this login may read the system's journal: an empty answer would mean
two things. Users' own units are in another one."""


@dataclass(frozen=True, slots=True)
class LogWishes:
    """lines: of each host, at most. since_s: none older. units: names or patterns."""

    lines: int = 100
    since_s: float | None = None
    units: tuple[str, ...] = ("cogrid-*",)


@dataclass(frozen=True, slots=True)
class LogLine:
    """at: by that host's clock. priority: 0 (worst) to 7, as in syslog(3)."""

    at: str
    host: str
    unit: str
    text: str
    priority: int


@dataclass(frozen=True, slots=True)
class Trouble:
    """A host whose journal could not be read, or not to the end."""

    host: str
    message: str
    hint: str | None = None


@dataclass(frozen=True, slots=True)
class Logs:
    """The lines of all hosts, the latest last. troubles: what is missing, and why."""

    lines: tuple[LogLine, ...]
    troubles: tuple[Trouble, ...]


@dataclass(slots=True)
class Reader:
    """What one host's journal has said so far."""

    host: Host
    cursor: str = ""
    readable: bool | None = None
    lines: list[JournalLine] = field(default_factory=list)

    def take(self, text: str) -> JournalLine | None:
        if text.startswith("#"):
            self.readable = text == "#readable"
            return None
        line = journal_line(text)
        if line:
            self.cursor = line.cursor or self.cursor
        return line

    def trouble(self, there: Connection) -> Trouble | None:
        if self.readable is not False:
            return None
        return Trouble(
            self.host.address,
            f"{self.host.address}: the system's journal cannot be read as {there.user}",
            f"add {there.user} to the group systemd-journal there, or allow it sudo",
        )


def read_logs(hosts: Iterable[Host], access: Access, wishes: LogWishes) -> Logs:
    """What the journals hold, merged by time."""

    def ask(host: Host) -> tuple[list[JournalLine], Trouble | None]:
        reader = Reader(host)
        with connect(parse_target(host.address), access) as there:
            there.run(
                JOURNAL,
                *words(wishes),
                timeout_s=READ_S,
                on_line=lambda text: _keep(reader, text),
            )
            return reader.lines, reader.trouble(there)

    answers = ask_each(hosts, ask, READ_S + access.connect_s)
    lines: list[tuple[int, LogLine]] = []
    troubles: list[Trouble] = []
    for answer in answers:
        if answer.error:
            troubles.append(of_error(answer.host, answer.error))
        if answer.value:
            found, trouble = answer.value
            lines += [(line.at_us, log_line(answer.host, line)) for line in found]
            troubles += [trouble] if trouble else []
    lines.sort(key=lambda each: each[0])
    return Logs(tuple(line for _, line in lines), tuple(troubles))


def _keep(reader: Reader, text: str) -> None:
    line = reader.take(text)
    if line:
        reader.lines.append(line)


def log_line(host: Host, line: JournalLine) -> LogLine:
    """The line with its host in front."""
    at = datetime.fromtimestamp(line.at_us / 1e6, UTC).isoformat(timespec="milliseconds")
    return LogLine(at.replace("+00:00", "Z"), host.address, line.unit, line.text, line.priority)


def of_error(host: Host, error: HostError) -> Trouble:
    return Trouble(host.address, error.message, error.hint or None)


def words(wishes: LogWishes, cursor: str = "", follow: bool = False) -> tuple[str, ...]:
    since = f"-{wishes.since_s:g}s" if wishes.since_s is not None else ""
    return (FIELDS, str(wishes.lines), since, cursor, "follow" if follow else "", *wishes.units)
