# Spans of block ranges: the backend proves the visibility of a span's rows once, and then refers to the span by its id. Answers must
# be core's whatever happens to the table and the server between queries. Repeated queries must upload nothing.
use strict;
use warnings;
use GpuaggNode;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = GpuaggNode->start_new('main', cached => 1);

# several ranges
$node->safe_psql('postgres', <<SQL);
CREATE TABLE t (k int, v int, d int, f float8) WITH (fillfactor = 20);
INSERT INTO t SELECT i % 10, i, i / 100, i FROM generate_series(1, 60000) i;
VACUUM FREEZE ANALYZE t;
SELECT gpuagg_cache_prewarm('t');
SQL
ok($node->wait_until_ready, 'the server starts');

my $sums = 'SELECT k, gpu_count(*), gpu_sum(v), gpu_min(d), gpu_max(f) FROM t';
my @queries = ("$sums GROUP BY k ORDER BY k", "$sums WHERE d > 500 GROUP BY k ORDER BY k", 'SELECT gpu_count(*) FROM t',
	"$sums WHERE v < 0 GROUP BY k ORDER BY k");

# Tests that all queries give core's answers. Each runs several times: the first execution proves ranges, the second one sends the
# span with its list of ranges, the third one sends the span's id only.
sub check_queries
{
	my ($name, $times) = @_;

	is_right_answer($node, $_, "$name: $_", reference => core_query($_), times => $times // 3) foreach @queries;
	return;
}

check_queries('at first');
like($node->explain_analyze($_), qr/Resident Rows: 60000/, "all rows come from the device: $_") for @queries[0, 2];
like($node->explain_analyze($queries[3]), qr/skipped=[1-9]/, 'the bounds of a span exclude it by a condition');
unlike($node->explain_analyze($queries[0]), qr/Uploaded/, 'nothing is uploaded');
like($node->explain_analyze($queries[0]), qr/Session Time: .*Proof Time: .*Resident Time: .*Finish Time: .*Fetch Time: .*Server Time: /s, 'EXPLAIN shows the times of all steps');

# ---- changes of the table ----

foreach my $change (
	'DELETE FROM t WHERE v = 30000', 'VACUUM t', 'UPDATE t SET v = v + 1 WHERE d = 300', 'VACUUM FREEZE t',
	'INSERT INTO t SELECT 3, i, i / 100, i FROM generate_series(60001, 75000) i', 'VACUUM FREEZE t',
	'DELETE FROM t WHERE v > 50000', 'VACUUM t', 'SELECT gpuagg_cache_prewarm(\'t\')', 'UPDATE t SET f = NULL WHERE v = 5',
	'VACUUM t', 'BEGIN; DELETE FROM t WHERE v = 77; ROLLBACK', 'SELECT * FROM t WHERE v = 78 FOR UPDATE', 'SELECT gpuagg_cache_evict(\'t\')',
	'TRUNCATE t', 'INSERT INTO t SELECT i % 10, i, i / 100, i FROM generate_series(1, 60000) i', 'VACUUM FREEZE t',
	'SELECT gpuagg_cache_prewarm(\'t\')')
{
	$node->safe_psql('postgres', $change);
	check_queries("after $change", 4);
}

like($node->explain_analyze($queries[0]), qr/Resident Rows: 60000/, 'all rows come from the device');

# ---- changes of other transactions ----
my $writer = $node->background_psql('postgres');
my $reader = $node->background_psql('postgres');
my $sum = 'SELECT gpu_sum(v) FROM t';
my $before = $node->safe_psql('postgres', core_query($sum));
$node->safe_psql('postgres', $sum) for 1 .. 3;
$reader->query_safe('BEGIN ISOLATION LEVEL REPEATABLE READ');
is($reader->query_safe($sum), $before, 'a REPEATABLE READ transaction gives the right answer');
$writer->query_safe('BEGIN');
$writer->query_safe('UPDATE t SET v = 1000000 WHERE v = 40000');
is($node->safe_psql('postgres', $sum), $before, 'a change is not seen before its commit') for 1 .. 2;
is($writer->query_safe($sum), $before + 960000, '... but by its own transaction');
$writer->query_safe('COMMIT');
is($node->safe_psql('postgres', $sum), $before + 960000, '... and by all others after the commit') for 1 .. 2;
is($reader->query_safe($sum), $before, '... but not by the older snapshot');
$node->safe_psql('postgres', 'VACUUM t');
is($node->safe_psql('postgres', $sum), $before + 960000, 'it is still seen after VACUUM') for 1 .. 3;
is($reader->query_safe($sum), $before, '... and not by the older snapshot') for 1 .. 2;
$reader->query_safe('COMMIT');
is($reader->query_safe($sum), $before + 960000, '... but by a new one');
$reader->query_safe('BEGIN ISOLATION LEVEL SERIALIZABLE');
is($reader->query_safe($sum), $before + 960000, '... and by a SERIALIZABLE transaction') for 1 .. 2;
$reader->query_safe('COMMIT');
$writer->quit;
$reader->quit;

# Kills the server, and waits until another one is ready.
sub restart_server
{
	my $restarts = $node->safe_psql('postgres', 'SELECT restarts FROM gpuagg_status');

	$node->kill_server;
	$node->safe_psql('postgres', "SET gpuagg.engine = 'auto'; $sum");
	return $node->poll_query_until('postgres', "SELECT restarts > $restarts AND server = 'ready' FROM gpuagg_status");
}

# ---- another server, which does not have the spans ----
ok(restart_server(), 'another server starts');
check_queries('with another server');

$node->safe_psql('postgres', 'VACUUM t');
$node->safe_psql('postgres', "SELECT gpuagg_cache_prewarm('t')");
check_queries('after a prewarm');

# ---- no memory: columns that were rejected are not sent again ----
$node->safe_psql('postgres', "ALTER SYSTEM SET gpuagg.device_cache_memory = '1MB'");
$node->reload;
# a new server, which has no copies yet
ok(restart_server(), 'a server with little memory for copies starts');
$node->explain_analyze($queries[0]);
check_queries('with little memory');
unlike($node->explain_analyze($queries[0]), qr/Uploaded/, 'rejected columns are not sent again');
cmp_ok($node->safe_psql('postgres', 'SELECT sum(bytes) FROM gpuagg_device_columns()'), '<=', 1024 * 1024, 'the copies stay below gpuagg.device_cache_memory');

done_testing();
