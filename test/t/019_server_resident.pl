# Rows of which the GPU server has copies: answers of all operations against core's, and what makes rows
# come by the feed, or the CPU engine start over.
use strict;
use warnings;
use GpuaggNode;
use PostgreSQL::Test::Utils;
use Resident;
use Test::More;

my $node = GpuaggNode->start_new('main', server => 1, conf => <<CONF);
gpuagg.require = 'require'
gpuagg.engine = 'cuda'
gpuagg.cache = 'eager'
gpuagg.cache_memory = '64MB'
gpuagg.cache_renew = 0
autovacuum = off
timezone = 'UTC'
extra_float_digits = -3
CONF
my $rows = 60000;

$node->safe_psql('postgres', <<SQL);
CREATE TABLE t (k int, k2 smallint, i2 smallint, i4 int, i8 bigint, f4 float4, f8 float8, n numeric(12,2), n0 numeric(8,0),
	d date, ts timestamp, tz timestamptz, tm time, o oid, b bool, c "char", m money, txt text, z int, v int);
INSERT INTO t SELECT i % 100, i % 7, i % 200 - 100, i * 7919 % 100000 - 50000, i::int8 * 1000003, (i % 50) + 0.25,
	(i % 1000) / 8.0 + 0.5, (i % 5000 - 2500) / 100.0, i % 90, date '1999-12-25' + i % 1000,
	timestamp '1999-12-31 22:00' + i * interval '7 minutes', timestamptz '2000-01-01 00:00+00' + i * interval '11 minutes',
	time '00:00' + i % 86400 * interval '1 second', (i * 7919::int8 * 65537 % 4294967296)::oid, i % 3 = 0, (65 + i % 26)::"char", i * 0.01::money,
	't' || i % 10, i % 5, i
FROM generate_series(1, $rows) i;
UPDATE t SET i4 = NULL, f8 = NULL, n = NULL, b = NULL, d = NULL, ts = NULL, o = NULL, k2 = NULL WHERE i2 % 13 = 0;
VACUUM FREEZE ANALYZE t;
SQL

$Resident::node = $node;
ok($node->wait_until_ready, 'the server starts');

# Builds all columns once; then they are uploaded by whichever query reads them first.
$node->safe_psql('postgres', 'SELECT gpuagg_cache_prewarm(\'t\')');

# keys of all widths, ranges and numbers
resident("SELECT k, gpu_count(*), gpu_sum(i4), gpu_avg(i8) FROM t GROUP BY k ORDER BY k");
resident("SELECT k2, gpu_count(i4), gpu_count(f8) FROM t GROUP BY k2 ORDER BY k2");
resident("SELECT o, gpu_count(*) FROM t GROUP BY o ORDER BY o LIMIT 20");
resident("SELECT b, c, gpu_count(*), gpu_max(i4) FROM t GROUP BY b, c ORDER BY b, c");
resident("SELECT i8, gpu_count(*) FROM t GROUP BY i8 ORDER BY i8 LIMIT 5");
resident("SELECT d, gpu_sum(n) FROM t GROUP BY d ORDER BY d LIMIT 50");
resident("SELECT i8, ts, gpu_count(*) FROM t GROUP BY i8, ts ORDER BY 1 LIMIT 5", 'NULLs in GROUP BY keys of 16 bytes are not supported on the GPU');
resident("SELECT k, k2, b, gpu_min(d), gpu_max(ts) FROM t GROUP BY k, k2, b ORDER BY 1, 2, 3 LIMIT 100");

