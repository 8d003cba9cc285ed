#!/usr/bin/env bash
# Tests tables with foreign partitions (postgres_fdw), in three private clusters. One has a table with partitions in the other two.
#
#	test/fdw.sh [rows]		default 20000
#
#	PG_CONFIG	the PostgreSQL to test
#
# Prints "ok" and "not ok" lines.
#
#	fdw.sql				all aggregates, grouped by the partition key, by other columns and by none, compared with PostgreSQL's own
#						over a local copy; and where the aggregation runs
#	fdw_evil.sql		a server that sends invalid states
#	fdw_encodings.sql	databases of different encodings
#	fdw_types.sql		databases with other identifiers, and with columns of other types
#
# FDW="tree types" runs only these sections: aggregates, tree, forged, encodings, types.
set -uo pipefail
# shellcheck source=test/pg.sh
source "$(dirname "${BASH_SOURCE[0]}")/pg.sh"
pg_need && { [[ -n ${GPUAGG_INSTALLED:-} ]] || pg_install; } || exit 1
rows=${1:-20000}
roots=()
read -ra sections <<<"${FDW:-aggregates tree forged encodings types}"
for section in "${sections[@]}"; do
	[[ $section == @(aggregates|tree|forged|encodings|types) ]] || { echo "not ok - FDW: there is no section \"$section\""; exit 2; }
done

stop_all() {
	for pg_root in "${roots[@]}"; do
		pg_stop
	done
}
trap stop_all EXIT

# node PORT: starts a cluster, and sets PGHOST and PGPORT to it
node() {
	pg_start "shared_preload_libraries='gpuagg'" "port=$1" jit=off autovacuum=off || exit 1
	roots+=("$pg_root")
	export PGPORT=$1
	sql "CREATE EXTENSION gpuagg"
}

sql() {
	local command args=()

	for command; do
		args+=(-c "$command")
	done
	psql -XqAt -v ON_ERROR_STOP=1 "${args[@]}" || { echo "not ok: could not set up"; exit 1; }
}

columns="n int8, region int, k int, txt text, b bool, i2 int2, i4 int4, i8 int8, f4 float4, f8 float8, num numeric(12,2), x numeric,
	iv interval, m money, d date, tm time, ts timestamp, tz timestamptz, o oid, arr int[], ch char(3), ip inet, lsn pg_lsn, ti tid,
	ttz timetz, x8 xid8"
data="SELECT n, n % 5, CASE WHEN n % 17 > 0 THEN n * 7 % 53 END,
	CASE WHEN n % 7 > 0 THEN chr((65 + n % 11 + n % 2 * 32)::int) || n % 3 END, CASE WHEN n % 6 > 0 THEN n % 3 = 0 END,
	CASE WHEN n % 8 > 0 THEN n % 101 - 50 END, CASE WHEN n % 9 > 0 THEN n * 31 % 1009 - 500 END,
	CASE WHEN n % 10 > 0 THEN n * 104729 % 100000007 - 50000000 END, CASE WHEN n % 11 > 0 THEN (n % 97 - 48) / 8.0 END,
	CASE WHEN n % 12 > 0 THEN (n % 211 - 105) / 4.0 END, CASE WHEN n % 13 > 0 THEN (n % 10007) / 100.0 - 50 END,
	CASE WHEN n % 14 > 0 THEN n % 1013 / (10.0 ^ (n % 4)::numeric) END, (n % 1000) * interval '1 minute 3 days',
	(n % 1000)::int::money, date '2020-01-01' + (n % 500)::int, time '00:00' + n * interval '1 s',
	timestamp '2020-01-01' + n * interval '1 min', timestamptz '2020-01-01 UTC' + n * interval '1 min', (n % 1000)::int::oid,
	ARRAY[n % 10, n % 3]::int[], chr((65 + n % 26)::int), ('10.0.0.' || n % 200)::inet, ('0/' || n % 1000)::pg_lsn,
	format('(%s,1)', n % 100)::tid, (time '00:00' + n * interval '1 s')::timetz, (n % 100)::text::xid8
	FROM generate_series(1::int8, $rows) n"

# regions 0 and 2 are on the first server, 1 and 3 on the second; one partition of each is empty
for i in 0 1; do
	node $((5441 + i))
	for region in $i $((i + 2)); do
		sql "CREATE TABLE r$region ($columns)" "INSERT INTO r$region SELECT * FROM ($data) s(n, region) WHERE region = $region"
	done
	sql "CREATE TABLE r$((i + 5)) ($columns)" "ANALYZE"
done
node 5443
sql "CREATE EXTENSION postgres_fdw" "CREATE TABLE flat ($columns)" "INSERT INTO flat $data" \
	"CREATE TABLE t ($columns) PARTITION BY LIST (region)"
