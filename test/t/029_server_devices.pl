# Tables whose cached ranges are spread over three devices. Answers must be core's whatever happens to the table, the devices and the
# server.
use strict;
use warnings;
use GpuaggNode;
use PostgreSQL::Test::Utils;
use Resident;
use Test::More;

# each block range is stored on the next of three devices
$ENV{GPUAGG_STUB_DEVICES} = 3;
$ENV{GPUAGG_STUB_RANGES} = 1;
my $node = GpuaggNode->start_new('main', cached => 1, conf => <<CONF);
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
	# dictionary codes, whose values differ by device
	'SELECT s, gpu_count(*), gpu_sum(v) FROM t GROUP BY s ORDER BY s',
	"SELECT gpu_count(*), gpu_sum(v) FROM t WHERE s IN ('key 3', 'key 11') OR s LIKE '%4'",
	'SELECT s, k2, gpu_max(v) FROM t GROUP BY s, k2 ORDER BY s, k2',
	# sets of values, which are moved to one device
	'SELECT k, gpu_count(DISTINCT v % 17), gpu_sum(DISTINCT v / 1000), gpu_count(*) FROM t GROUP BY k ORDER BY k',
	'SELECT gpu_count(DISTINCT k), gpu_sum(DISTINCT v % 9), gpu_count(DISTINCT f) FROM t',
	'SELECT k2, gpu_median(f), gpu_max(v) FROM t WHERE v % 5 > 0 GROUP BY k2 ORDER BY k2',
	'SELECT v % 3000, gpu_median(f) FROM t GROUP BY 1 ORDER BY 1',
	'SELECT b, gpu_mode() WITHIN GROUP (ORDER BY k2), gpu_percentile_disc(0.3) WITHIN GROUP (ORDER BY v) FROM t GROUP BY b ORDER BY b');

# Tests that all queries give the right answer from all devices.
sub check_all_devices
{
	my ($name) = @_;

	foreach my $query (@queries)
	{
		like(is_resident($query), qr/Devices: 3/, "... from three devices, $name");
	}
	return;
}
check_all_devices('at first');
like(plan_and_errors($queries[2]), qr/Resident Rows: 60000/, 'all rows come from the devices');
unlike(plan_and_errors($queries[2]), qr/Uploaded/, '... without an upload');
unlike(is_resident('SELECT k, gpu_sum(v) FROM small GROUP BY k ORDER BY k'), qr/Devices/, 'a small table is on one device');
is($node->safe_psql('postgres', "SELECT rows FROM gpuagg_cache WHERE relation = 't'::regclass AND \"column\" = 'v' AND tier = 'gpu'"), 60000,
	'gpuagg_cache has one row for a column on three devices');

# histograms and sketches have several states per group
is(our_answer($_), do { local $ENV{PGOPTIONS} = '-c gpuagg.engine=cpu'; our_answer($_) }, $_)
	for 'SELECT k2, gpu_histogram(f, 0, 8000, 20) FROM t GROUP BY k2 ORDER BY k2',
	'SELECT k2, gpu_approx_count_distinct(v) FROM t GROUP BY k2 ORDER BY k2', 'SELECT k, gpu_argmax(v, v) FROM t GROUP BY k ORDER BY k';

# ordered rows must be on one device
{
	my $query = 'SELECT k2, gpu_max_subarray_sum(v - 30000 ORDER BY v) FROM t GROUP BY k2 ORDER BY k2';
	is(our_answer($query), do { local $ENV{PGOPTIONS} = '-c gpuagg.engine=cpu'; our_answer($query) }, $query);
	like(plan_and_errors($query), qr/Resident Rows: none: ordered rows must be on one device, and the copies are on several/, '... with rows in batches');
}

