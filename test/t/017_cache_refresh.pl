# Stale ranges of the column cache are renewed by a background worker, which stands in nobody's way.
use strict;
use warnings;
use GpuaggNode;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(time usleep);

my $ours = "SET gpuagg.require = 'require'; SELECT k, gpu_count(*), gpu_sum(v), gpu_max(s) FROM rows GROUP BY k ORDER BY k";
my $core = 'SELECT k, count(*), sum(v), max(s) FROM rows GROUP BY k ORDER BY k';
my $workers = "FROM pg_stat_activity WHERE backend_type = 'gpuagg cache worker'";
my $stale = "SELECT count(*) FROM gpuagg_cache WHERE relation = 'rows'::regclass AND valid < 1";

# 2,000 blocks, on which there is room for updates.
my $make = <<SQL;
CREATE TABLE rows (id int, k int, v numeric(10,2), s text) WITH (fillfactor = 25);
INSERT INTO rows SELECT i, i % 7, i / 100.0, 's' || i % 5 FROM generate_series(1, 70000) i;
VACUUM ANALYZE rows;
SQL

my $primary = GpuaggNode->start_new('primary', init => [ allows_streaming => 1 ], conf => <<CONF);
gpuagg.engine = 'cpu'
gpuagg.cache_memory = 64MB
autovacuum = off
CONF
$primary->safe_psql('postgres', $make);

sub workers { return $_[0]->safe_psql('postgres', "SELECT count(*) $workers" . ($_[1] ? " AND datname = '$_[1]'" : '')) }

sub same
{
	my ($node, $name) = @_;
	is($node->safe_psql('postgres', $ours), $node->safe_psql('postgres', $core), $name);
}

# Queries until nothing is stale; the answer must be right each time.
sub query_until_renewed
{
	my ($node, $name, $expected) = @_;
	my $since = time;
	my $wrong = 0;
	my $left;

	$expected //= $node->safe_psql('postgres', $core);
	do
	{
		usleep(200_000);
		$wrong++ if $node->safe_psql('postgres', $ours) ne $expected;
		$left = $node->safe_psql('postgres', $stale);
	} while ($left > 0 && time - $since < 300);
	is("$left $wrong", '0 0', "$name: renewed, and right all the time");
}

sub update { $_[0]->safe_psql('postgres', "UPDATE rows SET v = v + 1 WHERE id <= $_[1]") }

my $blocks = "SELECT pg_relation_size('rows') / current_setting('block_size')::int";
is($primary->safe_psql('postgres', "SELECT gpuagg_cache_prewarm('rows') = ($blocks)"), 't', 'all is cached');
same($primary, 'the answer from the cache');
is(workers($primary), '0', 'there is no worker while nothing is stale');

# 30 % of the table, and then little
update($primary, 21000);
same($primary, 'the answer from the cache and the heap');
cmp_ok($primary->safe_psql('postgres', $stale), '>', 0, 'some is stale');
is(workers($primary), '1', 'a worker has started');
query_until_renewed($primary, 'updates');
update($primary, 500);
same($primary, 'a few updates');
sleep 4;
cmp_ok($primary->safe_psql('postgres', $stale), '>', 0, 'a few blocks are not renewed');

# the table grows: its last range is read again, without a new column's chunks being needed
$primary->safe_psql('postgres', "INSERT INTO rows SELECT i, 1, 1, 's' FROM generate_series(1, 3000) i");
my $since = time;
do
{
	usleep(200_000);
	same($primary, 'rows were added') if time - $since < 0.4;
	$primary->safe_psql('postgres', $ours);
} while (time - $since < 300 && $primary->safe_psql('postgres',
		"SELECT blocks < ($blocks) FROM gpuagg_cache WHERE relation = 'rows'::regclass AND \"column\" = 'v'") eq 't');
cmp_ok(time - $since, '<', 300, 'the last range was read again');

# a column that is not there any more, nor are its chunks afterwards
$primary->safe_psql('postgres', 'ALTER TABLE rows DROP COLUMN id');
$primary->safe_psql('postgres', 'UPDATE rows SET v = v + 1');
query_until_renewed($primary, 'without a column');
$primary->safe_psql('postgres', 'ALTER TABLE rows ADD id int; UPDATE rows SET id = (v * 100)::int % 70000');
query_until_renewed($primary, 'with a new column');

# Strong locks are had at once during renewals.
update($primary, 70000);
same($primary, 'all is updated');
$since = time;
my ($locks, $refused) = (0, 0);
while (time - $since < 300 && $primary->safe_psql('postgres', $stale) > 0)
{
	$primary->psql('postgres', "SET lock_timeout = '5s'; BEGIN; LOCK TABLE rows; COMMIT") == 0 ? $locks++ : $refused++;
	$primary->safe_psql('postgres', $ours);
	usleep(20_000);
}
cmp_ok($locks, '>', 0, 'locks were had');
is($refused, 0, 'all of them');

# The worker does not wait for a lock, nor come between a table and who waits for it.
my $session = $primary->background_psql('postgres');
update($primary, 70000);
same($primary, 'all is updated again');
$session->query('BEGIN');
$session->query('LOCK TABLE rows IN ACCESS EXCLUSIVE MODE');
sleep 8;
is($primary->safe_psql('postgres', "SELECT count(*) FROM pg_locks WHERE NOT granted"), '0', 'the worker waits for no lock');
$session->query('COMMIT');
query_until_renewed($primary, 'after a lock');

