# What a DBA sees of the GPU server and its supervisor: worker slots, pg_stat_activity, gpuagg.devices, the log.
use strict;
use warnings;
use lib "$ENV{TESTDIR}/lib";
use GpuaggNode;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(usleep);

my $engine = "SET gpuagg.require = 'require'; EXPLAIN (COSTS OFF) SELECT k, gpu_sum(x) FROM rows GROUP BY k";

sub rows { return $_[0]->safe_psql('postgres', 'CREATE TABLE rows AS SELECT i % 5 AS k, i::float8 AS x FROM generate_series(1, 1000) i') }

# Sets in postgresql.conf and reloads.
sub set
{
	my ($node, %settings) = @_;
	$node->safe_psql('postgres', "ALTER SYSTEM SET $_ = '$settings{$_}'") foreach sort keys %settings;
	$node->reload;
	return;
}

sub supervisor { return $_[0]->safe_psql('postgres', "SELECT $_[1] FROM pg_stat_activity WHERE backend_type = 'gpuagg supervisor'") }

# The log lines of the supervisor's process and of the extension's start.
sub count_in_log { my ($node, $what) = @_; return scalar(() = slurp_file($node->logfile) =~ /$what/g) }

# ---- in pg_stat_activity ----
my $node = GpuaggNode->start_new('main', server => 1);
rows($node);
ok($node->wait_until_ready, 'the server is ready');
my $server = $node->server_pid;
is(supervisor($node, 'application_name, state, query, datname IS NULL'),
	"gpuagg supervisor|idle|GPU server: ready, process $server, 2 device(s)|t", 'the supervisor is in pg_stat_activity');
is(supervisor($node, 'pid'), $node->supervisor_pid, '... with its process');
kill 'KILL', $server;
ok($node->poll_query_until('postgres', 'SELECT restarts = 1 FROM gpuagg_devices() WHERE device = 0'), 'the server is killed');
ok($node->wait_until_ready, '... and starts again');
is(supervisor($node, 'query'), 'GPU server: ready, process ' . $node->server_pid . ', 2 device(s)', '... which pg_stat_activity says');

# Invalidation messages do not pile up for a process without transactions.
$node->safe_psql('postgres', 'DO $$ BEGIN FOR i IN 1 .. 3000 LOOP CREATE TABLE made (); DROP TABLE made; COMMIT; END LOOP; END $$');
is($node->device('state'), 'ready', 'the server goes on beside invalidation messages');

# ---- gpuagg.devices ----
my ($rc, $out, $err) = $node->psql('postgres', "ALTER SYSTEM SET gpuagg.devices = 'zork'");
like($err, qr/invalid value for parameter "gpuagg.devices": "zork"\nDETAIL: +"zork" is neither the number of a GPU nor the UUID of one.\nHINT: .*CUDA_VISIBLE_DEVICES/,
	'nonsense is an error');
foreach my $bad ('1,all', '0,0', '0,,1', 'GPU-', '0,GPU-12')
{
	($rc, $out, $err) = $node->psql('postgres', "ALTER SYSTEM SET gpuagg.devices = '$bad'");
	like($err, qr/invalid value .*DETAIL/s, "so is $bad");
}
set($node, 'gpuagg.devices' => '1');
ok($node->wait_for_devices("string_agg(device || ' ' || state, ',')", '1 ready'), 'gpuagg_devices() shows the device that is left');
set($node, 'gpuagg.devices' => 'GPU-00000000');
ok($node->wait_for_devices("string_agg(device || ' ' || state, ',')", '0 ready'), '... one named by the beginning of its UUID');
set($node, 'gpuagg.devices' => 'none');
ok($node->poll_query_until('postgres', 'SELECT count(*) = 0 FROM gpuagg_devices()'), '... none');
$node->poll_query_until('postgres', "SELECT query LIKE '%unavailable%' FROM pg_stat_activity WHERE backend_type = 'gpuagg supervisor'");
like($node->safe_psql('postgres', $engine), qr/Engine: cpu \(no GPU: gpuagg.devices is none\)/, '... and EXPLAIN says why');
set($node, 'gpuagg.devices' => join(',', map { "GPU-$_" } map { sprintf '%08x-0000-0000-0000-000000000000', $_ } 0 .. 9));
ok($node->wait_for_devices("string_agg(device || ' ' || state, ',')", '0 ready,1 ready,2 not used'), '... those of a long list');
$server = $node->server_pid;
set($node, 'gpuagg.server_timeout' => '50s');
usleep(300_000);
is($node->server_pid, $server, 'a reload that changes no device leaves the server alone');

