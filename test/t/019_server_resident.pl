# Queries over rows that are cached on the device: keys, arguments, conditions and types of all kinds, in all forms of queries. The
# reference is core's answer. Also: the reasons for which rows are not read from the device, or for which the CPU engine starts over.
use strict;
use warnings;
use GpuaggNode;
use PostgreSQL::Test::Utils;
use Resident;
use Test::More;

my $node = GpuaggNode->start_new('main', cached => 1, conf => <<CONF);
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

# Caches all columns in RAM. The first query that reads a column uploads it.
$node->safe_psql('postgres', 'SELECT gpuagg_cache_prewarm(\'t\')');

# ---- keys of all widths, ranges and numbers ----
is_resident("SELECT k, gpu_count(*), gpu_sum(i4), gpu_avg(i8) FROM t GROUP BY k ORDER BY k");
is_resident("SELECT k2, gpu_count(i4), gpu_count(f8) FROM t GROUP BY k2 ORDER BY k2");
is_resident("SELECT o, gpu_count(*) FROM t GROUP BY o ORDER BY o LIMIT 20");
is_resident("SELECT b, c, gpu_count(*), gpu_max(i4) FROM t GROUP BY b, c ORDER BY b, c");
is_resident("SELECT i8, gpu_count(*) FROM t GROUP BY i8 ORDER BY i8 LIMIT 5");
is_resident("SELECT d, gpu_sum(n) FROM t GROUP BY d ORDER BY d LIMIT 50");
is_resident("SELECT i8, ts, gpu_count(*) FROM t GROUP BY i8, ts ORDER BY 1 LIMIT 5");
is_resident("SELECT i8, ts, i4, gpu_count(*), gpu_sum(v) FROM t GROUP BY i8, ts, i4 ORDER BY 1, 2, 3 LIMIT 50");
is_resident("SELECT k, k2, z, i2, d, b, gpu_count(*), gpu_max(n) FROM t GROUP BY 1, 2, 3, 4, 5, 6 ORDER BY 5 DESC NULLS LAST, 1, 2, 3, 4, 6 LIMIT 70");
is_resident("SELECT txt, n, i8 % 50, tz, gpu_avg(f8) FROM t WHERE i4 > -100 GROUP BY 1, 2, 3, 4 HAVING gpu_count(*) = 1 ORDER BY 4, 1, 2, 3 LIMIT 40");
is_resident("SELECT i8, tz, ts, d, gpu_sum(v) FROM t GROUP BY 1, 2, 3, 4 ORDER BY 5 DESC LIMIT 9");
is_resident("SELECT k, k2, b, gpu_min(d), gpu_max(ts) FROM t GROUP BY k, k2, b ORDER BY 1, 2, 3 LIMIT 100");

# ---- computed keys ----
is_resident("SELECT k % 10, gpu_count(*) FROM t GROUP BY 1 ORDER BY 1");
is_resident("SELECT i4 / 1000 + 3, gpu_count(*) FROM t GROUP BY 1 ORDER BY 1");
is_resident("SELECT date_trunc('month', ts), gpu_count(*), gpu_sum(n) FROM t GROUP BY 1 ORDER BY 1");
is_resident("SELECT date_trunc('day', tz), gpu_count(*) FROM t GROUP BY 1 ORDER BY 1 LIMIT 30");
is_resident("SELECT CASE WHEN i4 > 0 THEN 1 WHEN i4 IS NULL THEN 2 ELSE 3 END, gpu_count(*) FROM t GROUP BY 1 ORDER BY 1");
is_resident("SELECT width_bucket(f8, 0, 125, 10), gpu_count(*) FROM t GROUP BY 1 ORDER BY 1");
is_resident("SELECT i4 IS NULL, b IS NOT TRUE, gpu_count(*) FROM t GROUP BY 1, 2 ORDER BY 1, 2");
is_resident("SELECT coalesce(i4, 5) > i2, gpu_count(*) FROM t GROUP BY 1 ORDER BY 1");

# ---- no keys, no rows ----
is_resident("SELECT gpu_count(*), gpu_sum(i4), gpu_min(n), gpu_max(n), gpu_avg(n) FROM t WHERE i4 > -10000000");
is_resident("SELECT gpu_count(*), gpu_sum(i4), gpu_min(n) FROM t WHERE i4 + 1 > 10000000");
is_resident("SELECT k, gpu_count(*), gpu_sum(i4), gpu_min(n) FROM t WHERE i4 + 1 > 10000000 GROUP BY k");