# Killed in the middle: another one does the work.
update($primary, 70000);
same($primary, 'updated before the worker is killed');
$primary->poll_query_until('postgres', "SELECT count(*) = 1 $workers");
$primary->safe_psql('postgres', "SELECT pg_terminate_backend(pid) $workers");
ok($primary->poll_query_until('postgres', "SELECT count(*) = 0 $workers"), 'it ends at SIGTERM');
query_until_renewed($primary, 'another worker');
is(workers($primary), '1', 'there is one');

# Databases are dropped, and copied, whose worker is there and idle.
$primary->safe_psql('postgres', 'CREATE DATABASE other');
$primary->safe_psql('other', "CREATE EXTENSION gpuagg; $make SELECT gpuagg_cache_prewarm('rows'); UPDATE rows SET v = 1");
$primary->safe_psql('other', $ours);
ok($primary->poll_query_until('postgres', "SELECT count(*) = 1 $workers AND datname = 'other'"), 'a worker in another database');
is($primary->psql('postgres', 'CREATE DATABASE third TEMPLATE other'), 0, 'which is copied');
$primary->safe_psql('other', $ours);
ok($primary->poll_query_until('postgres', "SELECT count(*) = 1 $workers AND datname = 'other'"), 'a worker again');
is($primary->psql('postgres', 'DROP DATABASE other'), 0, 'and dropped');

# A standby renews for itself.
$primary->backup('base');
my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($primary, 'base', has_streaming => 1);
$standby->start;
$primary->wait_for_catchup($standby);
cmp_ok($standby->safe_psql('postgres', "SELECT gpuagg_cache_prewarm('rows')"), '>', 0, 'the standby has a cache');
update($primary, 70000);
$primary->wait_for_catchup($standby);
same($standby, 'the standby after updates');
is(workers($standby), '1', 'its worker');
query_until_renewed($standby, 'the standby');
$primary->safe_psql('third', 'VACUUM');
$standby->safe_psql('third', "SELECT gpuagg_cache_prewarm('rows')");
$primary->safe_psql('third', 'UPDATE rows SET v = 2');
$primary->wait_for_catchup($standby);
$standby->safe_psql('third', $ours);
ok($standby->poll_query_until('postgres', "SELECT count(*) = 1 $workers AND datname = 'third'"), 'a worker in another database');
$primary->safe_psql('postgres', 'DROP DATABASE third');
$primary->wait_for_catchup($standby);
is($standby->safe_psql('postgres', "SELECT count(*) FROM pg_database WHERE datname = 'third'"), '0', 'is no obstacle to its end');
$standby->stop;

# Without work it goes.
ok($primary->poll_query_until('postgres', "SELECT count(*) = 0 $workers"), 'the worker exits');

# Turned off, with no worker to be had, with no memory: nothing fails.
$primary->append_conf('postgresql.conf', 'gpuagg.cache_renew = 0');
$primary->reload;
update($primary, 70000);
same($primary, 'renewal is off');
sleep 1;
is(workers($primary), '0', 'there is no worker');
$primary->append_conf('postgresql.conf', "gpuagg.cache_renew = 0.1\nmax_worker_processes = 1\ngpuagg.cache_memory = 1MB");
$primary->restart;
$primary->safe_psql('postgres', 'CREATE TABLE numbers AS SELECT random() a, random() b FROM generate_series(1, 200000); VACUUM numbers');
my ($whole, $notice);
$primary->psql('postgres', "SELECT gpuagg_cache_prewarm('numbers') < pg_relation_size('numbers') / current_setting('block_size')::int",
	stdout => \$whole, stderr => \$notice);
is($whole, 't', 'less than all is cached');
like($notice, qr/NOTICE:  there is no memory in the column cache for all of table "numbers"\n.*blocks are cached/, 'which is said');
$primary->safe_psql('postgres', "SELECT gpuagg_cache_evict('numbers'); SELECT gpuagg_cache_prewarm('rows')");
update($primary, 70000);
for (1 .. 3) { same($primary, 'no worker is to be had'); }
is(workers($primary), '0', 'there is none');
$primary->append_conf('postgresql.conf', "gpuagg.cache_memory = 0");
$primary->restart;
my $error;
$primary->psql('postgres', "SELECT gpuagg_cache_prewarm('rows')", stderr => \$error);
like($error, qr/ERROR:  there is no column cache\nHINT:  Set gpuagg.cache_memory to more than 0 and restart the server/, 'no memory');
$primary->append_conf('postgresql.conf', "shared_preload_libraries = ''\ngpuagg.cache_memory = 64MB");
$primary->restart;
$primary->psql('postgres', "SELECT gpuagg_cache_prewarm('rows')", stderr => \$error);
like($error, qr/ERROR:  there is no column cache\nHINT:  Add gpuagg to shared_preload_libraries and restart the server/, 'no preloading');
# But a worker may be at work when the standby drops its database.
unlike(slurp_file($_->logfile) =~ s/FATAL:  terminating connection due to conflict with recovery\n(?:.*(?:DETAIL|HINT|CONTEXT):.*\n)*//gr,
	qr/PANIC|TRAP|terminated by signal|while renewing/, 'nothing else went wrong') for $primary, $standby;
$primary->stop;
done_testing();
