# Spans of ranges that are proved and named as a whole: answers stay core's whatever happens to the table between queries,
# and a steady query asks once.
use strict;
use warnings;
use GpuaggNode;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = GpuaggNode->start_new('main', server => 1, conf => <<CONF);
gpuagg.require = 'require'
gpuagg.engine = 'cuda'
gpuagg.cache = 'eager'
gpuagg.cache_memory = '64MB'
gpuagg.cache_renew = 0
autovacuum = off
CONF

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

sub core
{
	my ($query) = @_;
	$query =~ s/gpu_(?=\w+\()//g;
	return $node->safe_psql('postgres', "SET gpuagg.enabled = off; SET gpuagg.require = 'allow'; $query");
}

# Each query thrice: ranges are looked at, their span is named with its list, and without.
sub same
{
	my ($name, $times) = @_;
	foreach my $query (@queries)
	{
		my $right = core($query);
		is(join("|", map { $node->safe_psql('postgres', $query) eq $right } 1 .. $times // 3), join('|', (1) x ($times // 3)), "$name: $query");
	}
	return;
}

sub explain { return $node->safe_psql('postgres', "EXPLAIN (ANALYZE, VERBOSE, COSTS OFF) $_[0]") }

same('at first');
like(explain($_), qr/Resident Rows: 60000/, "all rows are on the GPU: $_") for @queries[0, 2];
like(explain($queries[3]), qr/skipped=[1-9]/, 'bounds of the span refute a condition');
unlike(explain($queries[0]), qr/Uploaded/, 'nothing is uploaded');
like(explain($queries[0]), qr/Session Time: .*Proof Time: .*Resident Time: .*Finish Time: .*Fetch Time: .*Server Time: /s, 'times');

foreach my $change (
	'DELETE FROM t WHERE v = 30000', 'VACUUM t', 'UPDATE t SET v = v + 1 WHERE d = 300', 'VACUUM FREEZE t',
	'INSERT INTO t SELECT 3, i, i / 100, i FROM generate_series(60001, 75000) i', 'VACUUM FREEZE t',
	'DELETE FROM t WHERE v > 50000', 'VACUUM t', 'SELECT gpuagg_cache_prewarm(\'t\')', 'UPDATE t SET f = NULL WHERE v = 5',
	'VACUUM t', 'BEGIN; DELETE FROM t WHERE v = 77; ROLLBACK', 'SELECT * FROM t WHERE v = 78 FOR UPDATE', 'SELECT gpuagg_cache_evict(\'t\')',
	'TRUNCATE t', 'INSERT INTO t SELECT i % 10, i, i / 100, i FROM generate_series(1, 60000) i', 'VACUUM FREEZE t',
	'SELECT gpuagg_cache_prewarm(\'t\')')
{
	$node->safe_psql('postgres', $change);
	same($change, 4);
}

like(explain($queries[0]), qr/Resident Rows: 60000/, 'all rows are on the GPU');

# others' changes: not seen before their commit, nor by older snapshots
my $writer = $node->background_psql('postgres');
my $reader = $node->background_psql('postgres');
my $sum = 'SELECT gpu_sum(v) FROM t';
my $before = core($sum);
$node->safe_psql('postgres', $sum) for 1 .. 3;
$reader->query_safe('BEGIN ISOLATION LEVEL REPEATABLE READ');
is($reader->query_safe($sum), $before, 'a snapshot');
$writer->query_safe('BEGIN');
$writer->query_safe('UPDATE t SET v = 1000000 WHERE v = 40000');
is($node->safe_psql('postgres', $sum), $before, 'before the commit') for 1 .. 2;
is($writer->query_safe($sum), $before + 960000, 'the own change');
$writer->query_safe('COMMIT');
is($node->safe_psql('postgres', $sum), $before + 960000, 'after the commit') for 1 .. 2;
is($reader->query_safe($sum), $before, 'an older snapshot');
$node->safe_psql('postgres', 'VACUUM t');
is($node->safe_psql('postgres', $sum), $before + 960000, 'after vacuum') for 1 .. 3;
is($reader->query_safe($sum), $before, 'an older snapshot after vacuum') for 1 .. 2;
$reader->query_safe('COMMIT');
is($reader->query_safe($sum), $before + 960000, 'a new one');
$reader->query_safe('BEGIN ISOLATION LEVEL SERIALIZABLE');
is($reader->query_safe($sum), $before + 960000, 'a serializable one') for 1 .. 2;
$reader->query_safe('COMMIT');
$writer->quit;
$reader->quit;

# Ends the server; true once another one is ready.
sub kill_server
{
	my $restarts = $node->safe_psql('postgres', 'SELECT restarts FROM gpuagg_status');

	$node->kill_server;
	$node->safe_psql('postgres', "SET gpuagg.engine = 'auto'; $sum");
	return $node->poll_query_until('postgres', "SELECT restarts > $restarts AND server = 'ready' FROM gpuagg_status");
}

# a list that another server had
ok(kill_server(), 'another server starts');
same('with another server');

$node->safe_psql('postgres', 'VACUUM t');
$node->safe_psql('postgres', "SELECT gpuagg_cache_prewarm('t')");
same('renewed');

# no room: what was refused is not sent again
$node->safe_psql('postgres', "ALTER SYSTEM SET gpuagg.device_cache_memory = '1MB'");
$node->reload;
# without what it has from before
ok(kill_server(), 'a server with little memory');
explain($queries[0]);
same('no room');
unlike(explain($queries[0]), qr/Uploaded/, 'nothing is sent that was refused');
cmp_ok($node->safe_psql('postgres', 'SELECT sum(bytes) FROM gpuagg_device_columns()'), '<=', 1024 * 1024, 'the limit is kept');

done_testing();
