# Every kind of aggregate over rows that are cached on the device, with and without FILTER, a condition and keys. The reference is the
# answer of the plain aggregates. Aggregates that do not run on the device must have their reason in EXPLAIN.
use strict;
use warnings;
use GpuaggNode;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = GpuaggNode->start_new('main', server => 1, conf => <<CONF);
gpuagg.engine = 'cuda'
gpuagg.cache = 'eager'
gpuagg.cache_memory = '64MB'
gpuagg.cache_renew = 0
work_mem = '32MB'
autovacuum = off
extra_float_digits = -3
CONF

$node->safe_psql('postgres', <<SQL);
CREATE TABLE t (k int, s smallint, i int, l bigint, f float8, r float4, n numeric(12,2), b bool, d date, ts timestamp, txt text, m money, v interval, a float8[], seq int);
INSERT INTO t SELECT i % 10, i % 300 - 150, i * 7919 % 10007 - 5000, i::int8 * 100003 % 1000000007, (i * 7919 % 1009) / 8.0, (i % 333) / 4.0, (i * 31 % 9999) / 100.0,
	i * 7919 % 3 > 0, date '2000-01-01' + i % 999, timestamp '2000-01-01' + i * interval '1 minute', 't' || i % 23, (i % 100)::money, i * interval '1 second', '{{1,0},{0,1}}', i
FROM generate_series(1, 20000) i;
UPDATE t SET i = NULL, f = NULL, n = NULL, b = NULL, txt = NULL WHERE seq % 37 = 0;
VACUUM FREEZE ANALYZE t;
SELECT gpuagg_cache_prewarm('t');
SQL
ok($node->wait_until_ready, 'the server starts');

# Tests the aggregate's answers in three queries, and that they read rows from the device. With $reason, tests instead that they do not,
# for a reason that matches.
sub check
{
	my ($aggregate, $reason) = @_;
	my $filter = $aggregate =~ /DISTINCT/ ? '' : ', ' . $aggregate . ' FILTER (WHERE i > 0)';
	my @forms = ("SELECT $aggregate FROM t", "SELECT k, $aggregate$filter FROM t GROUP BY k ORDER BY k",
		"SELECT txt, $aggregate FROM t WHERE f > 20 AND txt <> 't7' GROUP BY txt ORDER BY txt");

	foreach my $form (@forms)
	{
		is_right_answer($node, $form, $form, settings => "SET gpuagg.require = 'require';");
		like($node->explain_analyze($form), defined $reason ? qr/Resident Rows: none: $reason|Engine: cpu.*$reason|cuda failed: $reason/ : qr/Resident Rows: [1-9]/,
			defined $reason ? "... not on the device: $reason" : '... on the device');
	}
}

check("gpu_count(*), gpu_count(i)");
check("gpu_count($_)") foreach qw(txt a v);
check("gpu_sum($_)") foreach qw(s i l f r n);
check("gpu_avg($_)") foreach qw(s i l f r n);
# numerics of several display scales: the result has the largest one
check("gpu_sum($_), gpu_avg($_)") foreach "CASE WHEN i > 0 THEN 0 ELSE n * 1.25 END", "CASE WHEN k < 3 THEN n WHEN i < 0 THEN s::numeric END * n", "coalesce(n, s, 0.125)",
	"CASE WHEN txt < 't3' THEN 1.5 ELSE n END + CASE WHEN b THEN n ELSE 1.125 END", "greatest(n, 50.5, s) - nullif(n, 3)";
# functions that round numerics to fewer digits, or to more
check("gpu_sum($_), gpu_avg($_)") foreach "round(n * 1.25, 1)", "round(n, 0)", "round(n * n, -3)", "trunc(n, 1) + trunc(n * 3, -1)", "round(n, 5)", "ceil(n) - floor(-n)",
	"mod(n, 7) + n % (s + 200.25)", "sign(n)", "round(CASE WHEN i > 0 THEN 0 ELSE n * 1.25 END, 1)", "CASE WHEN s <> 0 THEN n % s ELSE round(n, 1) END";
