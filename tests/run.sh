#!/usr/bin/env bash
# The whole suite. Tests on hosts mostly wait for machines, so they run beside the others; but not
# beside whole grids, which measure how long things take.
#
#   tests/run.sh PYTEST
set -um # -m: what runs in the background can be interrupted, and takes its hosts down
interrupted=2 # pytest's word for it

said=$(mktemp)
COGRID_TEST_SKIPS=$(mktemp)
export COGRID_TEST_SKIPS
"$1" -rs tests/hosts >"$said" 2>&1 &
hosts=$!
trap 'kill -INT "$hosts" 2>/dev/null; wait "$hosts"; rm -f "$said" "$COGRID_TEST_SKIPS"' EXIT
code=0
others() {
    "$@" || code=$?
    [ "$code" != "$interrupted" ] || exit "$code"
}
others "$1" -rs --ignore=tests/hosts --ignore=tests/e2e
wait "$hosts" || code=$?
cat "$said"
others "$1" -rs tests/e2e

if [ -s "$COGRID_TEST_SKIPS" ]; then
    echo "Skipped:"
    cat "$COGRID_TEST_SKIPS"
else
    echo "Nothing was skipped."
fi
exit "$code"
