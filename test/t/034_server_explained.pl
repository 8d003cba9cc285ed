# EXPLAIN without ANALYZE names the engine that runs the query, and the reason for the CPU engine. EXPLAIN ANALYZE must print the same.
use strict;
use warnings;
use GpuaggNode;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = GpuaggNode->start_new('main', server => 1, conf => <<CONF);
gpuagg.require = 'require'
gpuagg.engine = 'cuda'
autovacuum = off
max_parallel_workers_per_gather = 0
CONF

$node->safe_psql('postgres', <<SQL);
CREATE TABLE rows AS SELECT i % 10 AS k, i AS v, i / 7.0::float8 AS f, (i / 8.0)::numeric AS n, array[[i, 1], [0, 1]]::float8[] AS m
FROM generate_series(1, 20000) i;
ANALYZE rows;
SQL
ok($node->wait_until_ready, 'the server starts');
$node->safe_psql('postgres', 'CREATE TABLE histograms AS SELECT k, gpu_exp_histogram(v, 3) AS h FROM rows GROUP BY k, v % 500; ANALYZE histograms');

# Returns the line "Engine" of the plan that an EXPLAIN prints.
sub explained_engine
{
	my ($engine) = $node->safe_psql('postgres', $_[0]) =~ /Engine: (.*)/;

	return $engine // 'none';
}

my $sums = join(', ', map { "gpu_sum(v + $_), gpu_max(v * $_)" } 2 .. 90);

for (
	['SELECT k, gpu_sum(v), gpu_stddev(f) FROM rows GROUP BY k', qr/^cuda \(2 x stub\)$/],
	['SELECT k, gpu_sum(n) FROM rows GROUP BY k', qr/^cpu \(gpu_sum needs its own transition function, which runs only on the CPU\)$/],
	["SELECT k, $sums FROM rows GROUP BY k", qr/^cpu \(the query has more aggregates than the GPU supports\)$/],
	['SELECT k, gpu_count(*), mode() WITHIN GROUP (ORDER BY f) FROM rows GROUP BY k', qr/^cpu \(mode\(\) of floats is not supported on the GPU\)$/],
	['SELECT k, gpu_count(*), gpu_sum(f ORDER BY v DESC) FROM rows GROUP BY k', qr/^cpu \(/],
	['SELECT k, gpu_product(1 + f * 1e-9) FROM rows GROUP BY k', qr/^cuda \(2 x stub\)$/],
	['SELECT k, gpu_product(r) FROM (SELECT k, 1 + random() * 1e-9 AS r FROM rows OFFSET 0) s GROUP BY k', qr/^cpu \(overflow of a product depends on row order, and the input cannot be read twice\)$/],
	['SELECT n, gpu_count(*) FROM (SELECT n, random() FROM rows OFFSET 0) s GROUP BY n', qr/^cpu \(equal keys may print differently, and the input cannot be read twice\)$/],
	['SELECT k, gpu_count(*), gpu_exp_histogram_merge(h) FROM histograms GROUP BY k', qr/^cpu \(gpu_exp_histogram_merge needs its own transition function/],
	['SELECT gpu_value_counts(k), gpu_entropy(k), gpu_mad(k), gpu_summary(k), gpu_histogram_auto(k, 5), gpu_exp_histogram(k, 2) FROM rows', qr/^cuda \(2 x stub\)$/],
	['SELECT k, gpuagg_exact_sum(DISTINCT f) FROM rows GROUP BY k', qr/^cpu \(exact aggregates of DISTINCT or ordered floats are not supported on the GPU\)$/],
	['SELECT k, gpu_histogram(f, 0, 3000, 20) FROM rows GROUP BY k', qr/^cuda \(2 x stub\)$/])
{
	my ($query, $wanted) = @$_;
	my $name = substr($query, 0, 70);

	like(explained_engine("EXPLAIN (COSTS OFF) $query"), $wanted, "EXPLAIN names the engine: $name");
	is(explained_engine("EXPLAIN (COSTS OFF) $query"), explained_engine("EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) $query"), '... and EXPLAIN ANALYZE the same one');
}

# A parallel plan cannot start over, and its workers know only the plan.
my $workers = parallel_settings() . ' SET gpuagg.cache = off;';

for (['gpu_product(1 + f * 1e-9)', qr/^cpu \(overflow of a product/], ['gpu_sum(f)', qr/^cuda/],
	['gpu_value_counts(v % 9)', qr/^cpu \(.*the input of a parallel plan cannot be read twice\)$/], ['gpu_max_n(v, 3)', qr/^cpu \(.*the input of a parallel plan cannot be read twice\)$/], ['gpu_median(f)', qr/^cpu \(.*the input of a parallel plan cannot be read twice\)$/])
{
	my ($call, $wanted) = @$_;
	my $plan = $node->safe_psql('postgres', "$workers EXPLAIN (COSTS OFF) SELECT k, $call FROM rows GROUP BY k");

	like($plan, qr/Parallel/, "$call: the plan is parallel");
	like(explained_engine("$workers EXPLAIN (COSTS OFF) SELECT k, $call FROM rows GROUP BY k"), $wanted, '... EXPLAIN names the engine');
	like(explained_engine("$workers EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) SELECT k, $call FROM rows GROUP BY k"), $wanted, '... and EXPLAIN ANALYZE the same one');
}

# EXPLAIN does not compute values that are known only when the query runs.
is(explained_engine('EXPLAIN SELECT gpu_histogram(f, 0, (SELECT max(1 / (v - v)) FROM rows), 20) FROM rows'), 'cuda (2 x stub)', 'EXPLAIN does not execute a subquery for the bounds of a histogram');
is(explained_engine('PREPARE bounds(float8) AS SELECT gpu_histogram(f, 0, $1, 20) FROM rows; SET plan_cache_mode = force_generic_plan; EXPLAIN EXECUTE bounds(3000)'),
	'cuda (2 x stub)', 'the bounds of a histogram can be parameters');

done_testing();