# ---- many aggregates ----
is_resident('SELECT k, ' . join(', ', map { "gpu_sum(i2 + $_)" } 0 .. 89) . ' FROM t GROUP BY k ORDER BY k');
is_resident('SELECT k, ' . join(', ', map { "gpu_sum(i4) FILTER (WHERE v % 100 = $_)" } 0 .. 9) . ', ' . join(', ', map { "gpu_min(i4), gpu_max(v), gpu_sum($_), gpu_stddev($_)" } qw(i2 i4 v i8 f4 f8)) .
	' FROM t GROUP BY k ORDER BY k');
is_core_answer('SELECT k, ' . join(', ', map { "gpu_sum(i4 * $_) FILTER (WHERE i2 % 60 = $_)" } 1 .. 60) . ', gpu_count(*) FROM t GROUP BY k ORDER BY k');

# ---- arguments and their types ----
is_resident("SELECT k, gpu_sum(n * n0), gpu_sum(n + 1.005), gpu_avg(-n), gpu_sum(abs(n)), gpu_max(n - n0) FROM t GROUP BY k ORDER BY k");
is_resident("SELECT k, gpu_sum(f8 * 2 + f4), gpu_avg(f4), gpu_stddev(i4) FROM t GROUP BY k ORDER BY k");
is_resident("SELECT k, gpu_avg(f4), gpu_corr(f8, i4) FROM t GROUP BY k ORDER BY k", $node->regression_reason);
is_resident("SELECT k, gpu_var_pop(f8), gpu_sum(i2::float8), gpu_sum(n::float8) FROM t GROUP BY k ORDER BY k");
is_resident("SELECT k, gpu_var_pop(f8), gpu_regr_slope(i4::float8, f8) FROM t GROUP BY k ORDER BY k", $node->regression_reason);
is_resident("SELECT k, gpu_min(f8), gpu_max(f8), gpu_min(f4 - 30), gpu_max(sqrt(f8)), gpu_min(floor(f8)) FROM t GROUP BY k ORDER BY k");
is_resident("SELECT k, gpu_bool_and(b), gpu_bool_or(i4 > 49000), gpu_every(i4 < 60000 OR b) FROM t GROUP BY k ORDER BY k");
is_resident("SELECT k, gpu_bit_and(i4), gpu_bit_or(i4 & 1023), gpu_sum(i4 # 77), gpu_sum(~i2) FROM t GROUP BY k ORDER BY k");
is_resident("SELECT k, gpu_count(m), gpu_min(tm), gpu_max(o), gpu_count(c) FROM t GROUP BY k ORDER BY k");
is_resident("SELECT k, gpu_max(extract(year FROM d)), gpu_sum(extract(dow FROM ts)), gpu_sum(extract(second FROM ts)), gpu_sum(extract(week FROM d)) FROM t GROUP BY k ORDER BY k");
is_resident("SELECT k, gpu_sum(date_part('epoch', ts)), gpu_sum(date_part('doy', tz)), gpu_max(d + i2), gpu_sum(d - date '2000-01-01') FROM t GROUP BY k ORDER BY k");
is_resident("SELECT k, gpu_sum(greatest(i4, i2, 5)), gpu_sum(least(i4, k)), gpu_sum(nullif(i4 % 10, 3)), gpu_count(nullif(b, true)) FROM t GROUP BY k ORDER BY k");
is_resident("SELECT k, gpu_sum(CASE k2 WHEN 1 THEN i4 WHEN 2 THEN -i4 END), gpu_sum(CASE WHEN z = 0 THEN NULL ELSE v / z END) FROM t GROUP BY k ORDER BY k");
is_resident("SELECT k, gpu_sum(5), gpu_count(NULL::int), gpu_max(7.25), gpu_sum(1.5::float8) FROM t GROUP BY k ORDER BY k");

