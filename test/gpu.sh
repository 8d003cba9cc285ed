#!/usr/bin/env bash
# All GPU tests, on a GPU host, in one command; needs no PostgreSQL.
#
#	test/gpu.sh [--sanitize] [name...]
#
# Runs build/gpu-tests (made by `make gpu-tests`), whole or the tests whose
# names contain an argument.  --sanitize repeats them at reduced sizes (the
# executable's --quick) under compute-sanitizer's memcheck, racecheck and
# initcheck; for the last with --unpoisoned, as memory that is set to a poison
# counts as initialized.  Without a GPU every test is named and counted as
# skipped.  GPU_TESTS names another executable.
set -u
top=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
tests=${GPU_TESTS:-$top/build/gpu-tests}
sanitize=
if [[ ${1:-} == --sanitize ]]; then
    sanitize=1
    shift
fi
if [[ ! -x $tests ]]; then
    echo "$tests not found: build it with make gpu-tests" >&2
    exit 2
fi
"$tests" "$@" || exit
[[ -n $sanitize ]] || exit 0
status=0
for tool in memcheck racecheck initcheck; do
    echo "compute-sanitizer --tool $tool"
    options=(--quick)
    [[ $tool == initcheck ]] && options+=(--unpoisoned)
    compute-sanitizer --tool "$tool" --error-exitcode 3 "$tests" "${options[@]}" "$@" || status=$?
done
exit "$status"
