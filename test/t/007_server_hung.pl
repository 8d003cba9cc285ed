# No session waits long for a GPU server or a device that does not answer: the server or its supervisor is stopped (SIGSTOP), a device
# hangs, a peer sends half a message, or a server cannot be killed.
use strict;
use warnings;
use File::Spec;
use GpuaggNode;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(time);

my $dir = File::Spec->rel2abs(PostgreSQL::Test::Utils::tempdir);

# A preloaded library that changes system calls while a file in the data directory exists. With gpuagg.immortal SIGKILL has no
# effect, as on a process that is stuck in a driver. With gpuagg.halfway a message with a file descriptor stops after its header.
append_to_file("$dir/intercept.c", <<'C');
#define _GNU_SOURCE
#include <signal.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>
int kill(pid_t pid, int sig)
{
	if (sig == SIGKILL && access("gpuagg.immortal", F_OK) == 0)
		return 0;
	return syscall(SYS_kill, pid, sig);
}
ssize_t sendmsg(int sock, const struct msghdr *msg, int flags)
{
	struct msghdr head = *msg;
	if (msg->msg_control && access("gpuagg.halfway", F_OK) == 0)
	{
		ssize_t n;
		head.msg_iovlen = 1;
		n = syscall(SYS_sendmsg, sock, &head, flags);
		sleep(4);
		return n;
	}
	return syscall(SYS_sendmsg, sock, msg, flags);
}
C
my $intercept = system("cc -shared -fPIC -o $dir/intercept.so $dir/intercept.c") == 0;
$ENV{LD_PRELOAD} = "$dir/intercept.so" if $intercept;

my $node = GpuaggNode->start_new('main', server => 1, conf => <<CONF);
# no cache, so that all rows arrive in batches: after an autovacuum the table could be cached
gpuagg.cache = off
gpuagg.server_timeout = '2s'
gpuagg.require = 'require'
gpuagg.engine = 'cuda'
CONF
delete $ENV{LD_PRELOAD};
$node->safe_psql('postgres', <<SQL);
CREATE TABLE rows AS SELECT i, i % 1000 AS k FROM generate_series(1, 400000) i;
ANALYZE rows;
SQL
my $socket = $node->socket_path;
my $query = 'SELECT count(*), sum(c), sum(s) FROM (SELECT k, gpu_count(*) c, gpu_sum(i) s FROM rows GROUP BY k) g';
my $answer = '1000|400000|80000200000';

