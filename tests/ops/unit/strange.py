"""Values that are hard to write into a unit: all that a path, a model or a password may hold."""

from __future__ import annotations

from hypothesis import strategies as st

from cogrid.model.host import Role, Scope
from cogrid.ops.unit.settings import UnitSettings

TRICKY = "%$\"'\\ ;#=`{}*?[]~!&|<>()@-:+"
"""What systemd, sh or both read in another way than it stands there."""
LETTERS = st.one_of(
    st.sampled_from(TRICKY),
    st.characters(exclude_categories=("Cc", "Cs", "Cn")),
    st.sampled_from("abc\u2028\u00a0\u3000é日🦙"),
)
PIECES = st.one_of(LETTERS, st.sampled_from(("%i", "%%", "$$", "${HOME}", "$HOME", "\\n", "\\x41")))


def texts(least: int = 0, most: int = 12) -> st.SearchStrategy[str]:
    """Any text that a file can hold, rich in what is special."""
    return st.lists(PIECES, min_size=least, max_size=most).map("".join).filter(_can_be_said)


def _can_be_said(text: str) -> bool:
    return not any(0xFDD0 <= ord(c) <= 0xFDEF or ord(c) & 0xFFFE == 0xFFFE for c in text)


PASSWORDS = texts()
MODELS = texts(least=1).filter(lambda text: "," not in text and text == text.strip())
NAMES = st.from_regex(r"[a-z0-9][a-z0-9._-]{0,20}", fullmatch=True).filter(lambda n: n != "shared")
PLACES = (
    texts(least=1)
    .map(lambda text: "/" + text.replace("/", "").strip(" \t\\"))
    .filter(lambda path: path not in ("/", "/.", "/..") and path == path.rstrip(" \\"))
)
PROGRAMS = (
    texts(least=1)
    .map(lambda text: "/opt/" + "".join(c for c in text if c not in "/\"'\\$"))
    .filter(lambda path: path not in ("/opt/", "/opt/.", "/opt/.."))
)
NOT_OURS = st.from_regex(r"X_[A-Z]{1,8}", fullmatch=True)


@st.composite
def workers(draw: st.DrawFn) -> UnitSettings:
    """Settings of a worker that a unit can be made of, in either scope."""
    program = (draw(PROGRAMS), *draw(st.lists(texts().filter(_is_no_command), max_size=2)))
    scope = draw(st.sampled_from(tuple(Scope)))
    named = st.from_regex(r"[A-Za-z0-9_][A-Za-z0-9:_.-]{0,20}", fullmatch=True)
    return UnitSettings(
        role=Role.WORKER,
        scope=scope,
        unit=draw(st.one_of(st.just(""), named.map(lambda name: f"{name}.service"))),
        program=program,
        user=draw(st.sampled_from(("cogrid", "root", "ubuntu", "DOM\\user", "50%")))
        if scope is Scope.SYSTEM
        else "cogrid",
        workdir=draw(st.one_of(st.just(""), PLACES)),
        restart_s=draw(st.integers(1, 3600)),
        id=draw(NAMES),
        pool=draw(st.one_of(st.just(""), NAMES)),
        engine=draw(st.sampled_from(("", "demo", "http://[::1]:11434", "http://h:1/a%20b"))),
        slots=draw(st.integers(0, 64)),
        models=tuple(draw(st.lists(MODELS, max_size=3))),
        prefix=draw(st.sampled_from(("", "cogrid:", "{cogrid}:", "50%$"))),
        redis_url=f"redis://{draw(PASSWORDS)}",
        redis_username=draw(PASSWORDS),
        redis_password=draw(PASSWORDS),
        api_key=draw(PASSWORDS),
        environment=tuple(draw(st.dictionaries(NOT_OURS, PASSWORDS, max_size=3)).items()),
    )


def _is_no_command(word: str) -> bool:
    return word not in ("worker", "coordinator", "reaper")
