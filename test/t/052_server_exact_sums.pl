# Exact aggregates of floats (gpuagg.float_sum = exact) at the GPU server. Their bits are compared with those of PostgreSQL's
# executor, which calls the exact aggregates row by row. EXPLAIN tells which engine computed them, and which rows.
use strict;
use warnings;
use GpuaggNode;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = GpuaggNode->start_new('main', cached => 1, conf => "gpuagg.float_sum = exact\nmax_parallel_workers_per_gather = 0\n");

# x has values of several magnitudes with all 53 bits, and f those of a float4; the others are described below
$node->safe_psql('postgres', <<'SQL');
CREATE TABLE t AS
SELECT i, i % 7 AS k, i % 20011 AS many, hashint8(i) / 3.0::float8 AS x, (hashint8(i + 1) / 7.0)::float4 AS f, (i % 1000)::numeric AS n,
	CASE WHEN i % 5 = 0 THEN NULL ELSE 0.1::float8 * (i % 100) END AS tenths, 0.1::float8 AS same, '-0'::float8 AS zero,
	(CASE WHEN i % 2 = 0 THEN 1 ELSE -1 END) * 5e-324::float8 * (1 + i % 1000) AS tiny, 1e300::float8 * (1 + i % 9) AS large,
	CASE i % 40000 WHEN 7 THEN 1e-300 WHEN 9 THEN 1e100 ELSE hashint8(i)::float8 END AS wide,
	CASE i % 40000 WHEN 7 THEN 'inf' WHEN 9 THEN 'NaN' WHEN 11 THEN '-inf' ELSE 1 / (i % 13 + 1.0)::float8 END AS odd
FROM generate_series(1, 100000) i;
VACUUM FREEZE ANALYZE t;
SQL
ok($node->wait_until_ready, 'the server starts');

my $gpu = "SET gpuagg.require = 'require'; SET gpuagg.engine = 'cuda';";
my $batches = "$gpu SET gpuagg.cache = off;";
my $explain = 'EXPLAIN (ANALYZE, VERBOSE, COSTS OFF, TIMING OFF, SUMMARY OFF)';

# Returns the plan of an execution.
sub plan_of { return answer($node, "$_[0] $explain $_[1]") }

# Tests that a query has the same bits as row by row, and that its plan matches.
sub is_same
{
	my ($settings, $query, $plan, $name) = @_;

	is(answer($node, "$settings $query"), answer($node, without_scan($query)), $name);
	like(plan_of($settings, $query), $plan, '... in the right place');
}

my $all_gpu = qr/\A(?!.*Rows on CPU).*Engine: cuda/s;
my $some_cpu = qr/Engine: cuda.*Rows on CPU: [1-9]/s;
my $resident = qr/\A(?!.*Rows on CPU).*Engine: cuda.*Resident Rows: [1-9]/s;
my $bits = join(', ', map { "float8send(gpu_sum($_)), float8send(gpu_avg($_))" } qw(x tenths same zero)) . ', float4send(gpu_sum(f)), float8send(gpu_avg(f))';
my $few_products = 'float8send(gpu_variance(x)), float8send(gpu_corr(x, tenths))';
my $products = join(', ', map { "float8send(gpu_$_)" } 'variance(x)', 'stddev_pop(f)', 'stddev(same)', 'var_pop(tenths)', 'corr(x, tenths)', 'regr_slope(tenths, f)', 'covar_samp(zero, x)', 'regr_sxy(x, k::float8)');

# Batches: aggregates of all forms
foreach my $keys ('k', 'many', 'k, n', 'x', 'tenths')
{
	is_same($batches, "SELECT md5(string_agg(s::text, ' ' ORDER BY s::text)) FROM (SELECT $keys, $bits, $products FROM t GROUP BY $keys) s", $all_gpu, "batches by $keys");
}
is_same($batches, "SELECT $bits FROM t", $all_gpu, 'without keys');
is_same($batches, "SELECT $bits, $products FROM t WHERE i < 0", $all_gpu, 'without rows');
is_same($batches, "SELECT k, gpu_variance(x) FILTER (WHERE tenths > 5), gpu_corr(x, f) FILTER (WHERE k > 4), gpu_covar_pop(f, tenths) FILTER (WHERE tenths < 3 OR n > 900), gpu_stddev(f) FILTER (WHERE n < 0), gpu_regr_r2(x, tenths) FROM t GROUP BY k ORDER BY k",
	$all_gpu, 'filters of variances and pairs');
