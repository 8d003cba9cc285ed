# A background worker refreshes stale ranges of the column cache. It must not block locks, DROP DATABASE or a standby, and it is not
# needed for right answers. The reference is core's answer.
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

# 2,000 blocks with free space for updates.
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

# Waits until a worker is there; it starts after the query that needs it.
sub has_worker { return $_[0]->poll_query_until('postgres', "SELECT count(*) = 1 $workers AND datname = 'postgres'") }

sub count_workers { return $_[0]->safe_psql('postgres', "SELECT count(*) $workers" . ($_[1] ? " AND datname = '$_[1]'" : '')) }

sub is_core_answer
{
	my ($node, $name) = @_;
	local $Test::Builder::Level = $Test::Builder::Level + 1;

	return is_right_answer($node, $ours, "the answer is right $name", reference => $core);
}

# Repeats the query until no range is stale. Tests that each answer was right.
sub query_until_refreshed
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
	is("$left $wrong", '0 0', "the cache is refreshed $name, and all answers are right");
}

sub update_rows { $_[0]->safe_psql('postgres', "UPDATE rows SET v = v + 1 WHERE id <= $_[1]") }

my $blocks = "SELECT pg_relation_size('rows') / current_setting('block_size')::int";
is($primary->safe_psql('postgres', "SELECT gpuagg_cache_prewarm('rows') = ($blocks)"), 't', 'the whole table is cached');
is_core_answer($primary, 'from the cache');
is(count_workers($primary), '0', 'there is no worker while nothing is stale');

# 30 % of the table changes, and then less than gpuagg.cache_renew
update_rows($primary, 21000);
is_core_answer($primary, 'from the cache and the heap');
ok(has_worker($primary), 'a worker starts');
query_until_refreshed($primary, 'after updates');
update_rows($primary, 500);
is_core_answer($primary, 'after a few updates');
sleep 4;
cmp_ok($primary->safe_psql('postgres', $stale), '>', 0, 'a few stale blocks are not refreshed');

# the table grows, and its last range is read again
$primary->safe_psql('postgres', "INSERT INTO rows SELECT i, 1, 1, 's' FROM generate_series(1, 3000) i");
my $since = time;
is_core_answer($primary, 'after an INSERT');
do
{
	usleep(200_000);
	$primary->safe_psql('postgres', $ours);
} while (time - $since < 300 && $primary->safe_psql('postgres',
		"SELECT blocks < ($blocks) FROM gpuagg_cache WHERE relation = 'rows'::regclass AND \"column\" = 'v'") eq 't');
cmp_ok(time - $since, '<', 300, 'the last range is read again');

# a column is dropped, and another one is added
$primary->safe_psql('postgres', 'ALTER TABLE rows DROP COLUMN id');
$primary->safe_psql('postgres', 'UPDATE rows SET v = v + 1');
query_until_refreshed($primary, 'after DROP COLUMN');
$primary->safe_psql('postgres', 'ALTER TABLE rows ADD id int; UPDATE rows SET id = (v * 100)::int % 70000');
query_until_refreshed($primary, 'after ADD COLUMN');

# ---- locks ----

# A session gets a strong lock promptly during a refresh.
update_rows($primary, 70000);
is_core_answer($primary, 'after an update of all rows');
$since = time;
my ($locks, $refused) = (0, 0);
do
{
	$primary->psql('postgres', "SET lock_timeout = '60s'; BEGIN; LOCK TABLE rows; COMMIT") == 0 ? $locks++ : $refused++;
	$primary->safe_psql('postgres', $ours);
	usleep(20_000);
} while (time - $since < 300 && $primary->safe_psql('postgres', $stale) > 0);
cmp_ok($locks, '>', 0, 'strong locks are granted during a refresh');
is($refused, 0, '... without a timeout');

# The worker does not wait for a lock, because sessions would then queue behind it.
my $session = $primary->background_psql('postgres');
update_rows($primary, 70000);
is_core_answer($primary, 'after another update of all rows');
$session->query('BEGIN');
$session->query('LOCK TABLE rows IN ACCESS EXCLUSIVE MODE');
sleep 8;
is($primary->safe_psql('postgres', "SELECT count(*) FROM pg_locks WHERE NOT granted"), '0', 'the worker waits for no lock');
$session->query('COMMIT');
query_until_refreshed($primary, 'after a lock');

# ---- the worker is terminated ----

update_rows($primary, 70000);
is_core_answer($primary, 'before the worker is terminated');
$primary->poll_query_until('postgres', "SELECT count(*) = 1 $workers");
$primary->safe_psql('postgres', "SELECT pg_terminate_backend(pid) $workers");
ok($primary->poll_query_until('postgres', "SELECT count(*) = 0 $workers"), 'the worker ends at SIGTERM');
query_until_refreshed($primary, 'by another worker');
ok(has_worker($primary), 'there is one worker');

# ---- databases with an idle worker are copied and dropped ----