# ---- conditions ----
is_resident("SELECT k, gpu_count(*) FROM t WHERE i4 BETWEEN -30000 AND 20000 AND n > 1.234 GROUP BY k ORDER BY k");
is_resident("SELECT k, gpu_count(*) FROM t WHERE k2 IN (1, 3, 5) AND d NOT IN ('2000-01-03', '2001-07-08') GROUP BY k ORDER BY k");
is_resident("SELECT k, gpu_count(*) FROM t WHERE k2 NOT IN (1, NULL) OR i4 < 0 GROUP BY k ORDER BY k");
is_resident("SELECT k, gpu_count(*) FROM t WHERE o > 2147483648 AND o <> 5 GROUP BY k ORDER BY k");
is_resident("SELECT k, gpu_count(*) FROM t WHERE o IN (7919, 4294967295, 3000000000) OR o < 100000000 GROUP BY k ORDER BY k");
is_resident("SELECT k, gpu_count(*) FROM t WHERE i4 IS DISTINCT FROM i2 AND (b OR b IS NULL) GROUP BY k ORDER BY k");
is_resident("SELECT k, gpu_count(*) FROM t WHERE d < timestamp '2001-01-01 10:00' AND ts >= date '2000-02-29' GROUP BY k ORDER BY k");
is_resident("SELECT k, gpu_sum(v) FILTER (WHERE b), gpu_count(*) FILTER (WHERE i4 > 0), gpu_sum(i4) FILTER (WHERE NOT b OR k2 = 3) FROM t GROUP BY k ORDER BY k");
is_resident("SELECT k, gpu_sum(v / z) FROM t WHERE z <> 0 GROUP BY k ORDER BY k");
is_resident("SELECT k, gpu_count(*) FROM t WHERE z > 0 AND v / z > 10 GROUP BY k ORDER BY k");

# columns without NULLs
is_resident("SELECT gpu_count(*), gpu_sum(k) FROM t WHERE c = 'A'");
is_resident("SELECT gpu_count(*), gpu_sum(k) FROM t WHERE m > 300::money");

# ---- errors, and rows that only the CPU can compute ----
like(our_answer("SELECT k, gpu_sum(v / z) FROM t GROUP BY k"), qr/division by zero/, 'a division by zero is an error');
like(our_answer("SELECT gpu_count(greatest(i4, i8::int, 3)) FROM t"), qr/integer out of range/, 'an overflow in an argument of gpu_count is an error');
like(our_answer("SELECT gpu_sum(i8 * i8 * i8) FROM t"), qr/bigint out of range/, 'an overflow is an error');
is_resident("SELECT gpu_sum((n * 1000000000) * (n * 1000000000)) FROM t", 'a row needs the CPU');

# ---- expressions that are not supported on the GPU ----
is_resident("SELECT k, gpu_count(*) FROM t WHERE txt || k = 't33' GROUP BY k ORDER BY k", 'an expression is evaluated row by row|a function is not supported on the GPU');
is_resident("SELECT k, gpu_count(*) FROM t WHERE exp(f8 / 100) > 2 GROUP BY k ORDER BY k", 'the last digit of a function depends on the C library');

# ---- stable expressions, which are computed when the first row is read ----
is_resident("SELECT k, gpu_count(*) FROM t WHERE i4 < (SELECT 5) GROUP BY k ORDER BY k");
is_resident("SELECT k, gpu_count(*) FROM t WHERE tz > now() - interval '100 years' GROUP BY k ORDER BY k");
$node->safe_psql('postgres', 'CREATE TABLE empty (i int)');

# ---- prepared statements, rescans, cursors, changes by the own transaction ----
my $sums = 'SELECT k, gpu_count(*), gpu_sum(i4), gpu_max(n) FROM t';

is_core_answer("PREPARE p(int) AS $sums WHERE i4 > \$1 GROUP BY k ORDER BY k; SET plan_cache_mode = force_generic_plan; EXECUTE p(0); EXECUTE p(100); EXECUTE p(NULL)",
	'a prepared statement gives the right answers');
is_core_answer("PREPARE p(int) AS SELECT gpu_sum(i + 1 / \$1) FROM empty; SET plan_cache_mode = force_generic_plan; EXECUTE p(0)", 'an expression that would fail is not computed for an empty table')
	for 1 .. 2;
is_core_answer("SELECT x, (SELECT gpu_sum(i4) FROM t WHERE k = x AND i4 > x) FROM generate_series(1, 5) x", 'rescans with a parameter give the right answer');
is_core_answer("SELECT x, y.* FROM generate_series(1, 3) x LEFT JOIN LATERAL ($sums GROUP BY k OFFSET 0) y ON y.k = x ORDER BY 1, 2", 'rescans without a parameter give the right answer');
is_core_answer("BEGIN; DECLARE c CURSOR FOR $sums GROUP BY k ORDER BY k; FETCH 3 FROM c; DECLARE c2 CURSOR FOR $sums WHERE k > 90 GROUP BY k ORDER BY k; FETCH 2 FROM c2; FETCH 4 FROM c; COMMIT",
	'two open cursors give the right answers');