# ---- changes of the table ----
foreach my $change ('DELETE FROM t WHERE v % 1000 = 7', 'VACUUM t', 'UPDATE t SET v = v + 1 WHERE v BETWEEN 20000 AND 25000',
	"INSERT INTO t SELECT 3, 4, 'new ' || i, i, i, i, true FROM generate_series(1, 20) i", 'VACUUM FREEZE t', 'SELECT gpuagg_cache_prewarm(\'t\')')
{
	$node->safe_psql('postgres', $change);
	is_core_answer($_, "after $change: $_") for @queries;
}
check_all_devices('after changes');

# ---- errors and faults ----

like(our_answer('SELECT k, gpu_sum(1 / (v - 30010)) FROM t GROUP BY k'), qr/division by zero/, 'an error on one of the devices is reported');

# no memory at the first message RESIDENT of the query
$node->set_fault('memory');
is_core_answer($queries[2], 'the answer is right without device memory');
like(plan_and_errors($queries[2]), qr/Resident Rows: none/, '... with no row from the devices');
unlike(plan_and_errors($queries[6]), qr/Device Limit/, '... and no LIMIT at a device');
$node->clear_fault;
$node->set_fault('launch');
is_core_answer($queries[2], 'the answer is right if a launch fails on one device');
like(plan_and_errors($queries[2]), qr/cuda failed: too many resources|Resident Rows: none/, '... and EXPLAIN shows that it failed');
$node->clear_fault;
like(plan_and_errors($queries[2]), qr/Devices: 3/, 'the next query uses all devices');

# a device is lost, or the server ends, in the middle of a query
foreach my $word ('fault', 'abort')
{
	my $restarts = $node->device('restarts');

	$node->set_fault($word);
	is_core_answer($queries[2], "the answer is right after fault $word");
	$node->clear_fault;
	# waits for another server: the end of this one may not have been noticed yet
	ok($node->poll_query_until('postgres', "SELECT count(*) = 3 FROM gpuagg_devices() WHERE state = 'ready' AND restarts > $restarts"),
		'... the server starts again with all devices');
	is_core_answer($queries[2], '... and right with the next server');
	like(plan_and_errors($queries[2]), qr/Devices: 3/, '... from all devices');
}

# ---- little memory for copies on each device ----
foreach my $limit ('64kB', '300kB', '1MB')
{
	$node->safe_psql('postgres', "ALTER SYSTEM SET gpuagg.device_cache_memory = '$limit'; SELECT pg_reload_conf()");
	for (1 .. 2)
	{
		is_core_answer($_, "with $limit for copies: $_") for @queries;
	}
}
$node->safe_psql('postgres', 'ALTER SYSTEM RESET gpuagg.device_cache_memory; SELECT pg_reload_conf()');

# ---- fewer devices ----
$node->safe_psql('postgres', "ALTER SYSTEM SET gpuagg.devices = '1'");
$node->restart;
ok($node->poll_query_until('postgres', "SELECT count(*) = 1 FROM gpuagg_devices() WHERE state = 'ready'"), 'the server starts with one device');
$node->safe_psql('postgres', "SELECT gpuagg_cache_prewarm('t')");
unlike(is_resident($_), qr/Devices/, '... from one device') for @queries;

# ---- the device is lost while a new connection opens a query: the reason is known, although the backend does not wait for WELCOME ----
{
	my $slow = 'EXPLAIN (ANALYZE, COSTS OFF) SELECT k, gpu_count(*) FROM t GROUP BY k ORDER BY k LIMIT slow(5)';

	$node->safe_psql('postgres', "CREATE FUNCTION slow(n int) RETURNS int STABLE LANGUAGE plpgsql AS 'BEGIN PERFORM pg_sleep(0.5); RETURN n; END'");
	$node->set_fault('lost');
	like($node->safe_psql('postgres', "SET gpuagg.require = 'allow'; $slow"), qr/cuda failed: an illegal memory access/, 'a device that is lost at OPEN is reported');
	$node->clear_fault;
}

$node->stop;
done_testing();
