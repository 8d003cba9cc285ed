# Aggregates with an ORDER BY, extremes with a payload, and aggregates with wide states (histograms, sketches) through the GPU server.
# Their answers must be those of the plain aggregates, and EXPLAIN must name the engine.
use strict;
use warnings;
use GpuaggNode;
use PostgreSQL::Test::Utils;
use Test::More;

# no cache, so that all rows arrive in batches: after an autovacuum the table could be cached
my $node = GpuaggNode->start_new('main', server => 1, conf => 'gpuagg.cache = off');
$node->safe_psql('postgres', <<'SQL');
CREATE TABLE steps AS
SELECT i::int8 * 7919 % 37 AS g, i AS ts, CASE WHEN i % 11 > 0 THEN i::int8 * 104729 % 1000 - 500 END AS v,
       CASE WHEN i % 13 > 0 THEN (i::int8 * 31 % 97 - 48) / 8.0 END::float8 AS x,
       CASE WHEN i % 17 > 0 THEN i::int8 * 53 % 10 < 7 END AS c, i::int8 * 7907 % 50 AS o,
       CASE WHEN i = 30000 THEN 'NaN' ELSE i / 100.0 END::numeric(8, 2) AS n
FROM generate_series(1, 60000) i;
UPDATE steps SET o = NULL WHERE o = 7;
ANALYZE steps;
SQL
$node->wait_until_ready;

my $gpu = "SET gpuagg.require = 'require'; SET gpuagg.engine = 'cuda';";

# Tests the answer of a query with engine cuda, and returns its plan.
sub check_and_explain
{
	my ($query, $name) = @_;

	is_right_answer($node, $query, $name, settings => $gpu);
	return $node->safe_psql('postgres', "$gpu EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) $query");
}

my $ordered = 'gpu_max_subarray_sum(v ORDER BY ts), gpu_max_subarray_sum(x ORDER BY ts), gpu_longest_run(c ORDER BY ts), '
	. 'gpu_longest_ascending_run(v ORDER BY ts), gpu_longest_ascending_run(x ORDER BY ts), gpu_compose_linear(0.5, x ORDER BY ts), '
	. 'gpu_longest_run(c ORDER BY ts) FILTER (WHERE v > 0), gpu_count(*)';
foreach my $order ('ts', 'o, ts', 'o DESC NULLS LAST, ts', 'o NULLS FIRST, x DESC, ts', 'x DESC NULLS FIRST, v, c, ts DESC')
{
	my $query = "SELECT g, $ordered FROM steps GROUP BY g ORDER BY g" =~ s/ORDER BY ts/ORDER BY $order/gr;
	my $plan = check_and_explain($query, "ordered by $order");
	like($plan, qr/Engine: cuda.*Sort: on the GPU/s, '... on the GPU');
}
like(check_and_explain("SELECT $ordered FROM steps", 'one group'), qr/Engine: cuda/, '... on the GPU');
check_and_explain("SELECT $ordered FROM steps WHERE ts < 0", 'no rows');
check_and_explain("SELECT g, $ordered FROM steps WHERE ts < 0 GROUP BY g", 'no groups');
like(check_and_explain('SELECT g, gpu_argmax(x, v), gpu_argmin(ts, x), gpu_last(v, o), gpu_first(c, ts) FROM steps GROUP BY g ORDER BY g', 'extremes'),
	qr/Engine: cuda/, '... on the GPU');
like(check_and_explain('SELECT g, gpu_sum(x / 3 ORDER BY ts), gpu_longest_run(c ORDER BY ts) FROM steps GROUP BY g ORDER BY g', 'a float sum in order'),
	qr/Engine: cpu \(a sum of floats with DISTINCT or an ORDER BY must be added in that order\)/, '... by the CPU engine, which adds in that order');
like(check_and_explain('SELECT g, gpu_approx_count_distinct(v), gpu_histogram(v, -500, 500, 6000), gpu_histogram_log(v, 1, 500, 40) FROM steps GROUP BY g ORDER BY g', 'wide states'),
	qr/Engine: cuda/, '... on the GPU');

like(check_and_explain('SELECT g, gpu_longest_run(c ORDER BY ts), gpu_sum(n) FROM steps GROUP BY g ORDER BY g', 'ordered rows, and numerics that the GPU cannot represent'),
	qr/Engine: cpu \(cuda failed: some of the ordered rows can only/, '... by the CPU engine');

foreach my $size (2 .. 5)
{
	my $matrix = join ',', map { my $r = $_; '[' . join(',', map { $_ == $r ? '0.5' : "x / $_$r" } 1 .. $size) . ']' } 1 .. $size;
	like(check_and_explain("SELECT g, gpu_matrix_product(CASE WHEN v > 400 THEN ARRAY[$matrix] END ORDER BY ts) FROM steps WHERE x IS NOT NULL GROUP BY g ORDER BY g",
			"matrices of size $size"),
		qr/Engine: cuda/, '... on the GPU');
}
like(check_and_explain('SELECT g, gpu_matrix_product(CASE g WHEN 1 THEN ARRAY[[x]] ELSE ARRAY[[x, 1], [1, 0]] END ORDER BY ts) FROM steps WHERE x IS NOT NULL AND ts < 999 GROUP BY g ORDER BY g',
		'matrices whose size depends on the group'),
	qr/Engine: cpu \(cuda failed: matrices have different sizes/, '... by the CPU engine');

# Errors are those of the plain aggregates.
foreach my $bad ('gpu_max_subarray_sum(9223372036854775807 - ts % 2 ORDER BY ts)', 'gpu_max_subarray_sum(1e308::float8 * ts ORDER BY ts)',
	'gpu_matrix_product(CASE ts % 2 WHEN 0 THEN ARRAY[[1, 2], [3, 4]] ELSE ARRAY[[5]] END ORDER BY ts)', 'gpu_matrix_product(ARRAY[1.5] ORDER BY ts)')
{
	my ($plain, $ours);

	$node->psql('postgres', "SET gpuagg.enabled = off; SELECT $bad FROM steps", stderr => \$plain);
	$node->psql('postgres', "$gpu SELECT $bad FROM steps", stderr => \$ours);
	like($plain, qr/ERROR/, "$bad is an error");
	is($ours, $plain, '... and the custom scan raises the same one');
}

# The device runs out of memory. The CPU engine starts over, with its own sort.
$node->set_fault('memory');
like(check_and_explain("SELECT g, $ordered FROM steps GROUP BY g ORDER BY g", 'device memory is exhausted'), qr/Engine: cpu \(cuda failed.*Sort: in memory/s,
	'... and the CPU engine sorts');
$node->clear_fault;

$node->stop;
done_testing();
