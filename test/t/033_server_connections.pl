# A backend keeps its connection to the GPU server between queries: it holds nothing at the server meanwhile, is noticed when
# it is lost, and is not kept after an error.
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

# Sockets of a process that have no name, and the memory that it has mapped.
sub sockets { return scalar grep { (readlink($_) // '') =~ /^socket:/ } glob "/proc/$_[0]/fd/*" }
sub mapped { return scalar grep { /memfd:gpuagg/ } split /\n/, slurp_file("/proc/$_[0]/maps") }

my $before = sockets($pid);
is($psql->query($query), '5000|12502500', 'a query');
is(sockets($pid) - $before, 1, '... whose connection is kept');
my ($inode) = grep { $_ } map { readlink $_ } reverse sort { ($a =~ /(\d+)$/)[0] <=> ($b =~ /(\d+)$/)[0] } grep { (readlink($_) // '') =~ /^socket:/ } glob "/proc/$pid/fd/*";
ok($node->wait_for_devices('sum(sessions)', 0), '... and is no session meanwhile');
is($psql->query($query), '5000|12502500', 'another query') foreach 1 .. 3;
is(sockets($pid) - $before, 1, '... over the same one');
is(scalar(grep { (readlink($_) // '') eq $inode } glob "/proc/$pid/fd/*"), 1, '... the very same');

# another process has the arena meanwhile
is($node->safe_psql('postgres', $query), '5000|12502500', 'another backend');
is($psql->query($query), '5000|12502500', '... and the first one again');

# lost between two queries
ok($node->wait_for_another_server($node->kill_server), 'another server starts');
like($psql->query($plan), qr/Engine: cuda/, '... and has the next query of a session with a connection to the first one');
is(sockets($pid) - $before, 1, '... over one that is kept in its turn');
is($psql->query($query), '5000|12502500', '... with the right answer');

# scans beside each other
is($psql->query("SELECT sum(s) FROM (SELECT gpu_sum(v) AS s FROM t UNION ALL SELECT gpu_sum(v) FROM t UNION ALL SELECT gpu_sum(v + 1) FROM t) u"), '37512500',
	'several scans');
is(sockets($pid) - $before, 1, '... leave one connection');
is(mapped($pid), 1, '... and one arena');

# settings of the server that change between queries; a server that is started again has other devices
sub set_on_reload
{
	my ($setting, $expected, $value) = @_;
	$node->append_conf('postgresql.conf', $setting);
	$node->reload;
	return $node->wait_for_devices($expected, $value);
}
ok(set_on_reload("gpuagg.device_memory_limit = '300MB'", "bool_and(state = 'ready')", 't'), 'less memory');
is($psql->query($query), '5000|12502500', '... between queries');
ok(set_on_reload("gpuagg.devices = '1'", "string_agg(device::text || state, '')", '1ready'), 'another device');
like($psql->query($plan), qr/Engine: cuda/, '... between queries');
is($psql->query($query), '5000|12502500', '... with the same answer');
$node->append_conf('postgresql.conf', "gpuagg.server = off\ngpuagg.engine = 'auto'");
$node->reload;
ok($node->poll_query_until('postgres', "SELECT count(*) FILTER (WHERE state = 'ready') = 0 FROM gpuagg_devices()"), 'no server');
is($psql->query($query), '5000|12502500', '... between queries');
$node->append_conf('postgresql.conf', "gpuagg.engine = 'cuda'");
ok(set_on_reload('gpuagg.server = on', "bool_and(state = 'ready')", 't'), 'a server again');
like($psql->query($plan), qr/Engine: cuda/, '... between queries');
is(sockets($pid) - $before, 1, '... whose connection is kept');
$psql->quit;
$node->stop;

# the connection and the memory go after a time, of which core's timeouts know nothing
$ENV{GPUAGG_STUB_KEEP_MS} = 500;
my $conf = <<CONF;
gpuagg.require = 'require'
gpuagg.engine = 'cuda'
gpuagg.cache = 'off'
CONF
my $table = 'CREATE TABLE t AS SELECT i AS v FROM generate_series(1, 5000) i; ANALYZE t';
my $short = GpuaggNode->start_new('short', server => 1, conf => $conf);
$short->safe_psql('postgres', $table);
ok($short->wait_until_ready, 'a server that lets connections be kept for half a second');

sub open_session
{
	my ($at) = @_;
	my $session = $at->background_psql('postgres', on_error_stop => 0, on_error_die => 0);
	my $process = $session->query('SELECT pg_backend_pid()');
	return ($session, $process, sockets($process));
}

# Has the process given up its connection and the memory?
sub gives_up
{
	my ($process, $sockets) = @_;
	return wait_until(sub { sockets($process) == $sockets && mapped($process) == 0 });
}

my ($session, $process, $sockets) = open_session($short);
my $select = 'SELECT gpu_sum(v) FROM t';
is($session->query($select), '12502500', 'a query');
is(sockets($process) - $sockets, 1, '... whose connection is kept');
ok(gives_up($process, $sockets), '... for its time');
foreach my $lost (
	[ 'an error', "$select; SELECT 1 / 0" ],
	[ 'errors in a transaction', "BEGIN; $select; SELECT 1 / 0; SELECT 1; ROLLBACK" ],
	[ 'an error before a savepoint', "BEGIN; SAVEPOINT s; $select; SELECT 1 / 0; ROLLBACK TO s", 'COMMIT' ],
	[ 'errors before a savepoint', "BEGIN; $select; SAVEPOINT s; SELECT 1 / 0; SELECT 1; ROLLBACK TO s", 'COMMIT' ],
	[ 'errors below savepoints', "BEGIN; $select; SAVEPOINT s; SAVEPOINT r; SELECT 1 / 0; SELECT 1; ROLLBACK TO s", 'COMMIT' ],
	[ 'an exception', "BEGIN; $select; DO 'BEGIN PERFORM 1 / 0; EXCEPTION WHEN division_by_zero THEN END'", 'COMMIT' ])
{
	my ($name, $queries, $end) = @$lost;
	like($session->query("$queries;"), qr/12502500/, $name);
	ok(gives_up($process, $sockets), '... leaves the timer');
	$session->query($end) if $end;
}
is($session->query($select), '12502500', 'a query after them');
$session->query("SET statement_timeout = 300; SELECT pg_sleep(0)");
my $since = Time::HiRes::time;
$session->query("$select; SELECT pg_sleep(60)");
cmp_ok(Time::HiRes::time - $since, '<', 60, 'a statement times out before the connection');
ok(gives_up($process, $sockets), '... which goes nevertheless');
$session->query("SET statement_timeout = 1500");
$since = Time::HiRes::time;
$session->query("$select; SELECT pg_sleep(60)");
cmp_ok(Time::HiRes::time - $since, '<', 60, 'a statement times out after it');
ok(gives_up($process, $sockets), '... which is gone');
$session->query("SET statement_timeout = 0; SET idle_session_timeout = 1500; $select;");
ok($short->poll_query_until('postgres', "SELECT count(*) = 0 FROM pg_stat_activity WHERE pid = $process"), 'an idle session times out');
$short->stop;

# more sessions than the server keeps connections
delete $ENV{GPUAGG_STUB_KEEP_MS};
$ENV{GPUAGG_STUB_KEPT} = 2;
my $few = GpuaggNode->start_new('few', server => 1, conf => $conf);
$few->safe_psql('postgres', $table);
ok($few->wait_until_ready, 'a server that keeps two connections');
my @sessions = map { [ open_session($few) ] } 1 .. 4;
foreach my $round (1 .. 3)
{
	is(join(' ', map { scalar $_->[0]->query($select) } @sessions), join(' ', (12502500) x 4), 'four sessions');
	ok($few->wait_for_devices('sum(sessions)', 0), '... are none between queries');
}
is($few->devices('sum(failures)'), 0, '... and nothing failed');
$_->[0]->quit foreach @sessions;
done_testing();
