#!/usr/bin/env bash
# Which kernels of an emulated program its tests have launched.
#
#	test/emulator/kernels.sh REPORT
#
# Sums up the reports of programs that ran with EMULATOR_REPORT=REPORT (README.md), by kernel without its template's
# arguments: launches, seconds, instructions of warps, sectors of global memory.  Fails if there is a kernel that none launched,
# but for CUB's, which chooses among its own, pair_kernel, which is asked about and never launched, and those of tests of
# arrays too large for the emulator.
set -uo pipefail

awk -F '\t' '
	$1 == "launch" || $1 == "kernel" {
		name = $2
		sub(/^void /, "", name)
		gsub(/\(anonymous namespace\)::/, "", name)
		sub(/[<(].*/, "", name)
		launches[name] += $1 == "launch"
	}
	$1 == "launch" { seconds[name] += $7; instructions[name] += $8; sectors[name] += $10 }
	END {
		for (name in launches) {
			printf "%9d %9.3f %14d %12d  %s\n", launches[name], seconds[name], instructions[name], sectors[name], name
			if (launches[name] == 0 && name !~ /^(cub::.*|pair_kernel|big_rows|fill_huge|fill_runs)$/) {
				never = never "\nnot ok - " name " is never launched"
			}
		}
		print substr(never, 2) > "/dev/stderr"
		exit(never != "")
	}' "${1:?}" | sort -k 5
