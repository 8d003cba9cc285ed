# The GPU server and its supervisor as a DBA sees them: worker slots, pg_stat_activity, gpuagg.devices, gpuagg.server, the log, crashes,
# and a build without CUDA.
use strict;
use warnings;
use GpuaggNode;
use IO::Socket::UNIX;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(usleep);

my $engine = "SET gpuagg.require = 'require'; EXPLAIN (COSTS OFF) SELECT k, gpu_sum(x) FROM rows GROUP BY k";

sub create_rows { return $_[0]->safe_psql('postgres', 'CREATE TABLE rows AS SELECT i % 5 AS k, i::float8 AS x FROM generate_series(1, 1000) i') }

# Changes settings by ALTER SYSTEM and reloads.
sub change_settings
{
	my ($node, %settings) = @_;
	$node->safe_psql('postgres', "ALTER SYSTEM SET $_ = '$settings{$_}'") foreach sort keys %settings;
	$node->reload;
	return;
}

# An expression over the supervisor's row in pg_stat_activity.
sub supervisor { return $_[0]->safe_psql('postgres', "SELECT $_[1] FROM pg_stat_activity WHERE backend_type = 'gpuagg supervisor'") }

sub count_in_log { my ($node, $what) = @_; return scalar(() = slurp_file($node->logfile) =~ /$what/g) }

# ---- in pg_stat_activity ----
my $node = GpuaggNode->start_new('main', server => 1);
create_rows($node);
ok($node->wait_until_ready, 'the server is ready');
my $server = $node->server_pid;
is(supervisor($node, 'application_name, state, query, datname IS NULL'),
	"gpuagg supervisor|idle|GPU server: ready, process $server, 2 device(s)|t", 'pg_stat_activity shows the supervisor');
is(supervisor($node, 'pid'), $node->supervisor_pid, '... with its process');
kill 'KILL', $server;
ok($node->poll_query_until('postgres', 'SELECT restarts = 1 FROM gpuagg_devices() WHERE device = 0'), 'a killed server is restarted');
ok($node->wait_until_ready, '... and becomes ready');
is(supervisor($node, 'query'), 'GPU server: ready, process ' . $node->server_pid . ', 2 device(s)', '... and pg_stat_activity shows its process');

# The supervisor has no transactions, but must process invalidation messages.
$node->safe_psql('postgres', 'DO $$ BEGIN FOR i IN 1 .. 3000 LOOP CREATE TABLE made (); DROP TABLE made; COMMIT; END LOOP; END $$');
is($node->device('state'), 'ready', 'the server stays ready after many invalidation messages');

# ---- gpuagg.devices ----
my ($rc, $out, $err) = $node->psql('postgres', "ALTER SYSTEM SET gpuagg.devices = 'zork'");
like($err, qr/invalid value for parameter "gpuagg.devices": "zork"\nDETAIL: +"zork" is neither the number of a GPU nor the UUID of one.\nHINT: .*CUDA_VISIBLE_DEVICES/,
	'an invalid value of gpuagg.devices is an error');
foreach my $bad ('1,all', '0,0', '0,,1', 'GPU-', '0,GPU-12')
{
	($rc, $out, $err) = $node->psql('postgres', "ALTER SYSTEM SET gpuagg.devices = '$bad'");
	like($err, qr/invalid value .*DETAIL/s, "... also $bad");
}
change_settings($node, 'gpuagg.devices' => '1');
ok($node->wait_for_devices("string_agg(device || ' ' || state, ',')", '1 ready'), 'gpuagg_devices() shows the selected device');
change_settings($node, 'gpuagg.devices' => 'GPU-00000000');
ok($node->wait_for_devices("string_agg(device || ' ' || state, ',')", '0 ready'), '... a device selected by the beginning of its UUID');
change_settings($node, 'gpuagg.devices' => 'none');
ok($node->poll_query_until('postgres', 'SELECT count(*) = 0 FROM gpuagg_devices()'), '... no device');
$node->poll_query_until('postgres', "SELECT query LIKE '%unavailable%' FROM pg_stat_activity WHERE backend_type = 'gpuagg supervisor'");
like($node->safe_psql('postgres', $engine), qr/Engine: cpu \(no GPU: gpuagg.devices is none\)/, '... and EXPLAIN shows the reason');
change_settings($node, 'gpuagg.devices' => join(',', map { "GPU-$_" } map { sprintf '%08x-0000-0000-0000-000000000000', $_ } 0 .. 9));
ok($node->wait_for_devices("string_agg(device || ' ' || state, ',')", '0 ready,1 ready,2 not used'), '... and the devices of a long list');
$server = $node->server_pid;
change_settings($node, 'gpuagg.server_timeout' => '50s');
usleep(300_000);
is($node->server_pid, $server, 'a reload that does not change the devices does not restart the server');

# ---- gpuagg.server = off ----
change_settings($node, 'gpuagg.server' => 'off');
ok($node->poll_query_until('postgres', "SELECT count(*) = 0 FROM pg_stat_activity WHERE backend_type = 'gpuagg supervisor'"),
	'with gpuagg.server = off the supervisor ends and frees its worker slot');
like($node->safe_psql('postgres', $engine), qr/Engine: cpu \(gpuagg.server is off\)/, '... and EXPLAIN shows the reason');
change_settings($node, 'gpuagg.server' => 'on');
ok($node->wait_until_ready, 'with gpuagg.server = on the server starts');
is(supervisor($node, 'count(*)'), 1, '... with one supervisor');
$node->safe_psql('postgres', 'SELECT pg_terminate_backend(' . supervisor($node, 'pid') . ')');
ok($node->poll_query_until('postgres', "SELECT count(*) = 1 FROM pg_stat_activity WHERE query LIKE 'GPU server: ready%'"),
	'... which starts again after it is terminated');

