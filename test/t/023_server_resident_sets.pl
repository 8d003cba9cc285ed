# Aggregates of DISTINCT values, percentiles and modes over rows that are cached on the device. The reference is core's answer. Also
# queries that composite engines or the CPU engine take instead, and faults of the server.
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
my $rows = 40000;

$node->safe_psql('postgres', <<SQL);
CREATE TABLE t (k int, k2 smallint, l bigint, i2 smallint, i4 int, i8 bigint, f4 float4, f8 float8, n numeric(12,2), d date,
	ts timestamp, o oid, b bool, c "char", txt text, wide numeric(30,2), v int);
INSERT INTO t SELECT i % 100, i % 7, i * 100000000007 % 1000, i % 200 - 100, i * 7919 % 1000 - 500, (i % 777) * 1000000000003 - 3e14::int8,
	(i % 50) / 4.0 - 3, (i * 7919 % 1009) / 8.0 - 20, (i % 500 - 250) / 100.0, date '1999-12-25' + i % 100,
	timestamp '1999-12-31 22:00' + i % 333 * interval '7 minutes', (i * 7919::int8 * 65537 % 4294967296)::oid, i % 3 = 0,
	(65 + i % 26)::"char", 't' || i % 10, i * 1e15, i
FROM generate_series(1, $rows) i;
UPDATE t SET i4 = NULL, f8 = NULL, n = NULL, b = NULL, d = NULL, ts = NULL, o = NULL, k2 = NULL WHERE v % 13 = 0;
UPDATE t SET f8 = '-0', f4 = '-0' WHERE v % 101 = 0;
UPDATE t SET f8 = 0 WHERE v % 101 = 1;
VACUUM FREEZE ANALYZE t;
CREATE TABLE odd AS SELECT i % 10 k, CASE i % 5 WHEN 0 THEN 'NaN' WHEN 1 THEN 'Infinity' WHEN 2 THEN '-Infinity' ELSE i::float8 END f8,
	i % 3 i4 FROM generate_series(1, 5000) i;
VACUUM FREEZE ANALYZE odd;
SQL

$Resident::node = $node;
ok($node->wait_until_ready, 'the server starts');
$node->safe_psql('postgres', "SELECT gpuagg_cache_prewarm('t'), gpuagg_cache_prewarm('odd')");

# ---- distinct values of all types, by keys of all kinds ----
is_resident("SELECT k, gpu_count(DISTINCT i2), gpu_count(DISTINCT i4), gpu_count(DISTINCT i8) FROM t GROUP BY k ORDER BY k");
is_resident("SELECT k2, gpu_count(DISTINCT f4), gpu_count(DISTINCT f8), gpu_count(DISTINCT n) FROM t GROUP BY k2 ORDER BY k2");
is_resident("SELECT l, gpu_count(DISTINCT d), gpu_count(DISTINCT ts), gpu_count(DISTINCT o), gpu_count(DISTINCT b), gpu_count(DISTINCT c) FROM t GROUP BY l ORDER BY l");
is_resident("SELECT k, k2, gpu_count(DISTINCT i4) FROM t GROUP BY k, k2 ORDER BY k, k2");
is_resident("SELECT gpu_count(DISTINCT i4), gpu_count(DISTINCT f8), gpu_count(DISTINCT i8) FROM t");
is_resident("SELECT k, gpu_count(DISTINCT k) FROM t GROUP BY k ORDER BY k");
is_resident("SELECT txt, gpu_count(DISTINCT i4) FROM t GROUP BY txt ORDER BY txt");
is_resident("SELECT k, gpu_sum(DISTINCT i2), gpu_sum(DISTINCT i4), gpu_sum(DISTINCT i8), gpu_sum(DISTINCT n) FROM t GROUP BY k ORDER BY k");
is_resident("SELECT k, gpu_avg(DISTINCT i2), gpu_avg(DISTINCT i4), gpu_avg(DISTINCT i8), gpu_avg(DISTINCT n) FROM t GROUP BY k ORDER BY k");
is_resident("SELECT k, gpu_min(DISTINCT i4), gpu_max(DISTINCT n), gpu_bit_or(DISTINCT i4), gpu_bit_xor(DISTINCT i4) FROM t GROUP BY k ORDER BY k");
is_resident("SELECT k, gpu_variance(DISTINCT i8) FROM t GROUP BY k ORDER BY k");

