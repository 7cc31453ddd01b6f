"""The real scripts with something changed in their text: clock, a fault, a stop after a write."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache

from cogrid.store.script import Script, Scripts, script, script_names

CLOCK_KEY = "test:clock"
"""Holds what ``now`` is (ms) for scripts of ``clocked``; the real time where it is absent."""
STOPPED = "STOPPED by the test"

Change = Callable[[str], str]
"""From a script's text to another text."""

_CLOCK = "local stamp = redis.call('TIME')\n"
_CLOCKED = f"""local stamp = redis.call('TIME')
local told = redis.call('GET', '{CLOCK_KEY}')
if told then
  stamp = {{math.floor(tonumber(told) / 1000), (tonumber(told) % 1000) * 1000}}
end
"""
_CALL = r"redis\.p?call\('([A-Z]+)'"
_WRITES = "ZADD ZREM ZREMRANGEBYSCORE HSET HDEL HINCRBY HINCRBYFLOAT SADD SREM XADD SET DEL INCR "
_WRITES += "PERSIST EXPIRE PEXPIRE"
# To take '' out of a key is no write: it asks whether one would be allowed.
_STOPPING = """local left, real = {left}, redis
local writes = {{}}
for name in string.gmatch('{writes}', '%u+') do writes[name] = true end
local function stop_first(run)
  return function(command, ...)
    if writes[command] and select(2, ...) ~= '' then
      if left == 0 then error('{stopped}') end
      left = left - 1
    end
    return run(command, ...)
  end
end
local redis = {{call = stop_first(real.call), pcall = stop_first(real.pcall),
  error_reply = real.error_reply, acl_check_cmd = real.acl_check_cmd}}
"""


def replaced(text: str, old: str, new: str) -> str:
    """The text with ``old``, which must stand in it once, replaced."""
    assert text.count(old) == 1, f"{text.count(old)} times in the script: {old!r}"
    return text.replace(old, new)


def _clock(text: str) -> str:
    return replaced(text, _CLOCK, _CLOCKED)


@cache
def clocked(name: str) -> Script:
    """The script, with a clock that the test sets."""
    return Script.of(name, _clock(script(name).source))


def mutant(changes: dict[str, tuple[tuple[str, str], ...]]) -> Scripts:
    """All scripts under the test's clock, with pieces of some scripts' text replaced: what a
    mistake in them would look like."""

    @cache
    def scripts(name: str) -> Script:
        source = _clock(script(name).source)
        for old, new in changes.get(name, ()):
            source = replaced(source, old, new)
        return Script.of(name, source)

    for name in changes:
        scripts(name)
    return scripts


def stopping(of: str, after: int) -> Scripts:
    """All scripts under the test's clock; one ends with an error instead of its write number
    ``after`` + 1, as a server does with a script that it refuses something half-way."""

    @cache
    def scripts(name: str) -> Script:
        source = _clock(script(name).source)
        if name == of:
            source = _STOPPING.format(left=after, writes=_WRITES, stopped=STOPPED) + source
        return Script.of(name, source)

    return scripts


def commands(*names: str) -> frozenset[str]:
    """Every command that these scripts send, or any script."""
    texts = (script(name).source for name in names or script_names())
    return frozenset(found for text in texts for found in re.findall(_CALL, text))