for i in 0 1; do
	sql "CREATE SERVER s$i FOREIGN DATA WRAPPER postgres_fdw
			OPTIONS (host '${roots[i]}/sock', port '$((5441 + i))', dbname 'postgres', extensions 'gpuagg', async_capable 'true')" \
		"CREATE USER MAPPING FOR PUBLIC SERVER s$i OPTIONS (user 'postgres', password_required 'false')"
	for region in $i $((i + 2)) $((i + 5)); do
		sql "CREATE FOREIGN TABLE p$region PARTITION OF t FOR VALUES IN ($region) SERVER s$i OPTIONS (table_name 'r$region')" \
			"ANALYZE p$region"
	done
done
sql "CREATE TABLE own PARTITION OF t FOR VALUES IN (4)" "INSERT INTO own SELECT * FROM flat WHERE region = 4" \
	"CREATE TABLE names AS SELECT k, 'name ' || k % 7 AS name FROM generate_series(0, 52) k" \
	"CREATE FUNCTION upper_here(text) RETURNS text LANGUAGE plpgsql STRICT IMMUTABLE AS 'BEGIN RETURN upper(\$1); END'" \
	"CREATE TYPE mood AS ENUM ('sad', 'glad')" \
	"CREATE FUNCTION mood_of(bool) RETURNS mood LANGUAGE sql IMMUTABLE AS
		\$\$ SELECT CASE WHEN \$1 THEN 'glad'::mood ELSE 'sad' END \$\$" \
	"CREATE VIEW t_by_k AS SELECT k, gpu_sum(i4) AS total FROM t GROUP BY k" \
	"CREATE ROLE reader" "CREATE ROLE stranger" "GRANT SELECT ON t, flat TO reader" "ALTER TABLE t ENABLE ROW LEVEL SECURITY" \
	"CREATE POLICY most ON t FOR SELECT TO reader USING (region <> 2)" "ANALYZE" \
	"ALTER DATABASE postgres SET enable_partitionwise_aggregate = on"

# All aggregates and queries of all kinds (test/fdw.sql).
test_aggregates() {
	psql -XqAt -f "$top/test/fdw.sql" 2>&1 | sed 's/^not ok permission: permission denied for table .*/ok permission/'
}

# A tree of servers: a database whose table has one partition, the partitioned table of this cluster.
test_tree() {
	tree="SELECT k, gpu_avg(num), gpu_sum(i8), gpu_avg(i4), gpu_count(*), gpu_stddev(i4), gpu_histogram(f8, -50, 50, 7), gpu_approx_count_distinct(txt)
		FROM t GROUP BY k ORDER BY k"
	sql "CREATE DATABASE top"
	expected=$(sql "SET gpuagg.enabled = off" "${tree/FROM t/FROM flat}")
	export PGDATABASE=top
	sql "CREATE EXTENSION gpuagg" "CREATE EXTENSION postgres_fdw" "CREATE TABLE t ($columns) PARTITION BY LIST (region)" \
		"CREATE SERVER middle FOREIGN DATA WRAPPER postgres_fdw OPTIONS (host '$PGHOST', port '$PGPORT', dbname 'postgres', extensions 'gpuagg')" \
		"CREATE USER MAPPING FOR PUBLIC SERVER middle OPTIONS (user 'postgres')" \
		"CREATE FOREIGN TABLE m PARTITION OF t DEFAULT SERVER middle OPTIONS (table_name 't')" "ANALYZE m" \
		"ALTER DATABASE top SET enable_partitionwise_aggregate = on"
	plan=$(sql "EXPLAIN (VERBOSE, COSTS off) $tree")
	[[ $(sql "$tree") == "$expected" && $plan == *"PARTIAL gpu_avg"* ]] && echo "ok a tree of servers" || echo "not ok a tree of servers"
	remote=$(sed -n 's/.*Remote SQL: //p' <<<"$plan")
	plan=$(PGDATABASE=postgres sql "EXPLAIN (VERBOSE, COSTS off) $remote")
	[[ $plan == *"PARTIAL gpuagg_numeric_avg_accum_state"* ]] && echo "ok states of states" || echo "not ok states of states"
	export PGDATABASE=postgres
}

