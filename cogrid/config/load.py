"""Everything that was set, from the weakest source to the strongest, made into one ``Config``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from cogrid.config.check import wrong, wrong_together
from cogrid.config.file import Read, UnreadableError, find, read
from cogrid.config.keys import (
    ALIASES,
    SECRET,
    SECTIONS,
    Given,
    WrongValueError,
    known,
    value_of,
    variable,
)
from cogrid.config.near import unknown
from cogrid.config.secret import with_secrets
from cogrid.config.settings import Config
from cogrid.errors import UsageError
from cogrid.model.limits import Limits
from cogrid.model.names import normal_model

if TYPE_CHECKING:
    from cogrid.model.host import Host
    from cogrid.rules.domain import Domain

COMMAND_LINE = "command line"
LISTS = ("domain", "host")
"""Tables of which there may be several; they stand in the file only."""
OTHER_VARIABLES = ("COGRID_CONFIG", "COGRID_TIME_SCALE")


class ConfigError(UsageError):
    """Everything that is wrong with the configuration, a line each in ``problems``."""

    def __init__(self, problems: tuple[str, ...]) -> None:
        count = "1 thing is" if len(problems) == 1 else f"{len(problems)} things are"
        message = "\n".join((f"{count} wrong in the configuration:", *problems))
        super().__init__(message, "docs/configuration.md has every key; nothing was started")
        self.problems = problems


@dataclass(frozen=True, slots=True)
class Effective:
    """The configuration and where each value that somebody set comes from (``section.key`` ->
    ``cogrid.toml:4``, a variable, or ``command line``); the rest are defaults."""

    config: Config
    sources: Mapping[str, str]


def load(
    path: str | None, env: Mapping[str, str], flags: Mapping[str, object] | None = None
) -> Config:
    """The configuration. path: a named file, which must exist; None: the usual places. env: the
    environment. flags: ``section.key`` -> value from the command line; None is not given."""
    return load_effective(path, env, flags).config


def load_effective(
    path: str | None, env: Mapping[str, str], flags: Mapping[str, object] | None = None
) -> Effective:
    """The same with the sources."""
    try:
        found = find(path, env)
        file = read(found) if found else Read()
    except UnreadableError as error:
        raise ConfigError((str(error),)) from error
    problems: list[str] = []
    given = [*_from_file(file, problems), *_from_env(env, problems), *_from_flags(flags or {})]
    domains, hosts = _domains(file, problems), _hosts(file, problems)
    values: dict[str, object] = {}
    taken: dict[str, Given] = {}
    for each in given:
        if problem := _take(each, values):
            problems.append(problem)
        else:
            taken[each.key] = each
    config = _made(values, file.path)
    problems += _contradictions(config.limits, taken)
    scale = _time_scale(env, problems)
    config = replace(
        with_secrets(config, taken, problems),
        routing=replace(config.routing, domains=domains),
        hosts=hosts,
        limits=config.limits.scaled(scale) if scale != 1 else config.limits,
        time_scale=scale,
    )
    if problems:
        raise ConfigError(tuple(problems))
    return Effective(config, {key: each.source for key, each in taken.items()})


def _domains(file: Read, problems: list[str]) -> tuple[Domain, ...]:
    if "domain" not in file.tables:
        return ()
    from cogrid.config.domains import read_domains  # brings the rules' tables with it

    domains, wrong_domains = read_domains(file)
    problems += wrong_domains
    return domains


def _hosts(file: Read, problems: list[str]) -> tuple[Host, ...]:
    if "host" not in file.tables:
        return ()
    from cogrid.config.hosts import read_hosts

    hosts, wrong_hosts = read_hosts(file)
    problems += wrong_hosts
    return hosts


def _from_file(file: Read, problems: list[str]) -> Iterable[Given]:
    sections = (*SECTIONS, *LISTS)
    for section, table in file.tables.items():
        if section not in sections:
            problems.append(f"{file.source(section)}: {section} {unknown(section, sections)}")
        elif section in LISTS:
            continue
        elif not isinstance(table, dict):
            problems.append(f"{file.source(section)}: {section}: write it as a table [{section}]")
        else:
            yield from _from_table(file, section, table, problems)


def _from_table(
    file: Read, section: str, table: dict[str, Any], problems: list[str]
) -> Iterable[Given]:
    names = [key.partition(".")[2] for key in known() if key.startswith(f"{section}.")]
    for name, value in table.items():
        key = f"{section}.{name}"
        source = file.source(key, section)
        if name in names:
            yield Given(key, value, source, in_file=True)
        else:
            problems.append(f"{source}: {key} {_belongs(name) or unknown(name, names)}")


def _belongs(name: str) -> str:
    """Says so where a key of another section was meant."""
    at = [section for section in SECTIONS if f"{section}.{name}" in known()]
    return f"is unknown; {name} is a key of [{'] and of ['.join(at)}]" if at else ""


def _from_env(env: Mapping[str, str], problems: list[str]) -> Iterable[Given]:
    """Variables that begin with a section's name must be keys; others, such as those of cogrid's
    own tests, only must not look like a key misspelt."""
    variables = {**{variable(key): key for key in known()}, **ALIASES}
    begins = tuple(variable(section) + "_" for section in SECTIONS)
    for name, text in sorted(env.items()):
        if key := variables.get(name):
            yield Given(key, text, name)
        elif name.startswith("COGRID_") and name not in OTHER_VARIABLES:
            says = unknown(name, (*variables, *OTHER_VARIABLES))
            if name.startswith(begins) or _misspelt(name, (*variables, *OTHER_VARIABLES)):
                problems.append(f"{name} {says}")


def _misspelt(name: str, names: Iterable[str]) -> bool:
    from difflib import get_close_matches

    return bool(get_close_matches(name, list(names), n=1, cutoff=0.9))


def _from_flags(flags: Mapping[str, object]) -> Iterable[Given]:
    for key, value in flags.items():
        if value is not None:
            yield Given(key, value, COMMAND_LINE)


def _take(given: Given, values: dict[str, object]) -> str:
    """Puts the value where it belongs, or says what is wrong with it."""
    try:
        value = value_of(given.key, _expected(given))
    except WrongValueError as error:
        return _refusal(given, str(error))
    if right := wrong(given.key, value):
        return _refusal(given, right)
    if given.key == "worker.models" and isinstance(value, tuple):
        value = tuple(normal_model(model) for model in value)
    values[given.key] = value
    return ""


def _expected(given: Given) -> object:
    """TOML has types, so a text there is a text and not, say, a number to be read."""
    kind = str(known()[given.key].type)
    if given.in_file and isinstance(given.value, str) and kind != "str":
        raise WrongValueError(f"without quotes: it is of type {kind.partition('[')[0]}")
    return given.value


def _refusal(given: Given, right: str) -> str:
    shown = "" if given.key in SECRET else f" is {given.value!r}"
    return f"{given.source}: {given.key}{shown}: {right}"


def _made(values: Mapping[str, object], path: str) -> Config:
    sections: dict[str, Any] = {
        section: settings(
            **{
                key.partition(".")[2]: value
                for key, value in values.items()
                if key.startswith(f"{section}.")
            }
        )
        for section, settings in SECTIONS.items()
    }
    return Config(**sections, file=path)


def _contradictions(limits: Limits, taken: Mapping[str, Given]) -> Iterable[str]:
    """Each at the limit itself where it was set, else at any limit that was."""
    for name, right in wrong_together(limits).items():
        key = f"limits.{name}"
        set_here = (each for other, each in taken.items() if other.startswith("limits."))
        given = taken.get(key) or next(set_here, None)
        source = given.source if given else "default"
        yield f"{source}: {key} is {getattr(limits, name):g}: {right}"


def _time_scale(env: Mapping[str, str], problems: list[str]) -> float:
    """COGRID_TIME_SCALE multiplies every duration; for tests that cannot wait."""
    text = env.get("COGRID_TIME_SCALE", "1")
    try:
        scale = float(text)
    except ValueError:
        scale = 0.0
    if 0 < scale <= 1000:
        return scale
    problems.append(f"COGRID_TIME_SCALE is {text!r}: write a number above 0, at most 1000")
    return 1.0