# keys that are computed
resident("SELECT k % 10, gpu_count(*) FROM t GROUP BY 1 ORDER BY 1");
resident("SELECT i4 / 1000 + 3, gpu_count(*) FROM t GROUP BY 1 ORDER BY 1");
resident("SELECT date_trunc('month', ts), gpu_count(*), gpu_sum(n) FROM t GROUP BY 1 ORDER BY 1");
resident("SELECT date_trunc('day', tz), gpu_count(*) FROM t GROUP BY 1 ORDER BY 1 LIMIT 30");
resident("SELECT CASE WHEN i4 > 0 THEN 1 WHEN i4 IS NULL THEN 2 ELSE 3 END, gpu_count(*) FROM t GROUP BY 1 ORDER BY 1");
resident("SELECT width_bucket(f8, 0, 125, 10), gpu_count(*) FROM t GROUP BY 1 ORDER BY 1");
resident("SELECT i4 IS NULL, b IS NOT TRUE, gpu_count(*) FROM t GROUP BY 1, 2 ORDER BY 1, 2");
resident("SELECT coalesce(i4, 5) > i2, gpu_count(*) FROM t GROUP BY 1 ORDER BY 1");

# no keys, no rows
resident("SELECT gpu_count(*), gpu_sum(i4), gpu_min(n), gpu_max(n), gpu_avg(n) FROM t WHERE i4 > -10000000");
resident("SELECT gpu_count(*), gpu_sum(i4), gpu_min(n) FROM t WHERE i4 + 1 > 10000000");
resident("SELECT k, gpu_count(*), gpu_sum(i4), gpu_min(n) FROM t WHERE i4 + 1 > 10000000 GROUP BY k");

# arguments and their types
resident("SELECT k, gpu_sum(n * n0), gpu_sum(n + 1.005), gpu_avg(-n), gpu_sum(abs(n)), gpu_max(n - n0) FROM t GROUP BY k ORDER BY k");
resident("SELECT k, gpu_sum(f8 * 2 + f4), gpu_avg(f4), gpu_stddev(i4), gpu_corr(f8, i4) FROM t GROUP BY k ORDER BY k");
resident("SELECT k, gpu_var_pop(f8), gpu_regr_slope(i4::float8, f8), gpu_sum(i2::float8), gpu_sum(n::float8) FROM t GROUP BY k ORDER BY k");
resident("SELECT k, gpu_min(f8), gpu_max(f8), gpu_min(f4 - 30), gpu_max(sqrt(f8)), gpu_min(floor(f8)) FROM t GROUP BY k ORDER BY k");
resident("SELECT k, gpu_bool_and(b), gpu_bool_or(i4 > 49000), gpu_every(i4 < 60000 OR b) FROM t GROUP BY k ORDER BY k");
resident("SELECT k, gpu_bit_and(i4), gpu_bit_or(i4 & 1023), gpu_sum(i4 # 77), gpu_sum(~i2) FROM t GROUP BY k ORDER BY k");
resident("SELECT k, gpu_count(m), gpu_min(tm), gpu_max(o), gpu_count(c) FROM t GROUP BY k ORDER BY k");
resident("SELECT k, gpu_max(extract(year FROM d)), gpu_sum(extract(dow FROM ts)), gpu_sum(extract(second FROM ts)), gpu_sum(extract(week FROM d)) FROM t GROUP BY k ORDER BY k");
resident("SELECT k, gpu_sum(date_part('epoch', ts)), gpu_sum(date_part('doy', tz)), gpu_max(d + i2), gpu_sum(d - date '2000-01-01') FROM t GROUP BY k ORDER BY k");
resident("SELECT k, gpu_sum(greatest(i4, i2, 5)), gpu_sum(least(i4, k)), gpu_sum(nullif(i4 % 10, 3)), gpu_count(nullif(b, true)) FROM t GROUP BY k ORDER BY k");
resident("SELECT k, gpu_sum(CASE k2 WHEN 1 THEN i4 WHEN 2 THEN -i4 END), gpu_sum(CASE WHEN z = 0 THEN NULL ELSE v / z END) FROM t GROUP BY k ORDER BY k");
resident("SELECT k, gpu_sum(5), gpu_count(NULL::int), gpu_max(7.25), gpu_sum(1.5::float8) FROM t GROUP BY k ORDER BY k");