# A server that sends bytes that are no valid state: the query fails, and nothing crashes (test/fdw_evil.sql).
test_forged() {
	sql "CREATE DATABASE evil"
	export PGDATABASE=evil
	sql "CREATE TABLE r (k int, i4 int, i8 int8, num numeric, f8 float8, txt text)" "CREATE TABLE sent (bytes bytea)" "INSERT INTO sent VALUES ('')" \
		"INSERT INTO r SELECT i % 3, i, i, i, i, i FROM generate_series(1, 100) i"
	sql "CREATE FUNCTION gpuagg_as_type(anyelement, anyelement, int = -1, text[] = NULL) RETURNS anyelement IMMUTABLE LANGUAGE sql AS 'SELECT \$1'"
	while IFS='|' read -r name args; do
		sql "CREATE FUNCTION f_$name(bytea, $args) RETURNS bytea LANGUAGE plpgsql AS 'BEGIN RETURN coalesce(\$1, (SELECT bytes FROM public.sent)); END'" \
			"CREATE AGGREGATE gpuagg_${name}_state ($args) (SFUNC = f_$name, STYPE = bytea)"
	done <<'STATES'
numeric_avg_accum|numeric
int8_avg_accum|int8
int4_accum|int4
numeric_accum|numeric
sketch_transfn|float8, float8
histogram_accum|float8, float8, float8, int4
argmax_transfn|anyelement, anycompatible
argmax_n_transfn|anyelement, anycompatible, int4
top_k_transfn|anyelement, int4
interval_avg_accum|interval
STATES
	export PGDATABASE=postgres
	sql "CREATE SERVER evil FOREIGN DATA WRAPPER postgres_fdw OPTIONS (host '$PGHOST', port '$PGPORT', dbname 'evil', extensions 'gpuagg', fdw_tuple_cost '1000')" \
		"CREATE USER MAPPING FOR PUBLIC SERVER evil OPTIONS (user 'postgres')" \
		"CREATE TABLE bad (k int, i4 int, i8 int8, num numeric, f8 float8, txt text) PARTITION BY LIST (i4)" \
		"CREATE FOREIGN TABLE bad1 PARTITION OF bad DEFAULT SERVER evil OPTIONS (table_name 'r')" "ANALYZE bad1" \
		"CREATE FOREIGN TABLE sent (bytes bytea) SERVER evil"
	psql -XqAt -f "$top/test/fdw_evil.sql" 2>&1
}

# query_servers DATABASE TABLE SERVER...: runs test/fdw_encodings.sql in DATABASE, over partitions that are TABLE in the databases SERVER
query_servers() {
	local name=$1 table=$2 other args=()

	shift 2
	for other; do
		args+=("CREATE SERVER $other FOREIGN DATA WRAPPER postgres_fdw OPTIONS (host '$PGHOST', port '$PGPORT', dbname '$other',
				extensions 'gpuagg', fdw_tuple_cost '1000')" \
			"CREATE USER MAPPING FOR PUBLIC SERVER $other OPTIONS (user 'postgres')" \
			"CREATE FOREIGN TABLE p_$other PARTITION OF t FOR VALUES IN ('$other') SERVER $other OPTIONS (table_name '$table')")
	done
	PGDATABASE=$name sql "CREATE TABLE t ($columns) PARTITION BY LIST (part)" "${args[@]}" "ALTER TABLE t ATTACH PARTITION w FOR VALUES IN ('$name')" \
		"ALTER DATABASE $name SET enable_partitionwise_aggregate = on"
	PGDATABASE=$name psql -XqAt -v database="$name" -f "$top/test/fdw_encodings.sql" 2>&1
}

# Databases of several encodings (test/fdw_encodings.sql). Each has words that its encoding can express. The words have the same
# order in all databases, because postgres_fdw expects that of texts of one collation. A querying database has a local partition
# and foreign ones.
test_encodings() {
	latin="'café', 'Ärger', 'weiß', 'Weiß', 'zebra', 'été', ''"
	declare -A encodings=([utf8]=UTF8 [latin]=LATIN1 [euc]=EUC_JP [cyr]=WIN1251 [ascii]=SQL_ASCII)
	declare -A words=([latin]="$latin" [euc]="'日本', '亜', 'カナ', 'zebra', ''" [cyr]="'Ёлка', 'еж', 'Москва', 'zebra', ''"
		[utf8]="$latin, '日本', 'カナ', 'Ёлка', 'еж'" [ascii]="$latin, '日本'")
	local columns="part text, k int, txt text, vc varchar(20), ch char(8), nm name, arr text[], j jsonb"
	export PGCLIENTENCODING=UTF8
	for name in utf8 latin euc cyr ascii; do
		sql "CREATE DATABASE $name ENCODING '${encodings[$name]}' TEMPLATE template0"
		[[ $name != ascii ]] || export PGCLIENTENCODING=SQL_ASCII
		PGDATABASE=$name sql "CREATE EXTENSION gpuagg" "CREATE EXTENSION postgres_fdw" "CREATE TABLE w ($columns)" \
			"INSERT INTO w SELECT '$name', i % 3, x, x, x, x, ARRAY[x, 'a'], jsonb_build_object('w', x)
				FROM unnest(ARRAY[${words[$name]}]) WITH ORDINALITY u(x, j), generate_series(j, j + 4) i"
		export PGCLIENTENCODING=UTF8
	done
	PGDATABASE=utf8 sql "CREATE VIEW w_latin AS SELECT * FROM w WHERE txt !~ '[日カЁе]'"
	query_servers utf8 w latin euc cyr
	query_servers latin w_latin utf8
	query_servers ascii w latin utf8
}

