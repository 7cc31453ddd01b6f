#!/bin/sh
# Builds the wheel, looks whether everything is in it, installs it outside the checkout into an
# environment without any development dependency, and runs the demo and the first commands there.
#
#   wheel_smoke.sh PYTHON      the checkout's python, which has the build tools
set -eu

python=$1
source=$(cd "$(dirname "$0")/.." && pwd)
place=$(mktemp -d /tmp/cogrid-wheel.XXXXXX)
trap 'rm -rf "$place"' EXIT

"$python" -m build --wheel --no-isolation --outdir "$place" "$source" >"$place/build.log" 2>&1 ||
    { cat "$place/build.log" >&2; exit 1; }
wheel=$(echo "$place"/*.whl)

"$python" - "$wheel" "$source" <<'PYTHON'
import sys, zipfile
from pathlib import Path

wheel, source = sys.argv[1], Path(sys.argv[2])
packed = set(zipfile.ZipFile(wheel).namelist())
wanted = {
    path.relative_to(source).as_posix()
    for path in (source / "cogrid").rglob("*")
    if path.is_file() and "__pycache__" not in path.parts
} | {
    "cogrid/" + path.relative_to(source).as_posix()
    for path in (source / "systemd").rglob("*")
    if path.is_file()
}
if lost := sorted(wanted - packed):
    sys.exit("not in the wheel: " + ", ".join(lost))
if stray := sorted(n for n in packed if not n.startswith("cogrid") or n.startswith("cogrid/tests")):
    sys.exit("should not be in the wheel: " + ", ".join(stray))
PYTHON

"$python" -m venv "$place/venv"
"$place/venv/bin/python" -m pip --disable-pip-version-check install --quiet "$wheel"
cd "$place"
for words in --version --help "reaper --help"; do
    # shellcheck disable=SC2086
    venv/bin/cogrid $words >/dev/null
done
"$source/demo.sh" "$place/venv/bin/cogrid"