# Returns whether the process exists and is not a zombie.
sub is_running
{
	my ($pid) = @_;
	return -e "/proc/$pid/stat" && (eval { slurp_file("/proc/$pid/stat") } // '') =~ /\) [^ZX] /;
}

ok($node->wait_until_ready, 'the server starts with the cluster');
is($node->safe_psql('postgres', $query), $answer, '... and executes queries');

# The idle server is stopped. The supervisor notices that without a query.
{
	my $pid = $node->server_pid;
	kill 'STOP', $pid;
	ok($node->wait_for_device('restarts', 1), 'a server that is stopped while idle is killed');
	ok($node->wait_for_another_server($pid), '... and replaced');
	isnt($node->server_pid, $pid, '... by another process');
	like($node->device('last_error'), qr/^the GPU server did not answer for \d+ s, and was killed$/, '... and gpuagg_devices() shows the reason');
	ok(!is_running($pid), '... and the old process is gone');
	is($node->safe_psql('postgres', $query), $answer, '... and queries give the right answer');
}

# The server is stopped in the middle of a query whose backend has no time limit. The supervisor's limit ends the server.
{
	my ($out, $err);
	my $pid = $node->server_pid;
	$node->set_fault('slower');
	my $psql = $node->background_psql('postgres', on_error_stop => 0);
	$psql->query_until(qr/started/, "SET gpuagg.server_timeout = 0;\n\\echo started\n$query;\n");
	$node->poll_query_until('postgres', 'SELECT sum(sessions) > 0 FROM gpuagg_devices()');
	kill 'STOP', $pid;
	$node->clear_fault;
	is($psql->query('SELECT 1'), "$answer\n1", 'the server is stopped in the middle of a query: the CPU engine gives the answer');
	$psql->quit;
	ok($node->wait_for_another_server($pid), '... and the server is replaced');
}

# The server and its supervisor are stopped. The backend's own limit ends the wait.
{
	my ($out, $err);
	my $pid = $node->server_pid;
	my $supervisor = $node->supervisor_pid;
	kill 'STOP', $supervisor, $pid;
	$node->psql('postgres', "SET client_min_messages = 'debug1'; $query", stdout => \$out, stderr => \$err);
	is($out, $answer, 'server and supervisor are stopped: the CPU engine gives the answer');
	like($err, qr/engine "cuda" failed: the GPU server did not answer within 2000 ms/, '... and a message gives the reason');
	like($node->device('last_error'), qr/did not answer within 2000 ms/, '... and so does gpuagg_devices()');
	kill 'CONT', $pid, $supervisor;
	is($node->safe_psql('postgres', $query), $answer, '... and queries run again when both continue');
	is($node->server_pid, $pid, '... in the same server, which the supervisor did not kill');
}

# A device hangs, and its server answers pings.
{
	my ($out, $err);
	my $before = $node->device('restarts');
	my $pid = $node->server_pid;
	$node->set_fault('hang');
	$node->psql('postgres', "SET client_min_messages = 'debug1'; $query", stdout => \$out, stderr => \$err);
	$node->clear_fault;
	is($out, $answer, 'a device hangs: the CPU engine gives the answer');
	like($err, qr/engine "cuda" failed: the GPU server did not answer within 2000 ms/, '... and a message gives the reason');
	ok($node->wait_for_device('restarts', $before + 1), '... and the server is killed');
	ok($node->wait_for_another_server($pid), '... and replaced');
	like($node->device('last_error'), qr/^a GPU has completed nothing for \d+ s, and was killed$/, '... and gpuagg_devices() shows the reason');
}

# A slow device with queued queries is not hung.
{
	my $pid = $node->server_pid;
	my @children;
	# longer than the supervisor waits for a device that completes nothing
	my $loop = "DO \$\$ BEGIN LOOP PERFORM k, gpu_sum(i) FROM rows GROUP BY k; EXIT WHEN clock_timestamp() > now() + interval '6 s'; END LOOP; END \$\$";
	my $queries = $node->device('queries');
	$node->set_fault('slow');
	foreach (1 .. 8)
	{
		my ($in, $out, $err) = ('', '', '');
		push @children, { run => IPC::Run::start([ 'psql', '-XAtq', '-v', 'ON_ERROR_STOP=1', '-d', $node->connstr('postgres'), '-c', "SET gpuagg.server_timeout = '60s'", '-c', $loop ],
				'<', \$in, '>', \$out, '2>', \$err), err => \$err };
	}
	my $since = time;
	my @done = map { $_->{run}->finish or diag ${ $_->{err} } } @children;
	note('busy for ' . (time - $since) . ' s');
	$node->clear_fault;
	cmp_ok($node->device('queries') - $queries, '>', 8 * 10, 'many queries ran');
	is(scalar(grep { $_ } @done), 8, 'queries of eight sessions wait for a slow device and succeed');
	is($node->server_pid, $pid, '... and the server is not killed');
}

SKIP:
{
	skip 'no C compiler', 8 unless $intercept;

	# The backend is cancelled between the header and the body of the answer to its greeting. A file descriptor comes with the
	# header.
	my $psql = $node->background_psql('postgres', on_error_stop => 0);
	my $backend = $psql->query('SELECT pg_backend_pid()');
	my $memory = sub { scalar grep { (readlink($_) // '') =~ /memfd:gpuagg/ } glob "/proc/$backend/fd/*" };
	is($psql->query($query), $answer, 'a session executes a query');
	append_to_file($node->data_dir . '/gpuagg.halfway', '');
	# the next server's process loads the library too, and reads the file
	$node->wait_for_another_server($node->kill_server);
	$psql->query("SET statement_timeout = 1000");
	$psql->query($query);
	like($psql->{stderr}, qr/canceling statement due to statement timeout/, '... and is cancelled while it connects for another');
	is($memory->(), 0, '... which leaves no file descriptor');
	unlink $node->data_dir . '/gpuagg.halfway';
	$psql->quit;

	# No signal ends the server's process. Neither the supervisor nor a shutdown waits for it.
	$node->wait_until_ready;
	my $pid = $node->server_pid;
	append_to_file($node->data_dir . '/gpuagg.immortal', '');
	kill 'STOP', $pid;
	$node->poll_query_until('postgres', "SELECT state <> 'ready' FROM gpuagg_devices() WHERE device = 0");
	is($node->safe_psql('postgres', "SET gpuagg.engine = 'auto'; $query"), $answer, 'the server cannot be killed: the CPU engine gives the answer');
	ok($node->wait_for_device("last_error ~ 'process $pid, was killed but does not end'", 't'), '... and gpuagg_devices() shows the reason');
	is($node->safe_psql('postgres', 'SELECT pg_reload_conf()'), 't', '... and a reload works');
	$node->stop('fast');
	ok(wait_until(sub { !is_running($pid) }), '... and the kernel ends the server with its supervisor');
}
done_testing();
