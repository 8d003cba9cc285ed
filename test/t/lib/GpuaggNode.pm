# A cluster with gpuagg, for the tests in this folder: PostgreSQL::Test::Cluster with the settings that they share, and
# functions that read the GPU server's state.  The server is the test server, over a stub of the CUDA run time; a file
# requests faults of it (test/stub_server/faults.c).
package GpuaggNode;

use strict;
use warnings;
use parent 'PostgreSQL::Test::Cluster';
use Exporter 'import';
use IO::Socket::UNIX;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(time usleep);

our @EXPORT = qw(computed message server_program wait_until);

# The test server's program, where the cluster can run it.
sub server_program { return $ENV{STUB_SERVER} // '' }

# The processor time of a process, in milliseconds: the time that tests judge by, whatever else the machine does.
sub computed
{
	my ($pid) = @_;
	return (split ' ', slurp_file("/proc/$pid/schedstat"))[0] / 1e6;
}

# A started cluster with the extension in database postgres.  Options:
#	conf	lines of postgresql.conf
#	init	[ arguments of init ]
#	server	with the GPU server; the test is skipped where that is not built
sub start_new
{
	my ($class, $name, %options) = @_;
	plan skip_all => 'build/test/gpuagg-server is not built' if $options{server} && !-x server_program();
	my $node = $class->new($name);
	# ICU's collations need an encoding, which SQL_ASCII, that of a system without a locale, is not
	my @initdb = ('--encoding=UTF8', '--no-locale');
	# checksums, the default from 18 on, give pages that VACUUM marks all-visible another LSN, so that they are cached
	push @initdb, grep { `initdb --help` =~ /$_/ } '--no-data-checksums';
	$node->init(extra => \@initdb, @{ $options{init} // [] });
	$node->append_conf('postgresql.conf', <<CONF);
shared_preload_libraries = 'gpuagg'
fsync = off
jit = off
max_parallel_workers_per_gather = 0
CONF
	$node->append_conf('postgresql.conf', "gpuagg.server_program = '" . server_program() . "'") if $options{server};
	$node->append_conf('postgresql.conf', $options{conf}) if $options{conf};
	$node->start;
	$node->safe_psql('postgres', 'CREATE EXTENSION gpuagg');
	return $node;
}

# Starts a query in a session of its own and returns, when it runs, the session and its process.
sub start_query
{
	my ($self, $settings, $query) = @_;
	my $session = $self->background_psql('postgres', on_error_stop => 0, on_error_die => 0);
	my $pid = $session->query('SELECT pg_backend_pid()');

	$session->query($settings) if $settings;
	$session->query_until(qr/started/, "\\echo started\n$query;\n");
	$self->poll_query_until('postgres',
		"SELECT state = 'active' AND query LIKE '%gpu%' FROM pg_stat_activity WHERE pid = $pid");
	return ($session, $pid);
}

# An expression over gpuagg_devices(), of the first device or of all.
sub device
{
	my ($self, $what) = @_;
	return $self->safe_psql('postgres', "SELECT $what FROM gpuagg_devices() WHERE device = 0");
}

sub devices
{
	my ($self, $what) = @_;
	return $self->safe_psql('postgres', "SELECT $what FROM gpuagg_devices()");
}

# Waits until something holds; says whether it came to that.  The limit is one that no machine reaches, however busy it is.
sub wait_until
{
	my ($holds) = @_;
	my $since = time;

	until ($holds->())
	{
		return 0 if time - $since > $PostgreSQL::Test::Utils::timeout_default;
		usleep(20_000);
	}
	return 1;
}

# ... until such an expression has the value
sub wait_for_device
{
	my ($self, $what, $value) = @_;

	return wait_until(sub { $self->device($what) eq $value });
}

# ... of all devices
sub wait_for_devices
{
	my ($self, $what, $value) = @_;

	return wait_until(sub { $self->devices($what) eq $value });
}

# ... for a server that is ready and another one than this, whose end may not have been noticed yet
sub wait_for_another_server
{
	my ($self, $pid) = @_;

	return wait_until(
		sub { $self->device('state') eq 'ready' && $self->server_pid != 0 && $self->server_pid != $pid });
}

# Kills the server; its process, for wait_for_another_server.
sub kill_server
{
	my ($self) = @_;
	my $pid = $self->server_pid or die 'no server';

	kill 'KILL', $pid;
	return $pid;
}

sub wait_until_ready { return $_[0]->wait_for_device('state', 'ready') }

# Requests a fault of the test server, or writes another file that a test's own library reads.  Without $what, removes
# the file.
sub provoke
{
	my ($self, $what, $file) = @_;

	$file //= $self->data_dir . '/gpuagg.fault';
	if (defined $what)
	{
		append_to_file("$file.new", "$what\n");
		rename("$file.new", $file);
	}
	else { unlink $file; }
	return;
}

sub socket_path { return $_[0]->data_dir . '/pg_stat_tmp/gpuagg.socket' }

# The process at the other end of the socket, and the supervisor, its parent.
sub server_pid
{
	my ($self) = @_;
	my $peer = IO::Socket::UNIX->new(Peer => $self->socket_path) or return 0;
	return unpack('l', $peer->sockopt(17));	# SO_PEERCRED
}

sub supervisor_pid
{
	my ($self) = @_;
	return slurp_file('/proc/' . $self->server_pid . '/stat') =~ /\) \S (\d+) / ? $1 : die 'no supervisor';
}

# Of the protocol (src/protocol.h): its version, and a message as bytes.
sub protocol_version
{
	return slurp_file("$ENV{TOP}/src/protocol.h") =~ /PROTOCOL_VERSION (\d+)/ ? $1 : die 'no version';
}

sub message
{
	my ($type, $body) = @_;
	return pack('L4', 0x47504741, $type, length $body, 0) . $body;
}

1;