# ---- the log ----
my @ours = grep { /GPU|gpuagg|CUDA|stub/ && !/STATEMENT|ERROR|DETAIL|HINT|parameter/ } split /\n/, slurp_file($node->logfile);
cmp_ok(scalar @ours, '>', 5, 'the log has lines of the extension');
is(join("\n", grep { !/(LOG|DEBUG\d|WARNING): +(gpuagg|background worker "gpuagg|.*statement: )/ } @ours), '', '... which begin with "gpuagg"');

# ---- crash of the cluster ----
$node->append_conf('postgresql.conf', 'restart_after_crash = on');
$node->reload;
my $session = $node->background_psql('postgres', on_error_stop => 0, on_error_die => 0);
kill 'KILL', scalar $session->query('SELECT pg_backend_pid()');
ok($node->poll_query_until('postgres', "SELECT count(*) = 1 FROM pg_stat_activity WHERE query LIKE 'GPU server: ready%'"),
	'after a crash of the cluster the supervisor and the server start again');
eval { $session->{run}->finish };
$node->stop;

# ---- no free slot ----
$node = GpuaggNode->start_new('slots', server => 1, conf => "max_worker_processes = 0\nmax_parallel_workers = 0\nmax_logical_replication_workers = 0");
create_rows($node);
like($node->safe_psql('postgres', $engine), qr/Engine: cpu \(no GPU: no worker slot was free, see max_worker_processes\)/,
	'EXPLAIN shows that no worker slot was free');
is(count_in_log($node, 'gpuagg runs without a GPU: no worker slot was free'), 1, '... and the log, once');
$node->append_conf('postgresql.conf', "max_worker_processes = 4\ngpuagg.server = off");
$node->restart;
is(supervisor($node, 'count(*)'), 0, 'a cluster that starts with gpuagg.server = off has no supervisor');
$node->append_conf('postgresql.conf', 'gpuagg.server = on');
$node->reload;
ok($node->wait_until_ready, '... until it is switched on');
$node->stop;

# ---- built without CUDA ----
$node = GpuaggNode->start_new('plain');
create_rows($node);
like($node->safe_psql('postgres', $engine), qr/Engine: cpu \(no GPU: built without CUDA\)/, 'EXPLAIN shows that the build has no CUDA');
is(supervisor($node, 'count(*)'), 0, '... and there is no supervisor');
$node->safe_psql('postgres', $engine);
$node->reload;
usleep(200_000);
is(count_in_log($node, 'gpuagg runs without a GPU: built without CUDA'), 1, '... the log says so once');
is(count_in_log($node, 'could not execute'), 0, '... and no program is started');
change_settings($node, 'gpuagg.server_program' => server_program());
ok($node->wait_until_ready, '... until gpuagg.server_program is set');

# ---- a server of another build ----
# The server's answer to STATUS has the same body as READY.
my $peer = IO::Socket::UNIX->new(Peer => $node->socket_path) or die "connect: $!";
syswrite($peer, message(7, ''));
sysread($peer, my $header, 16) == 16 or die "read: $!";
my (undef, undef, $length) = unpack('L4', $header);
close $peer;
cmp_ok($length, '>', 1000, 'the server sends its state');

# Programs that send READY with so many bytes of zeros, which are of version 0, and wait.
my $programs = PostgreSQL::Test::Utils::tempdir;
foreach my $bytes ($length, $length - 8, $length + 8)
{
	my $log = -s $node->logfile;

	append_to_file("$programs/$bytes", <<PROGRAM);
#!$^X
my (\$number) = "\@ARGV" =~ /--control (\\d+)/;
open(my \$control, '+<&=', \$number) or die;
syswrite(\$control, pack('L4', 0x47504741, 128, $bytes, 0) . "\\0" x $bytes);
sleep 1000;
PROGRAM
	chmod 0755, "$programs/$bytes";
	change_settings($node, 'gpuagg.server_program' => "$programs/$bytes");
	$node->wait_for_log(qr/gpuagg runs without a GPU: the GPU server is of another build than the library\n.*DETAIL: .*PostgreSQL must be restarted/, $log);
	like($node->safe_psql('postgres', $engine), qr/Engine: cpu \(no GPU: the GPU server is of another build than the library\)/,
		'EXPLAIN shows that the server is of another build, ' . ($bytes == $length ? 'by its version' : "by $bytes bytes"));
	is($node->safe_psql('postgres', 'SELECT restarts FROM gpuagg_status()'), '0', '... and it is not started again');
	change_settings($node, 'gpuagg.server_program' => server_program());
	ok($node->wait_until_ready, '... until gpuagg.server_program names another program');
}

# ---- gpuagg.server_program is unset while the supervisor waits before the next start ----
change_settings($node, 'gpuagg.server_program' => '/bin/false');
$node->poll_query_until('postgres', 'SELECT restarts >= 3 FROM gpuagg_status()');
change_settings($node, 'gpuagg.server_program' => '');
ok($node->poll_query_until('postgres', 'SELECT supervisor_pid IS NULL FROM gpuagg_status()'), 'the supervisor ends when no program is set');
like($node->safe_psql('postgres', $engine), qr/Engine: cpu \(no GPU: built without CUDA\)/, '... and EXPLAIN shows that the build has no CUDA');
change_settings($node, 'gpuagg.server_program' => server_program());
ok($node->wait_until_ready, '... until gpuagg.server_program is set again');
$node->stop;

done_testing();