# conditions
resident("SELECT k, gpu_count(*) FROM t WHERE i4 BETWEEN -30000 AND 20000 AND n > 1.234 GROUP BY k ORDER BY k");
resident("SELECT k, gpu_count(*) FROM t WHERE k2 IN (1, 3, 5) AND d NOT IN ('2000-01-03', '2001-07-08') GROUP BY k ORDER BY k");
resident("SELECT k, gpu_count(*) FROM t WHERE k2 NOT IN (1, NULL) OR i4 < 0 GROUP BY k ORDER BY k");
resident("SELECT k, gpu_count(*) FROM t WHERE o > 2147483648 AND o <> 5 GROUP BY k ORDER BY k");
resident("SELECT k, gpu_count(*) FROM t WHERE o IN (7919, 4294967295, 3000000000) OR o < 100000000 GROUP BY k ORDER BY k");
resident("SELECT k, gpu_count(*) FROM t WHERE i4 IS DISTINCT FROM i2 AND (b OR b IS NULL) GROUP BY k ORDER BY k");
resident("SELECT k, gpu_count(*) FROM t WHERE d < timestamp '2001-01-01 10:00' AND ts >= date '2000-02-29' GROUP BY k ORDER BY k");
resident("SELECT k, gpu_sum(v) FILTER (WHERE b), gpu_count(*) FILTER (WHERE i4 > 0), gpu_sum(i4) FILTER (WHERE NOT b OR k2 = 3) FROM t GROUP BY k ORDER BY k");
resident("SELECT k, gpu_sum(v / z) FROM t WHERE z <> 0 GROUP BY k ORDER BY k");
resident("SELECT k, gpu_count(*) FROM t WHERE z > 0 AND v / z > 10 GROUP BY k ORDER BY k");

# columns in which nothing or little is NULL, and of several values
resident("SELECT gpu_count(*), gpu_sum(k) FROM t WHERE c = 'A'");
resident("SELECT gpu_count(*), gpu_sum(k) FROM t WHERE m > 300::money");

# what only core can tell: an error, or its absence
like(ours("SELECT k, gpu_sum(v / z) FROM t GROUP BY k"), qr/division by zero/, 'a division by zero');
like(ours("SELECT gpu_count(greatest(i4, i8::int, 3)) FROM t"), qr/integer out of range/, 'an overflow of what is only counted');
like(ours("SELECT gpu_sum(i8 * i8 * i8) FROM t"), qr/bigint out of range/, 'an overflow');
resident("SELECT gpu_sum((n * 1000000000) * (n * 1000000000)) FROM t", 'a row needs the CPU');

# what the GPU does not do
resident("SELECT k, gpu_count(*) FROM t WHERE txt || k = 't33' GROUP BY k ORDER BY k", 'an expression is evaluated row by row|a function is not supported on the GPU');
resident("SELECT k, gpu_count(*) FROM t WHERE exp(f8 / 100) > 2 GROUP BY k ORDER BY k", 'the last digit of a function depends on the C library');

# constants that core computes for the first row, and not without one
resident("SELECT k, gpu_count(*) FROM t WHERE i4 < (SELECT 5) GROUP BY k ORDER BY k");
resident("SELECT k, gpu_count(*) FROM t WHERE tz > now() - interval '100 years' GROUP BY k ORDER BY k");
$node->safe_psql('postgres', 'CREATE TABLE empty (i int)');

# the same in other forms
sub same
{
	my ($query, $name) = @_;

	return is(ours($query), core($query), $name);
}
my $sums = 'SELECT k, gpu_count(*), gpu_sum(i4), gpu_max(n) FROM t';

same("PREPARE p(int) AS $sums WHERE i4 > \$1 GROUP BY k ORDER BY k; SET plan_cache_mode = force_generic_plan; EXECUTE p(0); EXECUTE p(100); EXECUTE p(NULL)",
	'a prepared statement');
