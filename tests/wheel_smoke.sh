#!/bin/sh
# Builds the wheel, looks whether everything is in it, installs it outside the checkout into an
# environment without any development dependency, and runs the demo and the first commands there,
# as somebody would type them.
#
#   wheel_smoke.sh PYTHON      the checkout's python, which has the build tools
set -eu

python=$1
source=$(cd "$(dirname "$0")/.." && pwd)
place=$(mktemp -d /tmp/cogrid-wheel.XXXXXX)
started=

stop() {
    for pid in $started; do
        kill -TERM "$pid" 2>/dev/null || true
        wait "$pid" 2>/dev/null || true
    done
    rm -rf "$place"
}
trap stop EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

give_up() {
    echo "wheel_smoke.sh: $1" >&2
    for file in "$place"/*.out; do
        echo "--- $file" >&2
        cat "$file" >&2
    done
    exit 1
}

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
PATH="$place/venv/bin:$PATH"
case $(python -c 'import cogrid; print(cogrid.__file__)') in
    "$place"/*) ;;
    *) give_up "the cogrid that runs is not the wheel's" ;;
esac

# Every module, also those that no command below loads, with what the wheel names as its needs. Those
# that are sent to hosts print as they are loaded.
python - >modules.out 2>&1 <<'PYTHON' || give_up "a module of the wheel cannot be imported"
import importlib, pkgutil
import cogrid

names = [each.name for each in pkgutil.walk_packages(cogrid.__path__, "cogrid.")]
assert len(names) > 200, names
for name in names:
    if name.rpartition(".")[2] != "__main__":
        importlib.import_module(name)
PYTHON

# Runs a command as it is typed. type EXIT-CODE WORD... - what it prints is in said.out.
type_in() {
    code=0
    wanted=$1
    shift
    echo "\$ $*"
    "$@" >said.out 2>said.err.out || code=$?
    [ "$code" -eq "$wanted" ] || give_up "$*: exit code $code, not $wanted"
    ! grep -q Traceback said.out said.err.out || give_up "$*: a traceback"
}

shows() {
    for text in "$@"; do
        grep -qF -- "$text" said.out || give_up "it does not show '$text'"
    done
}

# Waits for a text in a file. appears FILE TEXT
appears() {
    tries=0
    until grep -qF -- "$2" "$1"; do
        tries=$((tries + 1))
        [ "$tries" -lt 240 ] || give_up "no '$2' in $1 within a minute"
        sleep 0.25
    done
}

type_in 0 cogrid --version
type_in 0 cogrid --help
shows up chat status diagnose spof reaper worker coordinator route key
for command in up chat status "diagnose ghosts" spof reaper "worker run" "coordinator run"; do
    # shellcheck disable=SC2086
    type_in 0 cogrid $command --help
done
"$source/demo.sh" "$place/venv/bin/cogrid"

# Nothing that is configured on this machine takes part, and no port that is in use.
for name in $(env | sed -n 's/^\(COGRID_[A-Z_]*\)=.*/\1/p'); do unset "$name"; done
port=$(python -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
export HOME="$place/home" XDG_STATE_HOME="$place/state" XDG_CONFIG_HOME="$place/config"
export COGRID_COORDINATOR_LISTEN="127.0.0.1:$port" COGRID_CLIENT_URL="http://127.0.0.1:$port"
mkdir -p "$HOME"

# Without a grid: one sentence, and the exit code for it.
type_in 4 cogrid status --redis redis://127.0.0.1:1/0

cogrid up --demo >up.out 2>&1 &
started=$!
appears up.out "is up"
tries=0
until cogrid status >said.out 2>&1 && [ "$(grep -c healthy said.out)" -eq 2 ]; do
    tries=$((tries + 1))
    [ "$tries" -lt 60 ] || give_up "the demo's workers do not get healthy"
    sleep 0.5
done

type_in 0 cogrid status
shows demo-1 demo-2 demo-echo healthy
type_in 0 cogrid status --json
python -c 'import json; d = json.load(open("said.out")); assert d["schema"] == 1, d; assert len(d["workers"]) == 2, d'
type_in 0 cogrid diagnose ghosts
shows "no ghosts"
type_in 3 cogrid spof
shows demo-echo
type_in 0 cogrid chat --model demo-echo "hello from the wheel"
shows "hello from the wheel"
type_in 0 cogrid reaper --dry-run

echo "\$ cogrid reaper --daemon &"
cogrid reaper --daemon >reaper.out 2>&1 &
reaper=$!
started="$reaper $started"
appears reaper.out "[start] reaper"
type_in 0 cogrid status --check
kill -TERM "$reaper"
code=0
wait "$reaper" || code=$?
[ "$code" -eq 0 ] || give_up "cogrid reaper --daemon: exit code $code after SIGTERM"

grid=${started#* }
started=$grid
kill -TERM "$grid"
code=0
wait "$grid" || code=$?
started=
[ "$code" -eq 0 ] || give_up "cogrid up --demo: exit code $code after SIGTERM"
! grep -q Traceback up.out reaper.out || give_up "a traceback in a log"
echo "The wheel works by itself."
