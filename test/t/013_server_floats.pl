# Floats near the limits of their types, through the GPU server over a stub of the CUDA run time: the GPU adds up
# in no order, so it must not get values whose sums might overflow in one.
use strict;
use warnings;
use GpuaggNode;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = GpuaggNode->start_new('main', server => 1);
$node->safe_psql('postgres', <<'SQL');
CREATE TABLE f AS
SELECT i, i % 7 AS k, i / 8.0::float8 AS x, (i % 1000)::float4 AS r FROM generate_series(1, 100000) i;
ANALYZE f;
SQL
$node->wait_until_ready;

my $gpu = "SET gpuagg.require = 'require'; SET gpuagg.engine = 'cuda';";
my $parallel = "$gpu SET max_parallel_workers_per_gather = 2; SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0; SET min_parallel_table_scan_size = 0;";
my $explain = 'EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF)';

# What psql prints, an error's text included.
sub answer
{
	my ($query) = @_;
	my ($out, $err);

	$node->psql('postgres', $query, stdout => \$out, stderr => \$err);
	return $out . ($err =~ /(ERROR: .*)/ ? $1 : '');
}

# Column x or r with $values in some rows; the query gives what it gives without the custom scan.
sub one_among
{
	my ($what, $values, $engine, $name) = @_;
	my $column = $what =~ /\br\b/ ? "CASE i $values ELSE r::float8 END::float4 AS r" : "CASE i $values ELSE x END AS x";
	my $query = "SELECT k, $what FROM (SELECT k, $column FROM f) s GROUP BY k ORDER BY k";
	my $plain = answer("SET gpuagg.enabled = off; $query");
	my $error = $engine eq 'error';

	is(answer("$gpu $query"), $plain, "$name: as without the custom scan");
	like($plain, $error ? qr/^ERROR:  value out of range: overflow$/ : qr/\A(?!.*ERROR)/s, $error ? '... an error' : '... an answer');
	# what is an error leaves no plan
	like(answer("$gpu $explain $query"), $engine, '... by the right engine') unless $error;
}

my $cpu = qr/Engine: cpu \(cuda failed: floats are so large that overflow depends on row order\)/;
my $cuda = qr/Engine: cuda/;

# limits: 2^983 for sums, 2^470 for variances and the like, 2^87 for sums of float4
one_among('gpu_sum(x)', "WHEN 70 THEN 1.7e308 WHEN 77 THEN 1.7e308", 'error', 'a sum that overflows');
one_among('gpu_sum(x)', "WHEN 70 THEN 1.7e308 WHEN 77 THEN 1.7e308 WHEN 84 THEN -1.7e308", 'error', 'a sum that overflows on the way');
one_among('gpu_sum(x)', "WHEN 70 THEN 1.7e308 WHEN 77 THEN -1.7e308 WHEN 84 THEN 1.7e308", $cpu, 'one that would in another order');
one_among('gpu_sum(x)', "WHEN 70 THEN -8.2e295", $cpu, 'a sum at its limit');
one_among('gpu_sum(x)', "WHEN 70 THEN 8.1e295", $cuda, 'a sum below its limit');
one_among('gpu_sum(x)', "WHEN 70 THEN 'infinity' WHEN 71 THEN '-infinity' WHEN 72 THEN 'NaN'", $cuda, 'infinities and NaN');
one_among('gpu_avg(x)', "WHEN 70 THEN 1e155", 'error', 'an average whose squares overflow');
one_among('gpu_avg(x)', "WHEN 70 THEN 1e200 WHEN 77 THEN 'NaN'", 'error', '... before a NaN');
one_among('gpu_avg(x)', "WHEN 70 THEN 3.1e141", $cpu, 'an average at its limit');
one_among('gpu_avg(x)', "WHEN 70 THEN 3.0e141", $cuda, 'an average below its limit');
one_among('gpu_stddev(x)', "WHEN 70 THEN 'NaN' WHEN 77 THEN 1e200", $cpu, 'a deviation after NaN');
one_among('gpu_regr_slope(k, x), gpu_sum(x)', "WHEN 70 THEN -1e150", $cpu, 'a regression over large values');
one_among('gpu_corr(x, k), gpu_sum(x)', "WHEN 70 THEN -1e200", 'error', 'a correlation of large values');
one_among('gpu_sum(r)', "WHEN 70 THEN 1.6e26", $cpu, 'a sum of float4 at its limit');
one_among('gpu_sum(r)', "WHEN 70 THEN 1.5e26", $cuda, 'a sum of float4 below its limit');
one_among('gpu_stddev(r), gpu_max(r)', "WHEN 70 THEN 3.4e38", $cuda, 'a deviation of float4');
one_among('gpu_min(x), gpu_max(x), gpu_count(x)', "WHEN 70 THEN 1.7e308", $cuda, 'no sum');
one_among('gpu_sum(x), gpu_count(*)', "WHEN 70 THEN NULL", $cuda, 'NULL');

# In a parallel plan batches with such values stay with the CPU, so that no error comes of the GPU's order.
my $large = 'SELECT gpu_count(x), gpu_sum(x), gpu_stddev(x) > 0 FROM (SELECT CASE WHEN i BETWEEN 500 AND 503 THEN (1 - i % 2 * 2) * 1e149 ELSE x END AS x FROM f) s';
my $plan = $node->safe_psql('postgres', "$parallel $explain $large");
like($plan, qr/Engine: cuda.*Participants: 3.*Rows on CPU: \d+/s, 'a parallel plan leaves large values to the CPU');
like($node->safe_psql('postgres', "$parallel $large"), qr/^100000\|[-0-9.e+]+\|t$/, '... and has an answer');
is(answer("$parallel SELECT gpu_sum(CASE WHEN i < 3 THEN 1.7e308 ELSE x END) FROM f"), 'ERROR:  value out of range: overflow',
	'... or an error, if the values overflow');
is(answer("$parallel SELECT gpu_avg(CASE WHEN i < 3 THEN (1 - i % 2 * 2) * 1e200 ELSE x END) FROM f"), 'ERROR:  value out of range: overflow',
	'... or their squares');

# So they do where volatile functions could not be called again.
my $once = 'SELECT gpu_sum(CASE WHEN i = 7 THEN 1e300 ELSE r END), gpu_count(*) FROM (SELECT i, random() AS r FROM f OFFSET 0) s';
like($node->safe_psql('postgres', "$gpu $explain $once"), qr/Engine: cuda.*Rows on CPU: \d+/s, 'and with volatile functions');
is($node->safe_psql('postgres', "$gpu $once"), '1e+300|100000', '... with an answer');

# Products overflow in one order and not in another; no plan of theirs could start over.
my $product = 'SELECT gpu_product(CASE i % 2 WHEN 0 THEN 1.01 ELSE 1 / 1.01 END::float8) FROM f';
$plan = $node->safe_psql('postgres', "$parallel $explain $product");
like($plan, qr/Engine: cpu \(overflow of a product/, 'a parallel product runs on the CPU');
like($node->safe_psql('postgres', "$gpu $explain SELECT gpu_product(1 + x / 1e9) FROM f"), qr/Engine: cuda/, '... a serial one on the GPU');

$node->stop;
done_testing();