same("PREPARE p(int) AS SELECT gpu_sum(i + 1 / \$1) FROM empty; SET plan_cache_mode = force_generic_plan; EXECUTE p(0)", 'an empty table')
	for 1 .. 2;
same("SELECT x, (SELECT gpu_sum(i4) FROM t WHERE k = x AND i4 > x) FROM generate_series(1, 5) x", 'rescans with a parameter');
same("SELECT x, y.* FROM generate_series(1, 3) x LEFT JOIN LATERAL ($sums GROUP BY k OFFSET 0) y ON y.k = x ORDER BY 1, 2", 'rescans without');
same("BEGIN; DECLARE c CURSOR FOR $sums GROUP BY k ORDER BY k; FETCH 3 FROM c; DECLARE c2 CURSOR FOR $sums WHERE k > 90 GROUP BY k ORDER BY k; FETCH 2 FROM c2; FETCH 4 FROM c; COMMIT",
	'two cursors');
same("SELECT * FROM ($sums GROUP BY k ORDER BY k) s LIMIT 3", 'a limit');
same("BEGIN; DECLARE c SCROLL CURSOR FOR $sums GROUP BY k ORDER BY k; FETCH 5 FROM c; UPDATE t SET i4 = 7 WHERE k = 6; FETCH 5 FROM c; ROLLBACK",
	'a table that changes under a cursor');
same("BEGIN; UPDATE t SET i4 = 7 WHERE v % 5000 = 6; $sums GROUP BY k ORDER BY k; ROLLBACK; $sums GROUP BY k ORDER BY k", 'own changes');

# changes: what has changed comes by the feed, into the same groups
foreach my $change (
	'UPDATE t SET i4 = 12345 WHERE v = 777', 'DELETE FROM t WHERE v BETWEEN 30000 AND 30100',
	'INSERT INTO t SELECT * FROM t WHERE v < 500', 'VACUUM t', 'UPDATE t SET k = 1000 + k WHERE v % 1000 = 5', 'UPDATE t SET k = NULL WHERE v % 1000 = 6',
	"UPDATE t SET f8 = '1e300' WHERE v = 4711", "UPDATE t SET f8 = 'NaN' WHERE v = 4712", 'TRUNCATE t')
{
	my $seen;

	$node->safe_psql('postgres', $change);
	same("$sums GROUP BY k ORDER BY k", $change);
	same('SELECT k, gpu_sum(f8), gpu_min(f8) FROM t WHERE i4 > 0 GROUP BY k ORDER BY k', "$change: floats");
	$seen = seen("$sums GROUP BY k");
	like($seen, qr/Resident Rows: [1-9]/, "$change: rows on the GPU") if $change !~ /TRUNCATE/;
}

# minus zeros, floats that are not finite or large, numerics without a scale
$node->safe_psql('postgres', <<SQL);
CREATE TABLE f AS SELECT i % 3 AS k, CASE i % 4 WHEN 0 THEN '-0'::float8 WHEN 1 THEN 0 ELSE i END AS zeros, i::float8 * 1e299 AS large,
	CASE WHEN i = 5 THEN 'Infinity' ELSE i::float8 END AS inf, (i * 0.5)::numeric AS free,
	(CASE WHEN i = 7 THEN 'NaN' ELSE i::numeric END)::numeric(10,2) AS nan, NULL::int AS nothing, (i * 1e20)::numeric(30,0) AS wide