$primary->safe_psql('postgres', 'CREATE DATABASE other');
$primary->safe_psql('other', "CREATE EXTENSION gpuagg; $make SELECT gpuagg_cache_prewarm('rows'); UPDATE rows SET v = 1");
$primary->safe_psql('other', $ours);
ok($primary->poll_query_until('postgres', "SELECT count(*) = 1 $workers AND datname = 'other'"), 'there is a worker in another database');
is($primary->psql('postgres', 'CREATE DATABASE third TEMPLATE other'), 0, '... which can be copied');
$primary->safe_psql('other', $ours);
ok($primary->poll_query_until('postgres', "SELECT count(*) = 1 $workers AND datname = 'other'"), 'a worker starts again');
is($primary->psql('postgres', 'DROP DATABASE other'), 0, '... and the database can be dropped');

# ---- a standby has its own cache and worker ----

$primary->backup('base');
my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($primary, 'base', has_streaming => 1);
$standby->start;
$primary->wait_for_catchup($standby);
cmp_ok($standby->safe_psql('postgres', "SELECT gpuagg_cache_prewarm('rows')"), '>', 0, 'the standby has a cache');
update_rows($primary, 70000);
$primary->wait_for_catchup($standby);
is_core_answer($standby, 'on the standby after updates');
ok(has_worker($standby), 'the standby has a worker');
query_until_refreshed($standby, 'on the standby');
$primary->safe_psql('third', 'VACUUM');
$standby->safe_psql('third', "SELECT gpuagg_cache_prewarm('rows')");
$primary->safe_psql('third', 'UPDATE rows SET v = 2');
$primary->wait_for_catchup($standby);
$standby->safe_psql('third', $ours);
ok($standby->poll_query_until('postgres', "SELECT count(*) = 1 $workers AND datname = 'third'"), 'the standby has a worker in another database');
$primary->safe_psql('postgres', 'DROP DATABASE third');
$primary->wait_for_catchup($standby);
is($standby->safe_psql('postgres', "SELECT count(*) FROM pg_database WHERE datname = 'third'"), '0', '... which the standby can drop');
$standby->stop;

# ---- without a worker ----

ok($primary->poll_query_until('postgres', "SELECT count(*) = 0 $workers"), 'the worker exits when it has no work');

# With refreshing off, without a worker slot or without memory nothing fails.
$primary->append_conf('postgresql.conf', 'gpuagg.cache_renew = 0');
$primary->reload;
$primary->poll_query_until('postgres', "SELECT current_setting('gpuagg.cache_renew')::float = 0");
update_rows($primary, 70000);
is_core_answer($primary, 'with gpuagg.cache_renew = 0');
sleep 1;
is(count_workers($primary), '0', '... and no worker starts');
$primary->append_conf('postgresql.conf', "gpuagg.cache_renew = 0.1\nmax_worker_processes = 1\ngpuagg.cache_memory = 1MB");
$primary->restart;
$primary->safe_psql('postgres', 'CREATE TABLE numbers AS SELECT random() a, random() b FROM generate_series(1, 200000); VACUUM numbers');
my ($whole, $notice);
$primary->psql('postgres', "SELECT gpuagg_cache_prewarm('numbers') < pg_relation_size('numbers') / current_setting('block_size')::int",
	stdout => \$whole, stderr => \$notice);
is($whole, 't', 'a cache of 1 MB holds a part of the table');
like($notice, qr/NOTICE:  there is no memory in the column cache for all of table "numbers"\n.*blocks are cached/, '... and a notice says so');
$primary->safe_psql('postgres', "SELECT gpuagg_cache_evict('numbers'); SELECT gpuagg_cache_prewarm('rows')");
update_rows($primary, 70000);
for (1 .. 3) { is_core_answer($primary, 'without a free worker slot'); }
is(count_workers($primary), '0', '... and no worker starts');
$primary->append_conf('postgresql.conf', "gpuagg.cache_memory = 0");
$primary->restart;
my $error;
$primary->psql('postgres', "SELECT gpuagg_cache_prewarm('rows')", stderr => \$error);
like($error, qr/ERROR:  there is no column cache\nHINT:  Set gpuagg.cache_memory to more than 0 and restart the server/, 'without memory for the cache a prewarm is an error');
$primary->append_conf('postgresql.conf', "shared_preload_libraries = ''\ngpuagg.cache_memory = 64MB");
$primary->restart;
$primary->psql('postgres', "SELECT gpuagg_cache_prewarm('rows')", stderr => \$error);
like($error, qr/ERROR:  there is no column cache\nHINT:  Add gpuagg to shared_preload_libraries and restart the server/, 'without preloading a prewarm is an error');
# The standby may drop a database while a worker is connected to it; that message is expected.
unlike(slurp_file($_->logfile) =~ s/FATAL:  terminating connection due to conflict with recovery\n(?:.*(?:DETAIL|HINT|CONTEXT):.*\n)*//gr,
	qr/PANIC|TRAP|terminated by signal|while renewing/, 'the log shows no crash and no failed refresh') for $primary, $standby;
$primary->stop;
done_testing();