is_core_answer("SELECT * FROM ($sums GROUP BY k ORDER BY k) s LIMIT 3", 'a query with a LIMIT gives the right answer');
is_core_answer("BEGIN; DECLARE c SCROLL CURSOR FOR $sums GROUP BY k ORDER BY k; FETCH 5 FROM c; UPDATE t SET i4 = 7 WHERE k = 6; FETCH 5 FROM c; ROLLBACK",
	'a cursor does not see later changes');
is_core_answer("BEGIN; UPDATE t SET i4 = 7 WHERE v % 5000 = 6; $sums GROUP BY k ORDER BY k; ROLLBACK; $sums GROUP BY k ORDER BY k", 'changes of the own transaction are seen, and not after its rollback');

# ---- changes of the table: changed rows come from the heap, into the same groups ----
foreach my $change (
	'UPDATE t SET i4 = 12345 WHERE v = 777', 'DELETE FROM t WHERE v BETWEEN 30000 AND 30100',
	'INSERT INTO t SELECT * FROM t WHERE v < 500', 'VACUUM t', 'UPDATE t SET k = 1000 + k WHERE v % 1000 = 5', 'UPDATE t SET k = NULL WHERE v % 1000 = 6',
	"UPDATE t SET f8 = '1e300' WHERE v = 4711", "UPDATE t SET f8 = 'NaN' WHERE v = 4712", 'TRUNCATE t')
{
	my $seen;

	$node->safe_psql('postgres', $change);
	is_core_answer("$sums GROUP BY k ORDER BY k", "the answer is right after $change");
	is_core_answer('SELECT k, gpu_sum(f8), gpu_min(f8) FROM t WHERE i4 > 0 GROUP BY k ORDER BY k', "... also of floats");
	$seen = plan_and_errors("$sums GROUP BY k");
	like($seen, qr/Resident Rows: [1-9]/, "... and rows come from the device") if $change !~ /TRUNCATE/;
}

# ---- minus zeros, large floats and floats that are not finite, numerics without a scale ----
$node->safe_psql('postgres', <<SQL);
CREATE TABLE f AS SELECT i % 3 AS k, CASE i % 4 WHEN 0 THEN '-0'::float8 WHEN 1 THEN 0 ELSE i END AS zeros, i::float8 * 1e299 AS large,
	CASE WHEN i = 5 THEN 'Infinity' ELSE i::float8 END AS inf, (i * 0.5)::numeric AS free,
	(CASE WHEN i = 7 THEN 'NaN' ELSE i::numeric END)::numeric(10,2) AS nan, NULL::int AS nothing, (i * 1e20)::numeric(30,0) AS wide
FROM generate_series(1, 5000) i;
VACUUM FREEZE f;
SELECT gpuagg_cache_prewarm('f');
SQL
is_resident('SELECT k, gpu_min(zeros), gpu_max(-zeros) FROM f GROUP BY k ORDER BY k', 'a row needs the CPU');
is_resident('SELECT k, gpu_sum(zeros) FROM f GROUP BY k ORDER BY k');
is_resident('SELECT k, gpu_sum(large) FROM f WHERE k < 2 GROUP BY k ORDER BY k', 'a row needs the CPU');
is_resident('SELECT k, gpu_max(large) FROM f GROUP BY k ORDER BY k');
is_resident('SELECT k, gpu_sum(inf) FROM f GROUP BY k ORDER BY k', 'no rows are cached');
is_resident('SELECT k, gpu_sum(nan) FROM f GROUP BY k ORDER BY k', 'no rows are cached');
is_resident('SELECT k, gpu_sum(wide) FROM f GROUP BY k ORDER BY k', 'no rows are cached');
is_resident('SELECT k, gpu_sum(nothing), gpu_count(nothing), gpu_max(nothing + 1) FROM f GROUP BY k ORDER BY k');
is_resident('SELECT nothing, gpu_count(*) FROM f GROUP BY nothing');

# ---- little or no memory for copies ----
foreach my $memory (1, 0)
{
	$node->safe_psql('postgres', "ALTER SYSTEM SET gpuagg.device_cache_memory = '${memory}MB'");
	$node->reload;
	sleep 1;
	$node->safe_psql('postgres', 'TRUNCATE t; INSERT INTO t (k, i4, n, v, f8) SELECT i % 100, i, i * 0.01, i, i FROM generate_series(1, 100000) i');
	$node->safe_psql('postgres', 'VACUUM FREEZE t');
	is_core_answer("$sums GROUP BY k ORDER BY k", "$memory MB for copies: the query that caches the columns in RAM gives the right answer");
	is_core_answer("$sums GROUP BY k ORDER BY k", "$memory MB for copies: the query that uploads columns gives the right answer");
	is_core_answer('SELECT k, gpu_sum(v), gpu_sum(f8) FROM t GROUP BY k ORDER BY k', "$memory MB for copies: a query of other columns gives the right answer") for 1 .. 2;
	like(plan_and_errors("$sums GROUP BY k"), $memory ? qr/Resident Rows: (?:[1-9]|none: no GPU memory is left)/ : qr/none: gpuagg.device_cache_memory is 0/, "$memory MB for copies: EXPLAIN shows copies or the reason");
}
$node->safe_psql('postgres', 'ALTER SYSTEM RESET gpuagg.device_cache_memory');
$node->reload;
sleep 1;

