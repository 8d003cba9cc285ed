# No session waits long for a GPU server, a device or a peer that does not answer.
use strict;
use warnings;
use File::Spec;
use GpuaggNode;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(time);

my $dir = File::Spec->rel2abs(PostgreSQL::Test::Utils::tempdir);

# A library that spoils system calls where a file asks for it: SIGKILL does nothing, as to a process that
# is stuck in a driver; a message with a file descriptor stops after its header.
append_to_file("$dir/spoil.c", <<'C');
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
my $spoil = system("cc -shared -fPIC -o $dir/spoil.so $dir/spoil.c") == 0;
$ENV{LD_PRELOAD} = "$dir/spoil.so" if $spoil;

my $node = GpuaggNode->start_new('main', server => 1, conf => <<CONF);
# what is tested are batches: autovacuum may let the table be cached in the middle
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

# Not gone, nor waiting to be collected.
sub runs
{
	my ($pid) = @_;
	return -e "/proc/$pid/stat" && (eval { slurp_file("/proc/$pid/stat") } // '') =~ /\) [^ZX] /;
}

ok($node->wait_until_ready, 'the server starts with the cluster');
is($node->safe_psql('postgres', $query), $answer, 'queries run there');

# Stopped while idle: it is found out without a query.
{
	my $pid = $node->server_pid;
	kill 'STOP', $pid;
	ok($node->wait_for_device('restarts', 1), 'a server that is stopped while idle is killed');
	ok($node->wait_for_another_server($pid), '... and replaced');
	isnt($node->server_pid, $pid, '... by another process');
	like($node->device('last_error'), qr/^the GPU server did not answer for \d+ s, and was killed$/, '... and the reason is told');
	ok(!runs($pid), '... and the old one is gone');
	is($node->safe_psql('postgres', $query), $answer, '... and queries run');
}

# Stopped in the middle of a query, of which the client waits without end: the supervisor ends that.
{
	my ($out, $err);
	my $pid = $node->server_pid;
	$node->provoke('slower');
	my $psql = $node->background_psql('postgres', on_error_stop => 0);
	$psql->query_until(qr/started/, "SET gpuagg.server_timeout = 0;\n\\echo started\n$query;\n");
	$node->poll_query_until('postgres', 'SELECT sum(sessions) > 0 FROM gpuagg_devices()');
	kill 'STOP', $pid;
	$node->provoke(undef);
	# by the supervisor's deadline: without it, never
	is($psql->query('SELECT 1'), "$answer\n1", 'a server stopped in the middle of a query: answered by the CPU engine');
	$psql->quit;
	ok($node->wait_for_another_server($pid), '... and the server is replaced');
}

# Stopped together with its supervisor: clients have a deadline of their own.
{
	my ($out, $err);
	my $pid = $node->server_pid;
	my $supervisor = $node->supervisor_pid;
	kill 'STOP', $supervisor, $pid;
	$node->psql('postgres', "SET client_min_messages = 'debug1'; $query", stdout => \$out, stderr => \$err);
	is($out, $answer, 'nobody watches a stopped server: answered by the CPU engine');
	like($err, qr/engine "cuda" failed: the GPU server did not answer within 2000 ms/, '... and said so');
	like($node->device('last_error'), qr/did not answer within 2000 ms/, 'gpuagg_devices() says so as well');
	kill 'CONT', $pid, $supervisor;
	is($node->safe_psql('postgres', $query), $answer, '... and when they go on');
	is($node->server_pid, $pid, '... it is the same process: who was stopped himself kills nobody');
}

# A device that does nothing any more, of a server that is well.
{
	my ($out, $err);
	my $before = $node->device('restarts');
	my $pid = $node->server_pid;
	$node->provoke('hang');
	$node->psql('postgres', "SET client_min_messages = 'debug1'; $query", stdout => \$out, stderr => \$err);
	$node->provoke(undef);
	is($out, $answer, 'a device that hangs: answered by the CPU engine');
	like($err, qr/engine "cuda" failed: the GPU server did not answer within 2000 ms/, '... and said so');
	ok($node->wait_for_device('restarts', $before + 1), '... and the server is killed');
	ok($node->wait_for_another_server($pid), '... and replaced');
	like($node->device('last_error'), qr/^a GPU has completed nothing for \d+ s, and was killed$/, '... and the reason is told');
}

# A device with a queue is busy, not hung.
{
	my $pid = $node->server_pid;
	my @children;
	my $loop = 'DO $$ BEGIN FOR n IN 1 .. 25 LOOP PERFORM k, gpu_sum(i) FROM rows GROUP BY k; END LOOP; END $$';
	$node->provoke('slow');
	foreach (1 .. 8)
	{
		my ($in, $out, $err) = ('', '', '');
		push @children, { run => IPC::Run::start([ 'psql', '-XAtq', '-v', 'ON_ERROR_STOP=1', '-d', $node->connstr('postgres'), '-c', "SET gpuagg.server_timeout = '60s'", '-c', $loop ],
				'<', \$in, '>', \$out, '2>', \$err), err => \$err };
	}
	my $since = time;
	my @done = map { $_->{run}->finish or diag ${ $_->{err} } } @children;
	note('busy for ' . (time - $since) . ' s');
	$node->provoke(undef);
	is(scalar(grep { $_ } @done), 8, 'many sessions that queue for a slow device');
	is($node->server_pid, $pid, '... have it without its being taken for hung');
}

SKIP:
{
	skip 'no C compiler', 8 unless $spoil;

	# Cancelled between the header of the greeting's answer and its body: with the header came a file descriptor.
	my $psql = $node->background_psql('postgres', on_error_stop => 0);
	my $backend = $psql->query('SELECT pg_backend_pid()');
	my $memory = sub { scalar grep { (readlink($_) // '') =~ /memfd:gpuagg/ } glob "/proc/$backend/fd/*" };
	is($psql->query($query), $answer, 'a query of a session');
	$node->provoke('', $node->data_dir . '/gpuagg.halfway');
	# the library reads the file in the server, which has the environment of the postmaster
	$node->wait_for_another_server($node->kill_server);
	$psql->query("SET statement_timeout = 1000");
	$psql->query($query);
	like($psql->{stderr}, qr/canceling statement due to statement timeout/, '... and another, cancelled while it is greeted');
	is($memory->(), 0, '... leaves no file descriptor');
	$node->provoke(undef, $node->data_dir . '/gpuagg.halfway');
	$psql->quit;

	# A process that no signal ends is not waited for: neither by the supervisor nor at shutdown.
	$node->wait_until_ready;
	my $pid = $node->server_pid;
	$node->provoke('', $node->data_dir . '/gpuagg.immortal');
	kill 'STOP', $pid;
	$node->poll_query_until('postgres', "SELECT state <> 'ready' FROM gpuagg_devices() WHERE device = 0");
	is($node->safe_psql('postgres', "SET gpuagg.engine = 'auto'; $query"), $answer, 'a server that cannot be killed: the CPU engine');
	ok($node->wait_for_device("last_error ~ 'process $pid, was killed but does not end'", 't'), '... and it is said');
	is($node->safe_psql('postgres', 'SELECT pg_reload_conf()'), 't', '... and the supervisor lives');
	$node->stop('fast');
	ok(wait_until(sub { !runs($pid) }), '... and the kernel ends the server with its supervisor');
}
done_testing();