# ---- with other aggregates, filters and conditions, of expressions ----
is_resident("SELECT k, gpu_count(*), gpu_sum(i4), gpu_count(DISTINCT i4), gpu_avg(f8), gpu_sum(DISTINCT i4), gpu_max(d) FROM t GROUP BY k ORDER BY k");
is_resident("SELECT k, gpu_count(DISTINCT i4) FILTER (WHERE i2 > 0), gpu_count(DISTINCT i4) FILTER (WHERE b), gpu_count(DISTINCT i4), gpu_sum(DISTINCT i2) FILTER (WHERE b), gpu_max(DISTINCT i4) FILTER (WHERE b) FROM t GROUP BY k ORDER BY k");
is_resident("SELECT k, gpu_count(DISTINCT i4 % 10), gpu_sum(DISTINCT i4 + i2), gpu_count(DISTINCT date_trunc('hour', ts)) FROM t WHERE f8 > 3 GROUP BY k ORDER BY k");
is_resident("SELECT k, gpu_count(DISTINCT i4) FROM t WHERE i4 + 1 > 1000000 GROUP BY k");
is_resident("SELECT gpu_count(DISTINCT i4), gpu_sum(DISTINCT i4) FROM t WHERE i4 + 1 > 1000000");
is_resident("SELECT k, gpu_count(DISTINCT i4) c FROM t GROUP BY k ORDER BY c DESC, k LIMIT 5");
is_resident("SELECT k FROM t GROUP BY k HAVING gpu_count(DISTINCT i4) > 300 ORDER BY k");

# ---- percentiles and modes ----
is_resident("SELECT k, gpu_median(f8), gpu_median(f4), gpu_median(i4), gpu_median(i8) FROM t GROUP BY k ORDER BY k");
is_resident("SELECT k, gpu_percentile_cont(0.5) WITHIN GROUP (ORDER BY f8), gpu_percentile_cont(0.25) WITHIN GROUP (ORDER BY f8 DESC), gpu_percentile_cont(1) WITHIN GROUP (ORDER BY f8) FROM t GROUP BY k ORDER BY k");
is_resident("SELECT k2, gpu_percentile_disc(0.3) WITHIN GROUP (ORDER BY i4), gpu_percentile_disc(0.3) WITHIN GROUP (ORDER BY ts), gpu_percentile_disc(0) WITHIN GROUP (ORDER BY d DESC), gpu_percentile_disc(0.9) WITHIN GROUP (ORDER BY o) FROM t GROUP BY k2 ORDER BY k2");
is_resident("SELECT l, gpu_percentile_cont(ARRAY[0, 0.1, NULL, 0.5, 0.99]) WITHIN GROUP (ORDER BY f8), gpu_percentile_disc(ARRAY[[0.2, 0.8], [1, 0]]) WITHIN GROUP (ORDER BY i8) FROM t GROUP BY l ORDER BY l");
is_resident("SELECT gpu_percentile_cont(ARRAY[0.5, 0.9, 0.95, 0.99]) WITHIN GROUP (ORDER BY f8), gpu_median(i2) FROM t");
is_resident("SELECT k, gpu_median(f8) FILTER (WHERE i2 > 20), gpu_percentile_cont(k / 100.0) WITHIN GROUP (ORDER BY f8), gpu_median(f8 * 2 + i2) FROM t WHERE b IS NOT NULL GROUP BY k ORDER BY k");
is_resident("SELECT v % 7777, gpu_median(f8), gpu_count(*), gpu_sum(i4) FROM t GROUP BY 1 ORDER BY 1");
is_resident("SELECT k, gpu_median(f8) FROM t WHERE i4 + 1 > 1000000 GROUP BY k");
is_resident("SELECT gpu_median(f8), gpu_percentile_disc(ARRAY[0.5]) WITHIN GROUP (ORDER BY i4) FROM t WHERE i4 + 1 > 1000000");
is_resident("SELECT gpu_median(f8), gpu_count(*) FROM t WHERE k2 IS NULL");
is_resident("SELECT k, gpu_count(DISTINCT i4), gpu_median(i4), gpu_avg(i4), gpu_sum(DISTINCT i4) FILTER (WHERE b) FROM t GROUP BY k ORDER BY k");
is_resident("SELECT k, gpu_median(f8) m FROM t GROUP BY k HAVING gpu_median(f8) > 41 ORDER BY m, k LIMIT 20");

