"""The settings of a unit that stands on a host."""

from __future__ import annotations

from cogrid.model.host import Scope
from cogrid.ops.unit.command import read_command
from cogrid.ops.unit.environment import read_environment
from cogrid.ops.unit.file import parse_unit
from cogrid.ops.unit.quoting import from_command_line, from_raw
from cogrid.ops.unit.render import READ_ONLY
from cogrid.ops.unit.settings import RESTART_S, SERVICE_USER, UnitSettings, usual_name
from cogrid.ops.unit.variables import read_variables


def read(
    unit_name: str, unit_text: str, environment: str = "", scope: Scope = Scope.SYSTEM
) -> UnitSettings | None:
    """What it was made from; None where it runs no command of ours. environment: its environment
    file, where one may read it. A unit that somebody edited is read as it is now."""
    unit = parse_unit(unit_text)
    line = unit.last("Service", "ExecStart")
    command = read_command(from_command_line(line)) if line else None
    if command is None:
        return None
    usual = usual_name(command.role, command.fields.get("id", ""))
    restart = unit.last("Service", "RestartSec")
    return UnitSettings(
        role=command.role,
        scope=scope,
        unit="" if unit_name == usual else unit_name,
        program=command.program,
        user=from_raw(unit.last("Service", "User")) or SERVICE_USER,
        workdir=from_raw(unit.last("Service", "WorkingDirectory")),
        has_home=unit.last("Service", "ProtectHome") == READ_ONLY,
        restart_s=int(restart) if restart.isdecimal() else RESTART_S,
        **command.fields,
        **read_variables(read_environment(environment)),
    )
