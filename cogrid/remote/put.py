"""The text that writes a file whole or not at all, with nothing but sh and coreutils."""

from __future__ import annotations

from cogrid.remote.foreign import last_line
from cogrid.remote.session import Result

PUT = """\
path=$1 mode=$2 owner=$3 size=$4
folder=$(dirname -- "$path")
[ -d "$folder" ] || exit 40
[ ! -d "$path" ] || exit 41
umask 077
new=$(mktemp -- "$path.XXXXXXXX") || exit 42
trap 'rm -f -- "$new"' EXIT
trap 'exit 43' HUP INT TERM
[ -z "$owner" ] || chown -- "$owner" "$new" || exit 44
chmod -- "$mode" "$new" || exit 45
cat >"$new" || exit 46
[ "$(wc -c <"$new")" -eq "$size" ] || exit 47
sync -- "$new" || exit 48
mv -f -- "$new" "$path" || exit 49
trap - EXIT
sync -- "$folder"
"""
"""A connection that breaks ends stdin as if the content were over, hence its size. The mode and the
owner are set while it is empty."""

_WHY = {
    40: "its folder is not there",
    41: "it is a folder",
    42: "its folder cannot be written to",
    43: "it was interrupted",
    44: "its owner cannot be set",
    45: "its mode cannot be set",
    46: "the content cannot be written",
    47: "the content did not come whole",
    48: "it cannot be synced to the disk",
    49: "it cannot be renamed into place",
}


def why(done: Result) -> str:
    """What went wrong, with the host's own words."""
    said = last_line(done.err)
    reason = _WHY.get(done.code, f"exit code {done.code}")
    return f"{reason} ({said})" if said else reason
