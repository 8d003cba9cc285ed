# Columns that the GPU server rejects are not sent again by each query: the server has no memory for the copies, or a dictionary is full.
# Also: a text column whose values change again and again does not fill its dictionary forever.
use strict;
use warnings;
use GpuaggNode;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = GpuaggNode->start_new('main', cached => 1, conf => <<CONF);
gpuagg.cache_memory = '128MB'
gpuagg.device_cache_memory = '4MB'
CONF

# tables texts and more have more texts than a dictionary may have, in several block ranges
$node->safe_psql('postgres', <<SQL);
CREATE TABLE texts AS SELECT i AS v, 'text ' || i AS t, repeat('x', 60) AS pad FROM generate_series(1, 80000) i;
CREATE TABLE more AS SELECT i AS v, 'text ' || i AS t, repeat('x', 60) AS pad FROM generate_series(1, 300000) i;
CREATE TABLE wide AS SELECT i AS a, i AS b, i AS c, i AS d, repeat('x', 100) AS pad FROM generate_series(1, 400000) i;
VACUUM FREEZE ANALYZE;
SELECT gpuagg_cache_prewarm('texts'), gpuagg_cache_prewarm('more'), gpuagg_cache_prewarm('wide');
SQL
ok($node->wait_until_ready, 'the server starts');

# Executes the query, and returns the kB that it uploaded.
sub uploaded_kb
{
	my ($kb) = $node->explain_analyze($_[0]) =~ /Uploaded: (\d+) kB/;

	return $kb // 0;
}

for my $query ("SELECT gpu_count(*), gpu_sum(v) FROM texts WHERE t < 'text 5'", "SELECT gpu_count(*) FROM more WHERE t < 'text 5'", 'SELECT gpu_sum(a), gpu_sum(b), gpu_sum(c), gpu_sum(d) FROM wide')
{
	cmp_ok(uploaded_kb($query), '>', 0, "the first execution uploads columns: $query");
	uploaded_kb($query);
	is(uploaded_kb($query), 0, '... rejected columns are not uploaded again');
	is_right_answer($node, $query, '... the answer is right');
}

# Values of dead rows must not stay in the dictionary forever.
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
	like($node->explain_analyze($query), qr/Resident Rows: 30000\b/, "rows come from the device after texts changed $version times");
	is_right_answer($node, $query, '... the answer is right');
}
cmp_ok($node->device('host_memory'), '>', 0, 'gpuagg_devices() shows host memory');
cmp_ok($node->device('pinned_memory'), '>', 0, '... and pinned memory');

$node->stop;
done_testing();
