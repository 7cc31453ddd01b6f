#!/bin/sh
# Starts a whole grid (embedded server, coordinator, reaper, demo workers) in a directory of its own
# and on a free port, asks it a question, shows who answered, and stops everything again.
#
#   demo.sh COGRID      the program to show, such as .venv/bin/cogrid (its python lies beside it)
set -eu

cogrid=$1
python=$(dirname "$cogrid")/python
home=$(mktemp -d /tmp/cogrid-demo.XXXXXX)
started=

stop() {
    if [ -n "$started" ]; then
        kill -TERM "$started" 2>/dev/null || true
        wait "$started" 2>/dev/null || true
    fi
    rm -rf "$home"
}
trap stop EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

give_up() {
    echo "$1; its log:" >&2
    cat "$home/log" >&2
    exit 1
}

show() {
    printf '\n$ cogrid'
    for word in "$@"; do
        case $word in
            *" "*) printf ' "%s"' "$word" ;;
            *) printf ' %s' "$word" ;;
        esac
    done
    echo
    "$cogrid" "$@"
}

port=$("$python" -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
# Nothing that is configured on this machine takes part.
for name in $(env | sed -n 's/^\(COGRID_[A-Z_]*\)=.*/\1/p'); do unset "$name"; done
touch "$home/cogrid.toml"
export XDG_STATE_HOME="$home" COGRID_CONFIG="$home/cogrid.toml"
export COGRID_COORDINATOR_LISTEN="127.0.0.1:$port" COGRID_CLIENT_URL="http://127.0.0.1:$port"

echo "\$ cogrid up --demo &"
"$cogrid" up --demo >"$home/log" 2>&1 &
started=$!

ready() {
    "$python" - "$port" <<'PYTHON'
import sys, urllib.request
try:
    urllib.request.urlopen(f"http://127.0.0.1:{sys.argv[1]}/readyz", timeout=5).close()
except OSError:
    sys.exit(1)
PYTHON
}

tries=0
until ready; do
    kill -0 "$started" 2>/dev/null || { started=; give_up "the grid ended before it was ready"; }
    tries=$((tries + 1))
    [ "$tries" -lt 120 ] || give_up "the grid was not ready within 30 seconds"
    sleep 0.25
done

show chat --model demo-echo "What can you do with three old computers?"
show status

kill -TERM "$started"
code=0
wait "$started" || code=$?
started=
[ "$code" -eq 0 ] || give_up "the grid stopped with exit code $code"
echo
echo "Stopped. Nothing is left running, and nothing on disk."