is_resident("SELECT k, gpu_mode() WITHIN GROUP (ORDER BY i4), gpu_mode() WITHIN GROUP (ORDER BY i4 DESC), gpu_count(*) FROM t GROUP BY k ORDER BY k");
is_resident("SELECT k2, gpu_mode() WITHIN GROUP (ORDER BY d), gpu_mode() WITHIN GROUP (ORDER BY ts DESC), gpu_mode() WITHIN GROUP (ORDER BY b) FILTER (WHERE i2 > 0), gpu_median(i4), gpu_percentile_disc(0.2) WITHIN GROUP (ORDER BY i4) FROM t GROUP BY k2 ORDER BY k2");
is_resident("SELECT gpu_mode() WITHIN GROUP (ORDER BY i2) + 0, gpu_mode() WITHIN GROUP (ORDER BY i8) FROM t");
is_resident("SELECT gpu_mode() WITHIN GROUP (ORDER BY i4) FROM t WHERE i4 + 1 > 1000000");

# ---- queries that other engines take ----
is_core_answer($_) foreach (
	"SELECT k, gpu_count(DISTINCT txt) FROM t GROUP BY k ORDER BY k",
	"SELECT k, gpu_sum(DISTINCT f8) FROM t GROUP BY k ORDER BY k",
	"SELECT k, gpu_regr_count(DISTINCT f8, i4), gpu_count(*) FROM t GROUP BY k ORDER BY k",
	"SELECT k, gpu_count(DISTINCT wide), gpu_sum(DISTINCT wide) FROM t GROUP BY k ORDER BY k",
	"SELECT k, gpu_median(f8), gpu_count(DISTINCT f8), gpu_percentile_cont(0.1) WITHIN GROUP (ORDER BY f8) FROM odd GROUP BY k ORDER BY k",
	"SELECT k, gpu_mode() WITHIN GROUP (ORDER BY txt), gpu_count(*) FROM t GROUP BY k ORDER BY k",
	"SELECT k, gpu_mode() WITHIN GROUP (ORDER BY n::float8 + 1), gpu_count(*) FROM t GROUP BY k ORDER BY k",
	"SELECT k, gpu_mode() WITHIN GROUP (ORDER BY v), gpu_count(*) FROM (VALUES (1, float8 '-0'), (2, 0)) s(k, v) GROUP BY k ORDER BY k",
	"SELECT k, gpu_median(v * interval '1 s'), gpu_count(*) FROM t GROUP BY k ORDER BY k",
	"SELECT k, gpu_percentile_cont(2) WITHIN GROUP (ORDER BY f8), gpu_count(*) FROM t GROUP BY k",
	"SELECT gpu_percentile_cont('NaN') WITHIN GROUP (ORDER BY f8), gpu_count(*) FROM t WHERE i4 + 1 > 1000000",
	"SELECT gpu_percentile_cont('NaN') WITHIN GROUP (ORDER BY f8), gpu_count(*) FROM t WHERE false",
	"SELECT gpu_percentile_cont('{7}'::float8[]) WITHIN GROUP (ORDER BY f8), gpu_count(*) FROM t WHERE false",
	"SELECT k, k2, gpu_count(DISTINCT i4) FROM t GROUP BY ROLLUP (k, k2) ORDER BY k, k2, 3");

