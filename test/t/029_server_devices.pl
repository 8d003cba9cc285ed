# Tables that are spread over several devices: answers are core's, whatever happens to the table, the devices and the server.
use strict;
use warnings;
use GpuaggNode;
use PostgreSQL::Test::Utils;
use Resident;
use Test::More;

# each range on another one of three devices
$ENV{GPUAGG_STUB_DEVICES} = 3;
$ENV{GPUAGG_STUB_RANGES} = 1;
my $node = GpuaggNode->start_new('main', server => 1, conf => <<CONF);
gpuagg.require = 'require'
gpuagg.engine = 'cuda'
gpuagg.cache = 'eager'
gpuagg.cache_memory = '64MB'
gpuagg.cache_renew = 0
autovacuum = off
extra_float_digits = -3
CONF
$Resident::node = $node;
ok($node->wait_until_ready, 'the server starts');
$node->safe_psql('postgres', <<SQL);
CREATE TABLE t (k int, k2 int8, s text, v int, f float8, n numeric(10, 2), b bool) WITH (fillfactor = 20);
INSERT INTO t SELECT i % 100, i % 7 - 3, 'key ' || i / 4000, i, i / 8.0, i / 100.0, i % 3 = 0 FROM generate_series(1, 60000) i;
UPDATE t SET k = NULL, f = NULL WHERE v % 53 = 0;
VACUUM FREEZE ANALYZE t;
CREATE TABLE small (k int, v int);
INSERT INTO small SELECT i % 10, i FROM generate_series(1, 1000) i;
VACUUM FREEZE ANALYZE small;
SELECT gpuagg_cache_prewarm('t'), gpuagg_cache_prewarm('small');
SQL

my $sums = 'SELECT k, gpu_count(*), gpu_count(f), gpu_sum(v), gpu_avg(f), gpu_min(n), gpu_max(n) FROM t';
my @queries = (
	'SELECT gpu_count(*), gpu_sum(v), gpu_min(f), gpu_stddev(f), gpu_sum(n) FROM t',
	'SELECT gpu_count(*), gpu_sum(v) FROM t WHERE (v # 1) = -5 AND n > -1',
	"$sums GROUP BY k ORDER BY k",
	"$sums WHERE b GROUP BY k ORDER BY k",
	'SELECT v, gpu_count(*), gpu_sum(f) FROM t GROUP BY v ORDER BY v LIMIT 50',
	'SELECT k2, k, gpu_count(*) FROM t GROUP BY k2, k ORDER BY 1, 2',
	'SELECT k, gpu_count(*) AS c FROM t GROUP BY k ORDER BY c DESC, k LIMIT 5',
	'SELECT k, gpu_count(f), gpu_count(*) FROM t GROUP BY k ORDER BY 2 DESC, 3, k DESC NULLS LAST LIMIT 7',
	'SELECT v, gpu_count(*), gpu_max(n) FROM t GROUP BY v ORDER BY 2 DESC, 3 DESC, v LIMIT 20',
	'SELECT v % 20000, gpu_sum(v) AS c FROM t GROUP BY 1 ORDER BY c DESC LIMIT 5',
	# dictionaries: of which each device has other values
	'SELECT s, gpu_count(*), gpu_sum(v) FROM t GROUP BY s ORDER BY s',
	"SELECT gpu_count(*), gpu_sum(v) FROM t WHERE s IN ('key 3', 'key 11') OR s LIKE '%4'",
	'SELECT s, k2, gpu_max(v) FROM t GROUP BY s, k2 ORDER BY s, k2',
	# values of sets, which are moved to one of the devices
	'SELECT k, gpu_count(DISTINCT v % 17), gpu_sum(DISTINCT v / 1000), gpu_count(*) FROM t GROUP BY k ORDER BY k',
	'SELECT gpu_count(DISTINCT k), gpu_sum(DISTINCT v % 9), gpu_count(DISTINCT f) FROM t',
	'SELECT k2, gpu_median(f), gpu_max(v) FROM t WHERE v % 5 > 0 GROUP BY k2 ORDER BY k2',
	'SELECT v % 3000, gpu_median(f) FROM t GROUP BY 1 ORDER BY 1',
	'SELECT b, gpu_mode() WITHIN GROUP (ORDER BY k2), gpu_percentile_disc(0.3) WITHIN GROUP (ORDER BY v) FROM t GROUP BY b ORDER BY b');

sub all_resident
{
	my ($name) = @_;

	foreach my $query (@queries)
	{
		my $seen = resident($query);
		like($seen, qr/Devices: 3/, "$name: on three devices");
	}
	return;
}
all_resident('at first');
like(seen($queries[2]), qr/Resident Rows: 60000/, 'all rows');
unlike(seen($queries[2]), qr/Uploaded/, 'nothing is uploaded again');
unlike(resident('SELECT k, gpu_sum(v) FROM small GROUP BY k ORDER BY k'), qr/Devices/, 'a small table is on one');
is($node->safe_psql('postgres', "SELECT rows FROM gpuagg_cache WHERE relation = 't'::regclass AND \"column\" = 'v' AND tier = 'gpu'"), 60000,
	'one row for the column of all devices');