# Foreign tables whose column types or object identifiers differ from those of the remote tables (test/fdw_types.sql).
test_types() {
	sql "CREATE DATABASE far" "CREATE DATABASE near"
	PGDATABASE=far sql "CREATE EXTENSION gpuagg" "CREATE TYPE number AS ENUM ('10', '9', '2', '-3')" "CREATE DOMAIN small AS int" \
		"CREATE TABLE far_rows AS SELECT 1 AS part, i AS n, i % 4 AS h, i2, i2::int AS i4, i2::int8 AS i8, i2 / 4.0 AS num, i2::numeric(4, 2) AS short,
				i2::float4 / 10 AS f4, i2::float8 / 10 AS f8, i2::text AS txt, i2::text::varchar(9) AS vc, i2::text::char(5) AS ch,
				i2::text::number AS en, i2::small AS dom, i2 > 2 AS b, d, to_char(d, 'DD/MM/YYYY') AS day_text,
				d + time '12:30:15.678' AS ts, d AT TIME ZONE 'Asia/Tokyo' AS tz, time '01:02:03.5' + i2 * interval '1 min' AS tm,
				i2 * interval '1 day 2:03' AS iv, i2::int::money AS m, ('10.0.0.' || abs(i2))::inet AS ip, i2::text::name AS nm
			FROM (SELECT i, (ARRAY[10, 9, 2, -3, NULL])[1 + i % 5]::int2 AS i2, date '2024-03-09' + i % 7 AS d FROM generate_series(1, 40) i) s" \
		"CREATE TABLE alpha ()" "CREATE TABLE omega ()" "CREATE TYPE feeling AS ENUM ('sad', 'glad')" \
		"CREATE TABLE far_names AS SELECT 1 AS part, i AS n, i % 3 AS h, r AS c, ARRAY[r, 'omega'] AS cs,
				CASE WHEN i % 2 = 0 THEN 'feeling'::regtype ELSE 'int' END AS ty, i::oid AS o
			FROM (SELECT i, (ARRAY['alpha', 'omega', 'pg_class'])[1 + i % 3]::regclass r FROM generate_series(1, 20) i) s" \
		"CREATE TABLE far_states AS SELECT 'one' AS agg, gpuagg_merge(gpuagg_pack('gpu_argmax(anyelement, anycompatible)', 'alpha'::regclass, 1)) AS state
			UNION ALL SELECT 'array', gpuagg_merge(gpuagg_pack('gpu_argmax(anyelement, anycompatible)', ARRAY['alpha', 'omega']::regclass[], 1))" \
		"CREATE TABLE far_words AS SELECT 1 AS part, CASE i % 10 WHEN 0 THEN 'often' WHEN 1 THEN 'OFTEN' ELSE 'word ' || i END AS word FROM generate_series(1, 10000) i"
	PGDATABASE=near sql "CREATE EXTENSION gpuagg" "CREATE EXTENSION postgres_fdw" \
		"CREATE SERVER far FOREIGN DATA WRAPPER postgres_fdw OPTIONS (host '$PGHOST', port '$PGPORT', dbname 'far', extensions 'gpuagg', fdw_tuple_cost '1000')" \
		"CREATE USER MAPPING FOR PUBLIC SERVER far OPTIONS (user 'postgres')" "ALTER DATABASE near SET enable_partitionwise_aggregate = on"
	PGDATABASE=near psql -XqAt -f "$top/test/fdw_types.sql" 2>&1 | grep -v '^$'
}

# The servers execute the queries by the custom scan, except where core's plan is cheaper.
check_servers() {
	for i in 0 1; do
		PGHOST=${roots[i]}/sock PGPORT=$((5441 + i)) sql "SELECT CASE WHEN sum(calls) FILTER (WHERE event = 'taken') > 300 AND
				count(*) FILTER (WHERE event = 'refused' AND reason !~ 'cheaper') = 0 THEN 'ok' ELSE 'not ok' END
				|| format(' server %s ran %s custom scans', $i, sum(calls) FILTER (WHERE event = 'taken')) FROM gpuagg_stats"
	done
}

for section in "${sections[@]}"; do
	"test_$section"
done
[[ " ${sections[*]} " != *" aggregates "* ]] || check_servers
