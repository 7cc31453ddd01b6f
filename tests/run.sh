#!/usr/bin/env bash
# The whole suite: the tests on hosts beside all others, since they mostly wait for machines.
#
#   tests/run.sh PYTEST
set -um # -m: what runs in the background can be interrupted, and takes its hosts down
interrupted=2 # pytest's word for it

said=$(mktemp)
"$1" -rs tests/hosts >"$said" 2>&1 &
hosts=$!
trap 'kill -INT "$hosts" 2>/dev/null; wait "$hosts"; rm -f "$said"' EXIT
"$1" -rs --ignore=tests/hosts
code=$?
[ "$code" = "$interrupted" ] && exit "$code"
wait "$hosts" || code=$?
cat "$said"
exit "$code"
