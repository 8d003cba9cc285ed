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
#
# racecheck leaves out kernels whose accesses to shared memory race for it alone; the kernels' heads say why they are right:
#	argmax_shared_kernel	rows look at entries without their locks (struct SharedPairs in kernels/hist_argmax.cu)
#	exchange_kernel			warps that bar.arrive lets through are ordered with those that bar.sync waits for, which
#							racecheck takes for no order (kernels/hist_exchange.cu)
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
# the server's sessions over stored columns, which print TAP
if [[ $# -eq 0 && -z ${GPU_TESTS:-} ]] && nvidia-smi >/dev/null 2>&1; then
    for t in few many; do
        [[ ! -x $top/build/gpu-resident-$t ]] || "$top/build/gpu-resident-$t" | sed -e 's/^not ok [0-9]* -/FAILED/' \
            -e 's/^ok [0-9]* - /ok /' || exit
    done
fi
[[ -n $sanitize ]] || exit 0
races_meant='regex=.*(argmax_shared_kernel|exchange_kernel).*'
status=0
for tool in memcheck racecheck initcheck; do
    echo "compute-sanitizer --tool $tool"
    options=(--quick) checks=(--tool "$tool" --error-exitcode 3)
    [[ $tool == initcheck ]] && options+=(--unpoisoned)
    [[ $tool == racecheck ]] && checks+=(--kernel-name-exclude "$races_meant")
    compute-sanitizer "${checks[@]}" "$tests" "${options[@]}" "$@" || status=$?
done
exit "$status"
