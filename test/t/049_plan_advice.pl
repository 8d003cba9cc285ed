# Planner advice (pg_plan_advice, from PostgreSQL 19 on): the custom scan's paths follow it, and advice can be generated for its plans.
use strict;
use warnings;
use GpuaggNode;
use PostgreSQL::Test::Utils;
use Test::More;

my ($libdir) = run_command([ 'pg_config', '--pkglibdir' ]);
plan skip_all => 'pg_plan_advice is not installed' if !-e "$libdir/pg_plan_advice.so";

my $node = GpuaggNode->start_new('main', conf => <<CONF);
session_preload_libraries = 'pg_plan_advice'
gpuagg.replace_builtin = on
gpuagg.startup_cost = 0
autovacuum = off
parallel_setup_cost = 0
parallel_tuple_cost = 0
min_parallel_table_scan_size = 0
max_parallel_workers_per_gather = 0
CONF

$node->safe_psql('postgres', <<SQL);
CREATE TABLE fact AS SELECT i AS id, i % 10 AS k, i::bigint AS n FROM generate_series(1, 50000) i;
CREATE INDEX fact_id ON fact (id);
CREATE TABLE dim AS SELECT i AS k, 'd' || i % 4 AS name FROM generate_series(0, 9) i;
VACUUM ANALYZE fact, dim;
SQL

# Returns the plan of a query under some advice, with the advice that is generated for it.
sub plan_of
{
	my ($query, $advice, $workers) = @_;

	return $node->safe_psql('postgres',
		"SET max_parallel_workers_per_gather = $workers; SET pg_plan_advice.advice = '$advice'; EXPLAIN (COSTS OFF, PLAN_ADVICE) $query");
}

my $alone = 'SELECT k, sum(n) FROM fact t GROUP BY k';
my $few = 'SELECT k, sum(n) FROM fact t WHERE id <= 10 GROUP BY k';
my $joined = 'SELECT name, sum(n) FROM fact t JOIN dim USING (k) GROUP BY name';
my $scan = qr/Custom Scan \(GpuAgg\)/;

# query, advice, workers, what the plan must match, and what it must not
foreach my $case (
	[ $few, '', 0, qr/$scan.*Index Scan using fact_id on fact t.*INDEX_SCAN\(t public\.fact_id\)\n.*NO_GATHER\(t\)/s ],
	[ $few, 'SEQ_SCAN(t)', 0, qr/$scan.*-> +Seq Scan on fact t/s, qr/Index/ ],
	[ $few, 'BITMAP_HEAP_SCAN(t)', 0, qr/$scan.*Bitmap Heap Scan on fact t/s ],
	[ 'SELECT k, sum(n) FROM fact t WHERE id > 1 GROUP BY k', 'INDEX_SCAN(t fact_id)', 0, qr/$scan.*Index Scan using fact_id on fact t/s ],
	[ $alone, '', 2, qr/Gather\n.*Parallel $scan/s ],
	[ $alone, 'GATHER(t)', 2, qr/Gather\n.*Parallel $scan/s ],
	[ $alone, 'NO_GATHER(t)', 2, qr/$scan.*-> +Seq Scan on fact t/s, qr/Gather\n|Parallel/ ],
	[ $alone, 'GATHER_MERGE(t)', 2, qr/Gather Merge/, qr/Gather\n/ ],
	[ $joined, '', 0, qr/$scan on fact t.*JOIN_ORDER.*SEQ_SCAN\(t dim\)/s ],
	[ $joined, '', 2, qr/Parallel $scan on fact t.*GATHER(?:_MERGE)?\(\(t dim\)\)/s ],
	[ $joined, 'NO_GATHER(t dim)', 2, qr/$scan on fact t/, qr/Gather(?: Merge)?\n|Parallel/ ],
	[ $joined, 'HASH_JOIN(t)', 0, qr/Hash Join.*$scan on fact t/s ],
	[ $joined, 'MERGE_JOIN_PLAIN(t)', 0, qr/Merge Join.*$scan on fact t/s ],
	[ $joined, 'NESTED_LOOP_PLAIN(t)', 0, qr/Nested Loop.*$scan on fact t/s ])
{
	my ($query, $advice, $workers, $like, $unlike) = @$case;
	my $plan = plan_of($query, $advice, $workers);
	my $name = ($advice || 'no advice') . ", $workers workers: $query";

	like($plan, $like, $name);
	unlike($plan, $unlike, "$name (not)") if $unlike;
}

# the column cache makes a sequential scan cheap, but advice for another scan remains in force
$node->safe_psql('postgres', q{SELECT gpuagg_cache_prewarm('fact')});
like(plan_of('SELECT k, sum(n) FROM fact t WHERE id > 40000 GROUP BY k', 'INDEX_SCAN(t fact_id)', 0), qr/Index Scan using fact_id on fact t/,
	'advice for an index of a cached table');

# a plan follows the advice that was generated for it
foreach my $query ($few, $alone, $joined)
{
	my $plan = plan_of($query, '', 0);
	my ($body, $advice) = $plan =~ /\A(.*?)\n *Generated Plan Advice:\n(.*)\z/s;

	$advice =~ s/\s+/ /g;
	like(plan_of($query, $advice, 0), qr/\A\Q$body\E\n/, "generated advice: $query");
}
$node->stop;
done_testing();