# histograms and sketches have several states a group
is(ours($_), do { local $ENV{PGOPTIONS} = '-c gpuagg.engine=cpu'; ours($_) }, $_)
	for 'SELECT k2, gpu_histogram(f, 0, 8000, 20) FROM t GROUP BY k2 ORDER BY k2',
	'SELECT k2, gpu_approx_count_distinct(v) FROM t GROUP BY k2 ORDER BY k2', 'SELECT k, gpu_argmax(v, v) FROM t GROUP BY k ORDER BY k';

# rows in order have to be on one device
{
	my $query = 'SELECT k2, gpu_max_subarray_sum(v - 30000 ORDER BY v) FROM t GROUP BY k2 ORDER BY k2';
	is(ours($query), do { local $ENV{PGOPTIONS} = '-c gpuagg.engine=cpu'; ours($query) }, $query);
	like(seen($query), qr/Resident Rows: none: ordered rows must be on one device, and the copies are on several/, '... as batches');
}

# changes of the table
foreach my $change ('DELETE FROM t WHERE v % 1000 = 7', 'VACUUM t', 'UPDATE t SET v = v + 1 WHERE v BETWEEN 20000 AND 25000',
	"INSERT INTO t SELECT 3, 4, 'new ' || i, i, i, i, true FROM generate_series(1, 20) i", 'VACUUM FREEZE t', 'SELECT gpuagg_cache_prewarm(\'t\')')
{
	$node->safe_psql('postgres', $change);
	is(ours($_), core($_), "$change: $_") for @queries;
}
all_resident('after changes');

# what only core can tell
like(ours('SELECT k, gpu_sum(1 / (v - 30010)) FROM t GROUP BY k'), qr/division by zero/, 'an error on one of the devices');

# devices that have no room: the first RESIDENT of a query that finds none
$node->provoke('memory');
is(ours($queries[2]), core($queries[2]), 'no room for rows on the devices');
like(seen($queries[2]), qr/Resident Rows: none/, '... which the CPU has then');
unlike(seen($queries[6]), qr/Device Limit/, '... without a limit on a device');
$node->provoke;
$node->provoke('launch');
is(ours($queries[2]), core($queries[2]), 'a launch that fails on a device');
$node->provoke;
like(seen($queries[2]), qr/Devices: 3/, 'all devices again');

# a server that dies in the middle, as with a device that is lost
foreach my $word ('fault', 'abort')
{
	my $restarts = $node->device('restarts');

	$node->provoke($word);
	is(ours($queries[2]), core($queries[2]), "a device is lost: $word");
	$node->provoke;
	# of another server: the end of this one may not have been noticed yet
	$node->poll_query_until('postgres', "SELECT count(*) = 3 FROM gpuagg_devices() WHERE state = 'ready' AND restarts > $restarts");
	is(ours($queries[2]), core($queries[2]), '... and back');
	like(seen($queries[2]), qr/Devices: 3/, '... on all devices');
}

# little room for copies on each device
foreach my $limit ('64kB', '300kB', '1MB')
{
	$node->safe_psql('postgres', "ALTER SYSTEM SET gpuagg.device_cache_memory = '$limit'; SELECT pg_reload_conf()");
	for (1 .. 2)
	{
		is(ours($_), core($_), "with $limit: $_") for @queries;
	}
}
$node->safe_psql('postgres', 'ALTER SYSTEM RESET gpuagg.device_cache_memory; SELECT pg_reload_conf()');

# fewer devices
$node->safe_psql('postgres', "ALTER SYSTEM SET gpuagg.devices = '1'");
$node->restart;
ok($node->poll_query_until('postgres', "SELECT count(*) = 1 FROM gpuagg_devices() WHERE state = 'ready'"), 'the server starts with one device');
$node->safe_psql('postgres', "SELECT gpuagg_cache_prewarm('t')");
unlike(resident($_), qr/Devices/, 'on one device') for @queries;

# the device is lost while a new connection's query is opened: why is known, although WELCOME was not waited for
{
	my $slow = 'EXPLAIN (ANALYZE, COSTS OFF) SELECT k, gpu_count(*) FROM t GROUP BY k ORDER BY k LIMIT slow(5)';

	$node->safe_psql('postgres', "CREATE FUNCTION slow(n int) RETURNS int STABLE LANGUAGE plpgsql AS 'BEGIN PERFORM pg_sleep(0.5); RETURN n; END'");
	$node->provoke('lost');
	like($node->safe_psql('postgres', "SET gpuagg.require = 'allow'; $slow"), qr/cuda failed: an illegal memory access/, 'a device that is lost at OPEN');
	$node->provoke;
}

$node->stop;
done_testing();