check("gpu_sum(round(n, -30))", 'rounding by that many digits is not supported on the GPU');
check("gpu_sum(n / (s + 200.0)), gpu_avg(n / 3)", 'a function is not supported on the GPU');
check("gpu_$_(i), gpu_$_(s), gpu_$_(f)") foreach qw(stddev variance stddev_pop var_pop);
check("gpu_variance(l)");
check("gpu_min($_), gpu_max($_)") foreach qw(s i l f r n d ts m);
check("gpu_bool_and(b), gpu_bool_or(b), gpu_every(i > -9000)");
check("gpu_bit_and(i), gpu_bit_or(l), gpu_bit_xor(s)");
check("gpu_covar_pop(f, i), gpu_covar_samp(f, r), gpu_corr(f, i), gpu_regr_count(f, i), gpu_regr_slope(f, i), gpu_regr_r2(f, i), gpu_regr_avgx(f, i), gpu_regr_sxy(f, i)", $node->regression_reason);
check("gpu_histogram(f, 0, 130, 10000)");
check("gpu_histogram(i, -5000, 5000, 50), gpu_histogram(f, 0, 130, 7, r)");
# of floats, too, whose bins have a test for NaN
check("gpu_histogram2d(f, 0, 130, 20, i, -5000, 5000, 7), gpu_histogram2d(i, 5000, -5000, 3, f, 0, 130, 20, r), gpu_histogram2d(n, 0, 130, 20, r, 10, 0, 5)");
check("gpu_histogram(f, ARRAY[1, 5, 20.5, 100]::float8[]), gpu_histogram_log(f + 1, 1, 1000, 9)");
check("gpu_argmax(i, l), gpu_argmin(i, l), gpu_argmax(s, n::float8), gpu_argmin(seq, ts)");
check("gpu_argmax(i, f), gpu_argmin(f, l), gpu_argmax(r, f), gpu_argmin(f, r)");
check("gpu_first(i, l), gpu_last(i, ts)");
check("gpu_approx_count_distinct($_)") foreach qw(i l d);
# Sketches: the server returns only the counts of ranks for each group, instead of states of 64 kB, unless states are combined later.
foreach my $case (['gpu_approx_count_distinct(i), gpu_approx_count_distinct(l)', 1], ['gpu_approx_count_distinct(i), gpu_count(DISTINCT s)', 1],
	['gpu_approx_count_distinct(i), k % 2', 0, 'GROUPING SETS ((k), (k % 2))'])
{
	my ($what, $ranks, $sets) = @$case;
	my $query = "SELECT k, $what FROM t GROUP BY " . ($sets // 'k') . ' ORDER BY 1, 3';

	is_right_answer($node, $query, $query, settings => "SET gpuagg.require = 'require';");
	my ($bytes) = $node->safe_psql('postgres', "EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) $query") =~ /From Device: (\d+) kB/;
	cmp_ok($bytes, $ranks ? '<' : '>=', $ranks ? 16 : 640, "... $bytes kB are fetched");
}
check('gpu_approx_count_distinct(txt)');
check('gpu_approx_count_distinct(f)', 'a function is not supported on the GPU');
check("gpu_max_subarray_sum(i ORDER BY l, seq)");
check("gpu_max_subarray_sum(i ORDER BY seq DESC), gpu_longest_run(i > 0 ORDER BY seq DESC), gpu_count(*)");
check("gpu_max_subarray_sum(i - 3 ORDER BY seq)");
check("gpu_max_subarray_sum(f - 60 ORDER BY seq)");
check("gpu_longest_run(b ORDER BY seq)");
check("gpu_longest_ascending_run(i ORDER BY seq)");
check("gpu_compose_linear(0.5, s::float8 * 0.125 ORDER BY seq)");
check("gpu_count(*), gpu_sum(i), gpu_avg(i), gpu_min(i), gpu_max(i), gpu_sum(l), gpu_avg(f), gpu_min(f), gpu_max(f), gpu_stddev(f), gpu_sum(n), gpu_avg(n)");
check("gpu_sum(n * (1 - s * 0.01)), gpu_sum(i * n), gpu_avg(n * n)");

# ordered aggregates need all rows on the device
$node->safe_psql('postgres', 'UPDATE t SET i = i + 1 WHERE seq % 5000 = 1');
check("gpu_max_subarray_sum(i ORDER BY seq)", 'all ordered rows must be cached, and some are not');
$node->safe_psql('postgres', 'VACUUM FREEZE t');
$node->safe_psql('postgres', "SELECT gpuagg_cache_prewarm('t')");
my $query = 'SELECT k, gpu_max_subarray_sum(i ORDER BY s), gpu_longest_run(b ORDER BY s) FROM t GROUP BY k ORDER BY k';
is($node->safe_psql('postgres', $query), $node->safe_psql('postgres', "SET gpuagg.cache = off; $query"), 'ties in the order are kept in the order of the table') for 1 .. 2;

# types that are not cached on the device
check("gpu_matrix_product(a ORDER BY seq)", 'matrices are not cached on the GPU');

done_testing();
