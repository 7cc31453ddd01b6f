"""The text that starts a POSIX shell there, and the text that tells it what to do.

Only a fixed line travels as a command, so that nothing of ours is ever in an argument that others
on the host can read; it holds no character that csh or fish read otherwise than sh. The script and
its arguments follow over stdin, after that shell has said that it runs: a login script that prints
is over by then, and one that reads has had nothing to read.
"""

from __future__ import annotations

import shlex

_BOOT = (
    'LC_ALL=C; PATH="$PATH:/usr/sbin:/sbin"; export LC_ALL PATH; '
    "read -r p c s u g r </proc/$$/stat; "
    'echo; echo "$1 ${g:-$$}"; echo >&2; echo "$1" >&2; '
    'read -r n; s="$(dd bs=1 count=$n 2>/dev/null)"; '
    'case "$s" in *"#$1") eval "$s" ;; *) exit 1 ;; esac'
)
"""Its own process group (field 5 of proc(5)'s stat) is said, so that all it starts can be ended.
LC_ALL: the same words in every locale. PATH: where administrators' programs are, which a login that
is not root lacks. dd reads byte by byte: what follows the script is the script's own stdin. A
script that does not end with the mark was cut by a connection that broke and is not run at all:
the half of a path may be a path."""

END_GROUP = """\
kill -TERM -"$1" 2>/dev/null
n=0
while kill -0 -"$1" 2>/dev/null; do
    [ "$n" -lt 10 ] || kill -KILL -"$1" 2>/dev/null
    [ "$n" -lt 20 ] || exit 1
    n=$((n + 1))
    sleep 0.1
done
"""
"""Ends the process group $1: asked at first, after a second not asked any more."""


def boot(mark: str, through: str = "") -> str:
    """The command line, for whatever login shell. mark: a word that nobody else prints. through:
    what runs the shell, such as sudo with its options."""
    return f"exec {through}/bin/sh -c '{_BOOT}' sh {mark}"


def header(mark: str, script: str, args: tuple[str, ...]) -> bytes:
    """What the booted shell reads first: the length in bytes, then the script with its arguments
    as $1, $2 and so on, each byte for byte. mark: that of ``boot``."""
    if any("\0" in arg for arg in (script, *args)):
        raise ValueError("no shell can be given a NUL")
    words = " ".join(shlex.quote(arg) for arg in args)
    text = f"set -- {words}\n{script}\n#{mark}".encode(errors="surrogateescape")
    return b"%d\n" % len(text) + text
