# Floats near the limits of their types at the GPU server. The GPU adds in no fixed order, so values whose sum may overflow in some
# order must go to the CPU. The reference is the answer, or the error, of the plain aggregates.
use strict;
use warnings;
use GpuaggNode;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = GpuaggNode->start_new('main', server => 1, conf => "gpuagg.cache = off\n");
$node->safe_psql('postgres', <<'SQL');
CREATE TABLE f AS
SELECT i, i % 7 AS k, i / 8.0::float8 AS x, (i % 1000)::float4 AS r FROM generate_series(1, 100000) i;
ANALYZE f;
SQL
$node->wait_until_ready;

my $gpu = "SET gpuagg.require = 'require'; SET gpuagg.engine = 'cuda';";
my $parallel = $gpu . parallel_settings();
my $explain = 'EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF)';

# Tests aggregates over column x or r, in which $values replaces the values of some rows. $engine is the expected line of EXPLAIN,
# or "error" if the query must fail with an overflow.
sub check_values
{
	my ($aggregates, $values, $engine, $name) = @_;
	my $column = $aggregates =~ /\br\b/ ? "CASE i $values ELSE r::float8 END::float4 AS r" : "CASE i $values ELSE x END AS x";
	my $query = "SELECT k, $aggregates FROM (SELECT k, $column FROM f) s GROUP BY k ORDER BY k";
	my $plain = answer($node, without_scan($query));
	my $error = $engine eq 'error';

	is(answer($node, "$gpu $query"), $plain, "$name: the same as without the custom scan");
	like($plain, $error ? qr/^ERROR:  value out of range: overflow$/ : qr/\A(?!.*ERROR)/s, $error ? '... which is an error' : '... which is no error');
	# a query that fails has no plan
	like(answer($node, "$gpu $explain $query"), $engine, '... with the right engine') unless $error;
}

my $cpu = qr/Engine: cpu \(cuda failed: floats are so large that overflow depends on row order\)/;
my $cuda = qr/Engine: cuda/;

# The limits are 2^983 for sums, 2^470 for averages, variances and regressions, and 2^87 for sums of float4.
check_values('gpu_sum(x)', "WHEN 70 THEN 1.7e308 WHEN 77 THEN 1.7e308", 'error', 'a sum that overflows');
check_values('gpu_sum(x)', "WHEN 70 THEN 1.7e308 WHEN 77 THEN 1.7e308 WHEN 84 THEN -1.7e308", 'error', 'a sum that overflows in the order of the rows');
check_values('gpu_sum(x)', "WHEN 70 THEN 1.7e308 WHEN 77 THEN -1.7e308 WHEN 84 THEN 1.7e308", $cpu, 'a sum that overflows in another order');
check_values('gpu_sum(x)', "WHEN 70 THEN -8.2e295", $cpu, 'a sum at its limit');
check_values('gpu_sum(x)', "WHEN 70 THEN 8.1e295", $cuda, 'a sum below its limit');
check_values('gpu_sum(x)', "WHEN 70 THEN 'infinity' WHEN 71 THEN '-infinity' WHEN 72 THEN 'NaN'", $cuda, 'infinities and NaN');
check_values('gpu_avg(x)', "WHEN 70 THEN 1e155", 'error', 'an average whose squares overflow');
check_values('gpu_avg(x)', "WHEN 70 THEN 1e200 WHEN 77 THEN 'NaN'", 'error', '... before a NaN');
check_values('gpu_avg(x)', "WHEN 70 THEN 3.1e141", $cpu, 'an average at its limit');
check_values('gpu_avg(x)', "WHEN 70 THEN 3.0e141", $cuda, 'an average below its limit');
check_values('gpu_stddev(x)', "WHEN 70 THEN 'NaN' WHEN 77 THEN 1e200", $cpu, 'a deviation after NaN');
check_values('gpu_regr_slope(k, x), gpu_sum(x)', "WHEN 70 THEN -1e150", $node->regression_reason ? qr/Engine: cpu/ : $cpu, 'a regression over large values');
check_values('gpu_corr(x, k), gpu_sum(x)', "WHEN 70 THEN -1e200", 'error', 'a correlation of large values');
check_values('gpu_sum(r)', "WHEN 70 THEN 1.6e26", $cpu, 'a sum of float4 at its limit');
check_values('gpu_sum(r)', "WHEN 70 THEN 1.5e26", $cuda, 'a sum of float4 below its limit');
check_values('gpu_stddev(r), gpu_max(r)', "WHEN 70 THEN 3.4e38", $cuda, 'a deviation of float4');
check_values('gpu_min(x), gpu_max(x), gpu_count(x)', "WHEN 70 THEN 1.7e308", $cuda, 'no sum');
check_values('gpu_sum(x), gpu_count(*)', "WHEN 70 THEN NULL", $cuda, 'NULL');

# In a parallel plan the CPU fallback takes batches with such values, so that the GPU's order causes no error.
my $large = 'SELECT gpu_count(x), gpu_sum(x), gpu_stddev(x) > 0 FROM (SELECT CASE WHEN i BETWEEN 500 AND 503 THEN (1 - i % 2 * 2) * 1e149 ELSE x END AS x FROM f) s';
my $plan = $node->safe_psql('postgres', "$parallel $explain $large");
like($plan, qr/Engine: cuda.*Participants: 3.*Rows on CPU: \d+/s, 'in a parallel plan the CPU fallback takes large values');
like($node->safe_psql('postgres', "$parallel $large"), qr/^100000\|[-0-9.e+]+\|t$/, '... and the query gives an answer');
is(answer($node, "$parallel SELECT gpu_sum(CASE WHEN i < 3 THEN 1.7e308 ELSE x END) FROM f"), 'ERROR:  value out of range: overflow',
	'... but an error if the sum overflows');
is(answer($node, "$parallel SELECT gpu_avg(CASE WHEN i < 3 THEN (1 - i % 2 * 2) * 1e200 ELSE x END) FROM f"), 'ERROR:  value out of range: overflow',
	'... or if the sum of squares overflows');

# The same holds for rows of volatile functions, which cannot be computed again.
my $once = 'SELECT gpu_sum(CASE WHEN i = 7 THEN 1e300 ELSE r END), gpu_count(*) FROM (SELECT i, random() AS r FROM f OFFSET 0) s';
like($node->safe_psql('postgres', "$gpu $explain $once"), qr/Engine: cuda.*Rows on CPU: \d+/s, 'the CPU fallback takes large values of rows with volatile functions');
is($node->safe_psql('postgres', "$gpu $once"), '1e+300|100000', '... and the query gives an answer');

# Whether a product overflows depends on the order. A parallel plan could not start over.
my $product = 'SELECT gpu_product(CASE i % 2 WHEN 0 THEN 1.01 ELSE 1 / 1.01 END::float8) FROM f';
$plan = $node->safe_psql('postgres', "$parallel $explain $product");
like($plan, qr/Engine: cpu \(overflow of a product/, 'a parallel product runs on the CPU');
like($node->safe_psql('postgres', "$gpu $explain SELECT gpu_product(1 + x / 1e9) FROM f"), qr/Engine: cuda/, '... a product without workers on the GPU');

$node->stop;
done_testing();
