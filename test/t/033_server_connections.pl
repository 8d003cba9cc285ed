# A backend keeps its connection to the GPU server, and the mapped arena, between queries. An idle connection is no session at the
# server. The backend notices when it is lost, and closes it after a time and after errors. The answers are known.
use strict;
use warnings;
use GpuaggNode;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes ();

my $node = GpuaggNode->start_new('main', server => 1, conf => <<CONF);
gpuagg.require = 'require'
gpuagg.engine = 'cuda'
gpuagg.cache = 'eager'
gpuagg.cache_memory = '64MB'
autovacuum = off
CONF
$node->safe_psql('postgres', "CREATE TABLE t AS SELECT i % 10 AS k, i AS v FROM generate_series(1, 5000) i; VACUUM (FREEZE, ANALYZE) t");
ok($node->wait_until_ready, 'the server starts');

my $query = 'SELECT gpu_count(*), gpu_sum(v) FROM t';
my $plan = "EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) $query";
my $psql = $node->background_psql('postgres');
my $pid = $psql->query('SELECT pg_backend_pid()');

# The numbers of sockets, and of mapped arenas, of a process.
sub count_sockets { return scalar grep { (readlink($_) // '') =~ /^socket:/ } glob "/proc/$_[0]/fd/*" }
sub count_arenas { return scalar grep { /memfd:gpuagg/ } split /\n/, slurp_file("/proc/$_[0]/maps") }

my $before = count_sockets($pid);
is($psql->query($query), '5000|12502500', 'a query gives the right answer');
is(count_sockets($pid) - $before, 1, '... and its connection is kept');
my ($inode) = grep { $_ } map { readlink $_ } reverse sort { ($a =~ /(\d+)$/)[0] <=> ($b =~ /(\d+)$/)[0] } grep { (readlink($_) // '') =~ /^socket:/ } glob "/proc/$pid/fd/*";
ok($node->wait_for_devices('sum(sessions)', 0), '... and is no session at the server');
is($psql->query($query), '5000|12502500', 'the next queries give the right answer') foreach 1 .. 3;
is(count_sockets($pid) - $before, 1, '... over one connection');
is(scalar(grep { (readlink($_) // '') eq $inode } glob "/proc/$pid/fd/*"), 1, '... which is the first one');

# another backend may use the arena between the queries
is($node->safe_psql('postgres', $query), '5000|12502500', 'another backend gets the right answer');
is($psql->query($query), '5000|12502500', '... and then the first one again');

# ---- the server is lost between two queries ----
ok($node->wait_for_another_server($node->kill_server), 'another server starts');
like($psql->query($plan), qr/Engine: cuda/, '... and runs the next query of a session that was connected to the previous one');
is(count_sockets($pid) - $before, 1, '... over a new connection, which is kept');
is($psql->query($query), '5000|12502500', '... with the right answer');

# ---- several scans in one query ----
is($psql->query("SELECT sum(s) FROM (SELECT gpu_sum(v) AS s FROM t UNION ALL SELECT gpu_sum(v) FROM t UNION ALL SELECT gpu_sum(v + 1) FROM t) u"), '37512500',
	'several scans in one query give the right answer');
is(count_sockets($pid) - $before, 1, '... and leave one connection');
is(count_arenas($pid), 1, '... and one arena');

# ---- settings of the server that change between queries ----

# Adds a setting, reloads, and waits until an expression over gpuagg_devices() has the value.
sub set_and_wait
{
	my ($setting, $expected, $value) = @_;
	$node->append_conf('postgresql.conf', $setting);
	$node->reload;
	return $node->wait_for_devices($expected, $value);
}
ok(set_and_wait("gpuagg.device_memory_limit = '300MB'", "bool_and(state = 'ready')", 't'), 'the memory limit is reduced between queries');
is($psql->query($query), '5000|12502500', '... and the next query gives the right answer');
ok(set_and_wait("gpuagg.devices = '1'", "string_agg(device::text || state, '')", '1ready'), 'the device changes between queries');
like($psql->query($plan), qr/Engine: cuda/, '... and the next query uses the GPU');
is($psql->query($query), '5000|12502500', '... with the right answer');
$node->append_conf('postgresql.conf', "gpuagg.server = off\ngpuagg.engine = 'auto'");
$node->reload;
ok($node->poll_query_until('postgres', "SELECT count(*) FILTER (WHERE state = 'ready') = 0 FROM gpuagg_devices()"), 'the server is switched off between queries');
is($psql->query($query), '5000|12502500', '... and the next query gives the right answer');
$node->append_conf('postgresql.conf', "gpuagg.engine = 'cuda'");
ok(set_and_wait('gpuagg.server = on', "bool_and(state = 'ready')", 't'), 'the server is switched on again');
like($psql->query($plan), qr/Engine: cuda/, '... and the next query uses the GPU');
is(count_sockets($pid) - $before, 1, '... and its connection is kept');
$psql->quit;
$node->stop;

# ---- the backend closes the connection after a time; core's timeouts work as usual ----
$ENV{GPUAGG_STUB_KEEP_MS} = 500;
my $conf = <<CONF;
gpuagg.require = 'require'
gpuagg.engine = 'cuda'
gpuagg.cache = 'off'
CONF
my $table = 'CREATE TABLE t AS SELECT i AS v FROM generate_series(1, 5000) i; ANALYZE t';
my $short = GpuaggNode->start_new('short', server => 1, conf => $conf);
$short->safe_psql('postgres', $table);
ok($short->wait_until_ready, 'a server starts that lets backends keep connections for half a second');

# Returns a new session, its process, and the process's number of sockets.
sub open_session
{
	my ($at) = @_;
	my $session = $at->background_psql('postgres', on_error_stop => 0, on_error_die => 0);
	my $process = $session->query('SELECT pg_backend_pid()');
	return ($session, $process, count_sockets($process));
}

# Waits until the process has closed its connection and unmapped the arena.
sub wait_until_closed
{
	my ($process, $sockets) = @_;
	return wait_until(sub { count_sockets($process) == $sockets && count_arenas($process) == 0 });
}

my ($session, $process, $sockets) = open_session($short);
my $select = 'SELECT gpu_sum(v) FROM t';
is($session->query($select), '12502500', 'a query gives the right answer');
is(count_sockets($process) - $sockets, 1, '... and its connection is kept');
ok(wait_until_closed($process, $sockets), '... and closed after the time');
foreach my $lost (
	[ 'an error', "$select; SELECT 1 / 0" ],
	[ 'errors in a transaction', "BEGIN; $select; SELECT 1 / 0; SELECT 1; ROLLBACK" ],
	[ 'an error before a savepoint', "BEGIN; SAVEPOINT s; $select; SELECT 1 / 0; ROLLBACK TO s", 'COMMIT' ],
	[ 'errors before a savepoint', "BEGIN; $select; SAVEPOINT s; SELECT 1 / 0; SELECT 1; ROLLBACK TO s", 'COMMIT' ],
	[ 'errors below savepoints', "BEGIN; $select; SAVEPOINT s; SAVEPOINT r; SELECT 1 / 0; SELECT 1; ROLLBACK TO s", 'COMMIT' ],
	[ 'an exception', "BEGIN; $select; DO 'BEGIN PERFORM 1 / 0; EXCEPTION WHEN division_by_zero THEN END'", 'COMMIT' ])
{
	my ($name, $queries, $end) = @$lost;
	like($session->query("$queries;"), qr/12502500/, "$name: the query before gives the right answer");
	ok(wait_until_closed($process, $sockets), '... and the connection is closed');
	$session->query($end) if $end;
}
is($session->query($select), '12502500', 'a query after the errors gives the right answer');
$session->query("SET statement_timeout = 300; SELECT pg_sleep(0)");
my $since = Time::HiRes::time;
$session->query("$select; SELECT pg_sleep(60)");
cmp_ok(Time::HiRes::time - $since, '<', 60, 'statement_timeout works before the connection\'s time has passed');
ok(wait_until_closed($process, $sockets), '... and the connection is closed');
$session->query("SET statement_timeout = 1500");
$since = Time::HiRes::time;
$session->query("$select; SELECT pg_sleep(60)");
cmp_ok(Time::HiRes::time - $since, '<', 60, 'statement_timeout works after the connection\'s time has passed');
ok(wait_until_closed($process, $sockets), '... and the connection is closed');
$session->query("SET statement_timeout = 0; SET idle_session_timeout = 1500; $select;");
ok($short->poll_query_until('postgres', "SELECT count(*) = 0 FROM pg_stat_activity WHERE pid = $process"), 'idle_session_timeout works');
$short->stop;

# ---- more sessions than the server lets keep connections ----
delete $ENV{GPUAGG_STUB_KEEP_MS};
$ENV{GPUAGG_STUB_KEPT} = 2;
my $few = GpuaggNode->start_new('few', server => 1, conf => $conf);
$few->safe_psql('postgres', $table);
ok($few->wait_until_ready, 'a server starts that lets two backends keep connections');
my @sessions = map { [ open_session($few) ] } 1 .. 4;
foreach my $round (1 .. 3)
{
	is(join(' ', map { scalar $_->[0]->query($select) } @sessions), join(' ', (12502500) x 4), 'four sessions get the right answers');
	ok($few->wait_for_devices('sum(sessions)', 0), '... and the server has no session between queries');
}
is($few->devices('sum(failures)'), 0, 'no query failed at the server');
$_->[0]->quit foreach @sessions;
done_testing();