# ---- the planner prefers one process to a parallel plan if the columns can be cached on the device ----
{
	my $settings = "SET gpuagg.engine = 'auto'; SET max_parallel_workers_per_gather = 4; SET min_parallel_table_scan_size = 0; "
		. 'SET parallel_setup_cost = 100; SET parallel_tuple_cost = 0; SET gpuagg.gpu_startup_cost = 10';

	$node->safe_psql('postgres', "INSERT INTO t (k, i4, n, txt) SELECT i % 100, i, i * 0.01, i FROM generate_series(1, 200000) i");
	$node->safe_psql('postgres', 'VACUUM (FREEZE, ANALYZE) t');
	$node->safe_psql('postgres', "SELECT gpuagg_cache_prewarm('t')");
	my %plans = map { $_ => $node->safe_psql('postgres', "$settings; SET gpuagg.cache = $_; EXPLAIN $sums GROUP BY k") } qw(on off);
	unlike($plans{on}, qr/Gather/, 'with the cache the plan is not parallel');
	like($plans{off}, qr/Gather/, 'without the cache the plan is parallel');
	# what the GPU engine refuses is known when the plan is made
	foreach my $n (8, 9)
	{
		my $keys = join(', ', map { "k % $_" } 2 .. $n + 1);
		my $plan = $node->safe_psql('postgres', "$settings; EXPLAIN SELECT $keys, gpu_count(*) FROM t GROUP BY $keys");

		like($plan, $n > 8 ? qr/Gather/ : qr/\A(?!.*Gather)/s, "$n keys: the plan is " . ($n > 8 ? 'parallel' : 'not parallel'));
	}
	like($node->safe_psql('postgres', "$settings; EXPLAIN SELECT k, " . join(', ', map { "gpu_sum(i4 % $_)" } 2 .. 60) . ' FROM t GROUP BY k'), qr/Gather/,
		'with more columns than the GPU reads the plan is parallel');
	unlike($node->safe_psql('postgres', "$settings; EXPLAIN $sums WHERE txt <> 'x' GROUP BY k"), qr/Gather/, 'with a condition on text of many values the plan is not parallel');
	unlike($node->safe_psql('postgres', "$settings; EXPLAIN SELECT txt, gpu_count(*), gpu_sum(i4) FROM t GROUP BY txt"), qr/Gather/, 'with text of many values as the key the plan is not parallel');
	$node->safe_psql('postgres', "UPDATE t SET txt = length(txt)");
	$node->safe_psql('postgres', 'VACUUM (FREEZE, ANALYZE) t');
	$node->safe_psql('postgres', "SELECT gpuagg_cache_prewarm('t')");
	unlike($node->safe_psql('postgres', "$settings; EXPLAIN $sums WHERE txt <> 'x' GROUP BY k"), qr/Gather/, 'with a condition on text of few values the plan is not parallel');
	like($node->safe_psql('postgres', "$settings; SET gpuagg.cache = off; EXPLAIN $sums WHERE txt <> 'x' GROUP BY k"), qr/Gather/, '... but parallel without the cache');
}

# ---- the copies are lost with the server ----
is_core_answer("$sums GROUP BY k ORDER BY k", 'the answer from copies is right');
my $supervisor = $node->supervisor_pid;
kill 'STOP', $supervisor;	# so that no other server starts during the query
my $killed = $node->kill_server;
is(our_answer("SET gpuagg.engine = 'auto'; $sums GROUP BY k ORDER BY k"), core_answer("$sums GROUP BY k ORDER BY k"), 'the server is lost: the answer is right');
kill 'CONT', $supervisor;
ok($node->wait_for_another_server($killed), 'another server starts');
like(plan_and_errors("$sums GROUP BY k"), qr/Uploaded: [1-9]/, '... and its first query uploads the columns');
unlike(plan_and_errors("$sums GROUP BY k"), qr/Uploaded/, '... which the next query reads');

done_testing();
