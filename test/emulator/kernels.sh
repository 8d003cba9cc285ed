#!/usr/bin/env bash
# Which kernels of an emulated program its tests have launched.
#
#	test/emulator/kernels.sh REPORT [KERNEL...]
#
# Sums up the reports of programs that ran with EMULATOR_REPORT=REPORT (README.md), by kernel without its template's
# arguments: launches, seconds, instructions of warps, sectors of global memory.  Fails if there is a kernel that none launched,
# but for CUB's, which chooses among its own, pair_kernel, which is asked about and never launched, and those of tests of
# arrays too large for the emulator.  With names of kernels it fails if one of these is not launched, whatever others are;
# tiles_kernel has its first argument, TileKernel.
set -uo pipefail

report=${1:?}
shift
awk -F '\t' -v wanted="$*" '
	$1 == "launch" || $1 == "kernel" {
		name = $2
		sub(/^void /, "", name)
		gsub(/\(anonymous namespace\)::/, "", name)
		tiles = match(name, /^tiles_kernel<[0-9]/) ? substr(name, 14, 1) : ""
		sub(/[<(].*/, "", name)
		name = name tiles
		launches[name] += $1 == "launch"
	}
	$1 == "launch" { seconds[name] += $7; instructions[name] += $8; sectors[name] += $10 }
	END {
		for (i = split(wanted, some, " "); i > 0; i--) {
			launches[some[i]] += 0
			is_wanted[some[i]] = 1
		}
		for (name in launches) {
			printf "%9d %9.3f %14d %12d  %s\n", launches[name], seconds[name], instructions[name], sectors[name], name
			if (launches[name] == 0 && (wanted == "" || name in is_wanted) && name !~ /^(cub::.*|pair_kernel|big_rows|fill_huge|fill_runs)$/) {
				never = never "\nnot ok - " name " is never launched"
			}
		}
		print substr(never, 2) > "/dev/stderr"
		exit(never != "")
	}' "$report" | sort -k 5