is_same($batches, "SELECT k, gpu_variance(tiny), gpu_corr(tiny, x), gpu_covar_pop(tiny * 1e300, large), gpu_var_pop(large * 1e-200) FROM t GROUP BY k ORDER BY k", $all_gpu, 'products of subnormal and large values');
is_same($batches, "SELECT k, gpu_variance(wide), gpu_corr(odd, x), gpu_covar_samp(x, wide), gpu_regr_sxx(odd, wide) FROM t GROUP BY k ORDER BY k", $some_cpu, 'products of values that do not fit');
is_same($batches, "SELECT k, gpu_sum(x) FILTER (WHERE tenths > 5), gpu_avg(f) FILTER (WHERE k > 4), gpu_sum(x) FILTER (WHERE n < 0), gpu_min(x), gpu_max(f), gpu_count(x), gpu_sum(i) FROM t GROUP BY k ORDER BY k",
	$all_gpu, 'filters, and other aggregates');
is_same($batches, "SELECT k, gpu_sum(tiny), gpu_avg(tiny) FROM t GROUP BY k ORDER BY k", $all_gpu, 'subnormal values');
is_same($batches, "SELECT k, gpu_sum(CASE WHEN i % 2 = 0 THEN large ELSE -large END), gpu_avg(large) FROM t GROUP BY k ORDER BY k", $all_gpu, 'values whose sum overflows on the way');
is_same($batches, "SELECT k, gpu_sum(large * 1000) FROM t GROUP BY k ORDER BY k", $all_gpu, 'sums near the limit');
is(answer($node, "$batches SELECT gpu_sum(large * 1000) FROM t"), 'ERROR:  value out of range: overflow', 'only the result overflows');
is_same($batches, "SELECT k, gpu_sum(wide), gpu_avg(wide) FROM t GROUP BY k ORDER BY k", $some_cpu, 'values of too many magnitudes');
is_same($batches, "SELECT k, gpu_sum(odd), gpu_avg(odd) FROM t GROUP BY k ORDER BY k", $some_cpu, 'infinities and NaN');
is_same($batches, "SELECT k, gpu_sum(CASE WHEN i > 60000 THEN x * 1e40 ELSE 0 END), gpu_sum(CASE WHEN i > 60000 THEN x END) FROM t GROUP BY k ORDER BY k", $all_gpu, 'zeros and NULL come first');
is_same($batches, "SELECT k, n, gpu_sum(x), gpu_avg(f) FROM t GROUP BY GROUPING SETS ((k, n), k, ()) ORDER BY k, n", $all_gpu, 'grouping sets');
is_same($batches, "SELECT k, gpu_sum(x) FROM t GROUP BY k HAVING gpu_sum(x) > 0 ORDER BY gpu_sum(x) DESC LIMIT 3", $all_gpu, 'having and order');
is_same($batches, "SELECT k, gpuagg_merge(gpuagg_pack('gpuagg_exact_sum(float8)'::regprocedure, same)) FILTER (WHERE k > 3)
	IS NULL FROM t GROUP BY k ORDER BY k", $all_gpu, 'a state is made by rows, and not without');
is_same($batches, "SELECT k, gpuagg_finish(gpuagg_merge(gpuagg_pack('gpuagg_exact_sum(float8)'::regprocedure, x)), 'gpuagg_exact_avg(float8)'::regprocedure, NULL::float8)
	FROM t GROUP BY k ORDER BY k", $all_gpu, 'states');

# Sorted input: groups leave in their order, and the first and last ones of a buffer are combined
my $sorted = 'SET enable_hashagg = off; SET enable_sort = off;';

foreach my $keys ('k', 'many', 'x')
{
	is_same("$batches $sorted", "SELECT $keys, $few_products, float8send(gpu_covar_pop(f, zero)), $bits FROM (SELECT * FROM t ORDER BY $keys OFFSET 0) s GROUP BY $keys ORDER BY $keys", qr/$all_gpu.*Strategy: segmented/s, "sorted by $keys");
}
is_same("$batches $sorted", "SELECT k, gpu_sum(wide), gpu_avg(odd), gpu_sum(x) FROM (SELECT * FROM t ORDER BY k, hashint4(i) OFFSET 0) s GROUP BY k ORDER BY k", qr/Engine: cuda.*Strategy: segmented.*Rows on CPU: [1-9]/s, 'sorted, with rows on the CPU');
is_same("$batches $sorted", "SELECT many, gpu_sum(wide), gpu_avg(odd), gpu_sum(x) FROM (SELECT * FROM t ORDER BY many OFFSET 0) s GROUP BY many ORDER BY many", qr/Engine: cuda.*Strategy: segmented.*Rows on CPU: [1-9]/s, 'sorted by many keys, with rows on the CPU');

# Workers
foreach my $keys ('k', 'many', 'x')
{
	is_same("$batches " . parallel_settings(), "SELECT $keys, $few_products, $bits FROM t GROUP BY $keys ORDER BY $keys", qr/Engine: cuda/, "workers by $keys");
}
is_same("$batches " . parallel_settings(), "SELECT $bits, gpu_sum(wide), gpu_sum(odd) FROM t", $some_cpu, 'workers, with rows on the CPU');

# Copies on the device
$node->safe_psql('postgres', "SELECT gpuagg_cache_prewarm('t')");
is_same($gpu, "SELECT $bits FROM t", $resident, 'resident without keys');
is_same($gpu, "SELECT k, $bits FROM t GROUP BY k ORDER BY k", $resident, 'resident');
is_same($gpu, "SELECT $few_products FROM t", $resident, 'resident products without keys');
foreach my $product (split(/, (?=float8send)/, $products))
{
	is_same($gpu, "SELECT k, $product FROM t GROUP BY k ORDER BY k", $resident, "resident $product");
}
is_same($gpu, "SELECT many, gpu_corr(x, f), gpu_var_pop(tenths), gpu_regr_intercept(tenths, f) FROM t WHERE i % 3 > 0 GROUP BY many ORDER BY many", $resident, 'resident products with many groups and a condition');
is_same($gpu, "SELECT k, gpu_variance(x) FILTER (WHERE tenths < 5), gpu_corr(x * 2, tenths + 1) FILTER (WHERE i % 3 = 0 OR tenths < 7) FROM t GROUP BY k ORDER BY k", $resident, 'resident products with filters');
is_same($gpu, "SELECT k, gpu_covar_samp(x, f) FILTER (WHERE k = 3), gpu_regr_count(x, f) FROM t GROUP BY k ORDER BY k", $resident, 'resident products of one group');
is_same($gpu, "SELECT many, $bits FROM t WHERE i % 3 > 0 GROUP BY many ORDER BY many", $resident, 'resident with many groups and a condition');
is_same($gpu, "SELECT k, gpu_sum(tiny), gpu_avg(tiny), gpu_sum(large), gpu_sum(x) FILTER (WHERE tenths < 5) FROM t GROUP BY k ORDER BY k", $resident, 'resident with small and large values');
is_same($gpu, "SELECT k, gpu_sum(x * tenths + 1), gpu_avg(sqrt(tenths)), gpu_sum(f * 2) FROM t GROUP BY k ORDER BY k", $resident, 'computed values');
is_same($gpu, "SELECT k, gpu_sum(large * 1000 - x), gpu_sum(x * 1e200), gpu_avg(tiny * 3), gpu_sum(x * tenths * 1e-200 * i) FROM t GROUP BY k ORDER BY k", $resident, 'computed values of other magnitudes');
is_same($gpu, "SELECT k, gpu_sum(wide) FROM t GROUP BY k ORDER BY k", qr/Engine: cpu \(cuda failed: a row needs the CPU/, 'too many magnitudes start over');
is_same($gpu, "SELECT k, gpu_sum(CASE WHEN i % 1000 = 7 THEN x * 1e200 ELSE x END) FROM t GROUP BY k ORDER BY k", qr/Engine: cpu \(cuda failed: a row needs the CPU/, 'computed values that are too large');
is_same($gpu, "SELECT k, gpu_sum(odd) FROM t GROUP BY k ORDER BY k", $some_cpu, 'infinities and NaN come as batches');

# some rows are on the device, and others come as batches, in two tables of different magnitudes
$node->safe_psql('postgres', "UPDATE t SET x = x * 1.5 WHERE i BETWEEN 3000 AND 3010");
is_same($gpu, "SELECT k, $bits FROM t GROUP BY k ORDER BY k", qr/Resident Rows: [1-9]/, 'resident rows and batches');
$node->safe_psql('postgres', "CREATE TABLE u AS SELECT i, k, x * 1e60 AS x, x AS y FROM t; VACUUM FREEZE ANALYZE u; SELECT gpuagg_cache_prewarm('u')");
is_same($gpu, "SELECT k, gpu_sum(x), gpu_avg(y) FROM (SELECT k, x, x AS y FROM t UNION ALL SELECT k, x, y FROM u) s GROUP BY k ORDER BY k", qr/Engine: cuda.*Resident Rows: [1-9]/s, 'tables of different magnitudes');

# What stays on the CPU, and why
sub is_on_cpu
{
	my ($query, $reason) = @_;

	is_same($gpu, $query, qr/Engine: cpu \(\Q$reason\E/, "on the CPU: $reason");
}
is_on_cpu('SELECT k, gpu_sum(DISTINCT x) FROM t GROUP BY k ORDER BY k', 'exact aggregates of DISTINCT or ordered floats are not supported on the GPU');

# Equal values have no deviation, on both engines
foreach my $settings ($gpu, $batches, "SET gpuagg.engine = 'cpu';")
{
	is(answer($node, "$settings SELECT gpu_stddev(same), gpu_variance(same), gpu_var_pop(same), gpu_avg(same) - 0.1 FROM t"), '0|0|0|0', 'equal values have no deviation');
}

$node->stop;
done_testing();
