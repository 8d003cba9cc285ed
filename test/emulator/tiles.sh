#!/usr/bin/env bash
# Which kernel of tiles SQL's queries over stored columns get, in the running cluster that PGHOST names, whose GPU server is the
# emulated one and writes EMULATOR_REPORT=REPORT.
#
#	test/emulator/tiles.sh REPORT
#
# Prints TAP.  Each query runs three times: what the first one stores and the second one copies to the device, the third one finds
# there.
set -uo pipefail
report=${1:?}
n=0 failed=0

psql -Xq -v ON_ERROR_STOP=1 <<-'EOF' || exit 1
	CREATE EXTENSION IF NOT EXISTS gpuagg;
	CREATE TABLE tiles AS SELECT i, i % 26 AS k, i % 17 AS a, nullif(i % 23, 5) AS b, i % 2 = 0 AS p, nullif(i % 3, 1) = 0 AS q
		FROM generate_series(1, 20000) i;
	VACUUM (ANALYZE) tiles;
EOF
for _ in $(seq 6000); do
	[[ $(psql -XAtqc 'SELECT state FROM gpuagg_devices() LIMIT 1') == ready ]] && break
	sleep 0.05
done

# reaches KERNEL QUERY: as TileKernel has them, 0 light, 1 middle, 2 full
reaches() {
	local query="$2 GROUP BY k;" settings='SET gpuagg.engine = cuda; SET gpuagg.cache = eager; SET gpuagg.replace_builtin = on;' before found

	psql -Xqc "$settings $query $query" >/dev/null
	before=$(wc -l <"$report")
	psql -Xqc "$settings $query" >/dev/null
	found=$(tail -n "+$((before + 1))" "$report" | grep -o 'tiles_kernel<[0-9]' | sort -u | tr '\n' ' ')
	n=$((n + 1))
	if [[ $found == "tiles_kernel<$1 " ]]; then
		echo "ok $n - kernel $1: $2"
	else
		echo "not ok $n - kernel $1: $2: ${found:-no kernel of tiles}"
		failed=1
	fi
}

reaches 0 'SELECT k, count(*), sum(a) FROM tiles WHERE a < 9'
reaches 0 'SELECT k, count(*), sum(a) FROM tiles WHERE q'
reaches 0 'SELECT k, count(*), sum(a) FROM tiles WHERE p AND a <> 3 AND q'
reaches 0 'SELECT k, count(*), sum(b) FILTER (WHERE p) FROM tiles WHERE a < 9 AND b <> 7 AND (p OR b IS NULL)'
reaches 1 'SELECT k, count(*), sum(CASE WHEN p THEN a ELSE b END) FROM tiles WHERE a < 9 AND b <> 7'
reaches 1 'SELECT k, count(*), sum(a) FROM tiles WHERE a < 9 AND CASE WHEN p THEN q ELSE true END'
reaches 2 'SELECT k, stddev(a) FROM tiles WHERE a < 9 AND b <> 7'
echo "1..$n"
psql -Xqc 'DROP TABLE tiles'
exit $failed