# ---- rows that arrive as batches, alone and after rows from the device ----
is(our_answer("SET gpuagg.cache = off; SELECT k, gpu_count(DISTINCT i4), gpu_median(f8) FROM t GROUP BY k ORDER BY k"),
	core_answer("SELECT k, gpu_count(DISTINCT i4), gpu_median(f8) FROM t GROUP BY k ORDER BY k"), 'rows in batches give the right answer');
$node->safe_psql('postgres', "UPDATE t SET i4 = i4 + 1, f8 = f8 - 0.5 WHERE v < 300; INSERT INTO t SELECT * FROM t WHERE v > $rows - 1000");
is_resident("SELECT k, gpu_count(DISTINCT i4), gpu_median(f8), gpu_count(*) FROM t GROUP BY k ORDER BY k");

# ---- one process with the device is cheaper than workers without it ----
foreach my $call ('gpu_value_counts(i4)', 'gpu_entropy(i4)', 'gpu_mad(f8)', 'gpu_summary(f8)', 'gpu_histogram_auto(f8, 20)', 'gpu_count(DISTINCT i4)', 'gpu_median(f8)')
{
	my $plan = $node->safe_psql('postgres', "SET gpuagg.engine = 'auto'; SET max_parallel_workers_per_gather = 2; SET min_parallel_table_scan_size = 0; "
		. "SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0; SET gpuagg.gpu_startup_cost = 10; EXPLAIN SELECT $call FROM t");

	like($plan, qr/\A(?!.*Gather).*Engine: cuda/s, "$call: the plan is serial, on the device");
}

# ---- groups that are returned have a price: many of many keys are made faster by the CPU engine ----
sub auto_engine
{
	my ($query) = @_;

	return ($node->safe_psql('postgres', "SET gpuagg.engine = 'auto'; SET gpuagg.gpu_startup_cost = 0; EXPLAIN (COSTS OFF) $query") =~ /Engine: (.*)/)[0];
}
my $keys = 'l, i2, i8, f8, d, v';
like(auto_engine("SELECT $keys, gpu_count(*) FROM t GROUP BY $keys"), qr/^cpu \(too many groups to return from the GPU\)/, 'groups of six keys, as many as rows');
like(auto_engine("SELECT $keys, gpu_count(*) c FROM t GROUP BY $keys ORDER BY c DESC LIMIT 5"), qr/^cuda/, 'the first five of them');
like(auto_engine("SELECT l, gpu_count(*) FROM t GROUP BY l"), qr/^cuda/, 'few groups of one key');

# ---- cursors and rescans ----
is(our_answer("BEGIN; DECLARE c CURSOR FOR SELECT l, gpu_median(f8), gpu_count(DISTINCT i4) FROM t GROUP BY l; FETCH 10 FROM c; SELECT gpu_count(DISTINCT i4) FROM t; MOVE 900 FROM c; CLOSE c; COMMIT") =~ tr/\n//,
	10, 'another query can run between the fetches of a cursor');
is_resident("SELECT x, (SELECT gpu_median(f8) FROM t WHERE i2 > x), (SELECT gpu_count(DISTINCT i4) FROM t WHERE i2 > x) FROM generate_series(-50, 50, 25) x");

# ---- faults: the CPU engine starts over ----
foreach my $fault ('memory', 'fetch')
{
	$node->set_fault($fault);
	my $query = 'SELECT k, gpu_count(DISTINCT i4), gpu_median(f8) FROM t GROUP BY k ORDER BY k';
	my $pid = $node->server_pid;

	is_core_answer($query, "the answer is right after fault $fault");
	if ($fault eq 'fetch')
	{
		$node->clear_fault;
		ok($node->wait_for_another_server($pid), '... for which the server had ended');
		$node->set_fault($fault);
	}
	like(plan_and_errors($query), qr/cuda failed|Resident Rows: none/, '... and EXPLAIN shows that the device did not give it');
	$node->clear_fault;
}

done_testing();