FROM generate_series(1, 5000) i;
VACUUM FREEZE f;
SELECT gpuagg_cache_prewarm('f');
SQL
resident('SELECT k, gpu_min(zeros), gpu_max(-zeros) FROM f GROUP BY k ORDER BY k', 'a row needs the CPU');
resident('SELECT k, gpu_sum(zeros) FROM f GROUP BY k ORDER BY k');
resident('SELECT k, gpu_sum(large) FROM f WHERE k < 2 GROUP BY k ORDER BY k', 'a row needs the CPU');
resident('SELECT k, gpu_max(large) FROM f GROUP BY k ORDER BY k');
resident('SELECT k, gpu_sum(inf) FROM f GROUP BY k ORDER BY k', 'no rows are cached');
resident('SELECT k, gpu_sum(nan) FROM f GROUP BY k ORDER BY k', 'no rows are cached');
resident('SELECT k, gpu_sum(wide) FROM f GROUP BY k ORDER BY k', 'no rows are cached');
resident('SELECT k, gpu_sum(nothing), gpu_count(nothing), gpu_max(nothing + 1) FROM f GROUP BY k ORDER BY k');
resident('SELECT nothing, gpu_count(*) FROM f GROUP BY nothing');

# no room, or none wanted
foreach my $memory (1, 0)
{
	$node->safe_psql('postgres', "ALTER SYSTEM SET gpuagg.device_cache_memory = '${memory}MB'");
	$node->reload;
	sleep 1;
	$node->safe_psql('postgres', 'TRUNCATE t; INSERT INTO t (k, i4, n, v, f8) SELECT i % 100, i, i * 0.01, i, i FROM generate_series(1, 100000) i');
	$node->safe_psql('postgres', 'VACUUM FREEZE t');
	same("$sums GROUP BY k ORDER BY k", "$memory MB: the cache in RAM is built");
	same("$sums GROUP BY k ORDER BY k", "$memory MB: columns go to the GPU");
	same('SELECT k, gpu_sum(v), gpu_sum(f8) FROM t GROUP BY k ORDER BY k', "$memory MB: others") for 1 .. 2;
	like(seen("$sums GROUP BY k"), $memory ? qr/Resident Rows: (?:[1-9]|none: no GPU memory is left)/ : qr/none: gpuagg.device_cache_memory is 0/, "$memory MB: seen");
}
$node->safe_psql('postgres', 'ALTER SYSTEM RESET gpuagg.device_cache_memory');
$node->reload;
sleep 1;

# the planner takes one process where the GPU has copies, or can make them
{
	my $settings = "SET gpuagg.engine = 'auto'; SET max_parallel_workers_per_gather = 4; SET min_parallel_table_scan_size = 0; "
		. 'SET parallel_setup_cost = 100; SET parallel_tuple_cost = 0; SET gpuagg.gpu_startup_cost = 10';

	$node->safe_psql('postgres', "INSERT INTO t (k, i4, n, txt) SELECT i % 100, i, i * 0.01, i FROM generate_series(1, 200000) i");
	$node->safe_psql('postgres', 'VACUUM (FREEZE, ANALYZE) t');
	$node->safe_psql('postgres', "SELECT gpuagg_cache_prewarm('t')");
	my %plans = map { $_ => $node->safe_psql('postgres', "$settings; SET gpuagg.cache = $_; EXPLAIN $sums GROUP BY k") } qw(on off);
	unlike($plans{on}, qr/Gather/, 'cached: not in parallel');
	like($plans{off}, qr/Gather/, 'without the cache: in parallel');
	like($node->safe_psql('postgres', "$settings; EXPLAIN $sums WHERE txt <> 'x' GROUP BY k"), qr/Gather/, 'a column that the GPU does not have: in parallel');
}

# a server that is gone takes its copies along
same("$sums GROUP BY k ORDER BY k", 'copies');
my $supervisor = $node->supervisor_pid;
kill 'STOP', $supervisor;	# so that no other server makes them for this query
my $killed = $node->kill_server;
is(ours("SET gpuagg.engine = 'auto'; $sums GROUP BY k ORDER BY k"), core("$sums GROUP BY k ORDER BY k"), 'a server that is gone');
kill 'CONT', $supervisor;
ok($node->wait_for_another_server($killed), 'another server starts');
like(seen("$sums GROUP BY k"), qr/Uploaded: [1-9]/, 'copies are made anew');
unlike(seen("$sums GROUP BY k"), qr/Uploaded/, 'and are there');

done_testing();
