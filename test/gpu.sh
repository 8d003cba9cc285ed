#!/usr/bin/env bash
# Runs the tests of the kernels on a GPU host. Needs no PostgreSQL.
#
#	test/gpu.sh [--sanitize] [name...]	default: all tests; with names, the tests whose names contain one of them
#
#	--sanitize	repeats the tests at reduced sizes under memcheck, racecheck and initcheck of compute-sanitizer
#	GPU_TESTS	another executable (default build/gpu-tests, made by `make gpu-tests`)
#
# The exit status is 0 if all tests passed, 2 if the executable is missing. Without a GPU all tests are skipped.
#
# initcheck runs with --unpoisoned: memory that the tests fill with a pattern counts as initialized.
#
# racecheck excludes kernels for which it reports races that are none. The kernels' comments explain why they are correct:
#	argmax_shared_kernel	rows read entries without their locks (struct SharedPairs in kernels/hist_argmax.cu)
#	exchange_kernel			bar.arrive orders warps before those that wait in bar.sync, which racecheck does not recognize
#							(kernels/hist_exchange.cu)
set -uo pipefail
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
# the tests of the server's sessions over stored columns, whose TAP is changed to this format
if [[ $# -eq 0 && -z ${GPU_TESTS:-} ]] && nvidia-smi >/dev/null 2>&1; then
    for t in few many; do
        [[ ! -x $top/build/gpu-resident-$t ]] || "$top/build/gpu-resident-$t" | sed -e 's/^not ok [0-9]* -/FAILED/' \
            -e 's/^ok [0-9]* - /ok /' || exit
    done
fi
[[ -n $sanitize ]] || exit 0
excluded_kernels='regex=.*(argmax_shared_kernel|exchange_kernel).*'
status=0
for tool in memcheck racecheck initcheck; do
    echo "compute-sanitizer --tool $tool"
    options=(--quick) checks=(--tool "$tool" --error-exitcode 3)
    [[ $tool == initcheck ]] && options+=(--unpoisoned)
    [[ $tool == racecheck ]] && checks+=(--kernel-name-exclude "$excluded_kernels")
    compute-sanitizer "${checks[@]}" "$tests" "${options[@]}" "$@" || status=$?
done
exit "$status"