# ---- gpuagg.server = off ----
set($node, 'gpuagg.server' => 'off');
ok($node->poll_query_until('postgres', "SELECT count(*) = 0 FROM pg_stat_activity WHERE backend_type = 'gpuagg supervisor'"),
	'without a server to run the supervisor gives its slot back');
like($node->safe_psql('postgres', $engine), qr/Engine: cpu \(gpuagg.server is off\)/, '... and EXPLAIN says why');
set($node, 'gpuagg.server' => 'on');
ok($node->wait_until_ready, 'it is back when there is one');
is(supervisor($node, 'count(*)'), 1, '... once');
$node->safe_psql('postgres', 'SELECT pg_terminate_backend(' . supervisor($node, 'pid') . ')');
ok($node->poll_query_until('postgres', "SELECT count(*) = 1 FROM pg_stat_activity WHERE query LIKE 'GPU server: ready%'"),
	'... and comes back when it is ended');

# ---- the log ----
my @ours = grep { /GPU|gpuagg|CUDA|stub/ && !/STATEMENT|ERROR|DETAIL|HINT|parameter/ } split /\n/, slurp_file($node->logfile);
cmp_ok(scalar @ours, '>', 5, 'there are lines in the log');
is(join("\n", grep { !/(LOG|DEBUG\d|WARNING): +(gpuagg|background worker "gpuagg|.*statement: )/ } @ours), '', '... which begin with gpuagg');

# ---- crash of the cluster: all as at the start ----
$node->append_conf('postgresql.conf', 'restart_after_crash = on');
$node->reload;
my $session = $node->background_psql('postgres', on_error_stop => 0, on_error_die => 0);
kill 'KILL', scalar $session->query('SELECT pg_backend_pid()');
ok($node->poll_query_until('postgres', "SELECT count(*) = 1 FROM pg_stat_activity WHERE query LIKE 'GPU server: ready%'"),
	'after a crash the supervisor is back');
eval { $session->{run}->finish };
$node->stop;

# ---- no free slot ----
$node = GpuaggNode->start_new('slots', server => 1, conf => "max_worker_processes = 0\nmax_parallel_workers = 0\nmax_logical_replication_workers = 0");
rows($node);
like($node->safe_psql('postgres', $engine), qr/Engine: cpu \(no GPU: no worker slot was free, see max_worker_processes\)/,
	'without a free worker slot EXPLAIN says so');
is(count_in_log($node, 'gpuagg runs without a GPU: no worker slot was free'), 1, '... and the log, once');
$node->append_conf('postgresql.conf', "max_worker_processes = 4\ngpuagg.server = off");
$node->restart;
is(supervisor($node, 'count(*)'), 0, 'a cluster that starts with gpuagg.server off has no supervisor');
$node->append_conf('postgresql.conf', 'gpuagg.server = on');
$node->reload;
ok($node->wait_until_ready, '... until there is a server to run');
$node->stop;

# ---- built without CUDA ----
$node = GpuaggNode->start_new('plain');
rows($node);
like($node->safe_psql('postgres', $engine), qr/Engine: cpu \(no GPU: built without CUDA\)/, 'EXPLAIN says that there is no CUDA');
is(supervisor($node, 'count(*)'), 0, '... no slot is taken');
$node->safe_psql('postgres', $engine);
$node->reload;
usleep(200_000);
is(count_in_log($node, 'gpuagg runs without a GPU: built without CUDA'), 1, '... the log says so once');
is(count_in_log($node, 'could not execute'), 0, '... and nothing else');
set($node, 'gpuagg.server_program' => server_program());
ok($node->wait_until_ready, '... until a program is named');

# ---- the program goes away while the supervisor waits before the next start ----
set($node, 'gpuagg.server_program' => '/bin/false');
$node->poll_query_until('postgres', 'SELECT restarts >= 3 FROM gpuagg_status()');
set($node, 'gpuagg.server_program' => '');
ok($node->poll_query_until('postgres', 'SELECT supervisor_pid IS NULL FROM gpuagg_status()'), 'the supervisor of a program that went away ends');
like($node->safe_psql('postgres', $engine), qr/Engine: cpu \(no GPU: built without CUDA\)/, '... and EXPLAIN does not say that a server starts');
set($node, 'gpuagg.server_program' => server_program());
ok($node->wait_until_ready, '... until there is one again');
$node->stop;

done_testing();
