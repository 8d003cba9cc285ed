# What the GPU server has no room for is not sent again by each query: columns, and texts beyond a full dictionary.
use strict;
use warnings;
use GpuaggNode;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = GpuaggNode->start_new('main', server => 1, conf => <<CONF);
gpuagg.require = 'require'
gpuagg.engine = 'cuda'
gpuagg.cache = 'eager'
gpuagg.cache_memory = '128MB'
gpuagg.cache_renew = 0
gpuagg.device_cache_memory = '4MB'
autovacuum = off
max_parallel_workers_per_gather = 0
CONF

# more texts than a dictionary may have, in several ranges
$node->safe_psql('postgres', <<SQL);
CREATE TABLE texts AS SELECT i AS v, 'text ' || i AS t, repeat('x', 60) AS pad FROM generate_series(1, 80000) i;
CREATE TABLE more AS SELECT i AS v, 'text ' || i AS t, repeat('x', 60) AS pad FROM generate_series(1, 300000) i;
CREATE TABLE wide AS SELECT i AS a, i AS b, i AS c, i AS d, repeat('x', 100) AS pad FROM generate_series(1, 400000) i;
VACUUM FREEZE ANALYZE;
SELECT gpuagg_cache_prewarm('texts'), gpuagg_cache_prewarm('more'), gpuagg_cache_prewarm('wide');
SQL
ok($node->wait_until_ready, 'the server starts');

sub uploaded
{
	my ($kb) = $node->safe_psql('postgres', "EXPLAIN (ANALYZE, VERBOSE, COSTS OFF) $_[0]") =~ /Uploaded: (\d+) kB/;

	return $kb // 0;
}

for my $query ("SELECT gpu_count(*), gpu_sum(v) FROM texts WHERE t < 'text 5'", "SELECT gpu_count(*) FROM more WHERE t < 'text 5'", 'SELECT gpu_sum(a), gpu_sum(b), gpu_sum(c), gpu_sum(d) FROM wide')
{
	my $right = $node->safe_psql('postgres', "SET gpuagg.enabled = off; SET gpuagg.require = 'allow'; $query");

	cmp_ok(uploaded($query), '>', 0, "at first columns are sent: $query");
	uploaded($query);
	is(uploaded($query), 0, '... and what was refused is not sent again');
	is($node->safe_psql('postgres', $query), $right, '... the answer');
}

# A text column whose values change again and again: values of rows that are gone fill no dictionary for ever.
$node->safe_psql('postgres', <<SQL);
CREATE TABLE changing (v int, t text) WITH (fillfactor = 50);
INSERT INTO changing SELECT i, 'first ' || i FROM generate_series(1, 30000) i;
VACUUM FREEZE ANALYZE changing;
SQL
for my $version (1 .. 6)
{
	my $query = "SELECT gpu_count(*), gpu_sum(v) FROM changing WHERE t < 'version $version 2'";

	$node->safe_psql('postgres', "UPDATE changing SET t = 'version $version ' || v");
	$node->safe_psql('postgres', 'VACUUM FREEZE changing');
	$node->safe_psql('postgres', "SELECT gpuagg_cache_prewarm('changing')");
	$node->safe_psql('postgres', $query);
	like($node->safe_psql('postgres', "EXPLAIN (ANALYZE, VERBOSE, COSTS OFF) $query"), qr/Resident Rows: 30000\b/, "texts changed $version times");
	is($node->safe_psql('postgres', $query), $node->safe_psql('postgres', "SET gpuagg.enabled = off; SET gpuagg.require = 'allow'; $query"),
		'... the answer');
}
cmp_ok($node->device('host_memory'), '>', 0, 'host memory is shown');
cmp_ok($node->device('pinned_memory'), '>', 0, 'pinned memory, too');

$node->stop;
done_testing();
