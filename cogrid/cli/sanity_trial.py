"""How a trial on hosts is shown: lines as they come, and how each ended."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cogrid.cli.output import note, print_json, print_line

if TYPE_CHECKING:
    from cogrid.model.host import Host
    from cogrid.ops.sanity.ask import Wishes
    from cogrid.ops.sanity.try_out import TriedHost
    from cogrid.remote.access import Access


def show_trials(hosts: tuple[Host, ...], access: Access, wishes: Wishes, as_json: bool) -> int:
    """The exit code of the command."""
    from cogrid.ops.sanity.try_out import try_out

    many = len(hosts) > 1
    unwritten: list[OSError] = []

    def say(host: str, line: str) -> None:
        if as_json or not line.strip() or unwritten:
            return
        try:
            print_line(f"{host}  {line}" if many else line)
        except OSError as error:  # in the host's thread it would be taken for the connection's end
            unwritten.append(error)

    found = try_out(hosts, access, wishes, say)
    if unwritten:
        raise unwritten[0]
    if as_json:
        print_json(found)
        return found.exit_code
    for tried in found.trials:
        _print_end(tried, f"{tried.host}  " if many else "")
    return found.exit_code


def _print_end(tried: TriedHost, front: str) -> None:
    if tried.error:
        note(f"{front}{tried.error}")
        if tried.hint:
            note(f"  → {tried.hint}")
        return
    if not tried.as_unit:
        why = "it may not become the unit's user" if tried.unit else "no unit is installed there"
        note(f"{front}tried as this login, with this side's settings: {why}")
    print_line(f"{front}EXIT:{tried.code}")
    print_line(f"{front}{tried.meaning}{f': {tried.cure}' if tried.cure else ''}")
