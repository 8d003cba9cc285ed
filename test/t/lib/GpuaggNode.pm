# A cluster with gpuagg for the TAP tests: PostgreSQL::Test::Cluster with the tests' settings. The module also has functions that
# read the GPU server's state, request faults of it, and compare answers. The server is the test server, the GPU server over a
# stub of the CUDA run time.
package GpuaggNode;

use strict;
use warnings;
use parent 'PostgreSQL::Test::Cluster';
use Exporter 'import';
use File::Temp ();
use IO::Socket::UNIX;
use PostgreSQL::Test::Utils;
use Session qw(statements);
use Test::More;
use Time::HiRes qw(time usleep);

our @EXPORT = qw(answer answer_and_peak core_query cpu_milliseconds is_right_answer message parallel_settings server_program
	wait_until without_scan);

# The test server's program, which the cluster's user can execute; '' if it was not built.
sub server_program { return $ENV{STUB_SERVER} // '' }

# The processor time that a process has used. Tests compare this time because other load on the machine does not change it.
sub cpu_milliseconds
{
	my ($pid) = @_;
	return (split ' ', slurp_file("/proc/$pid/schedstat"))[0] / 1e6;
}

# Returns a started cluster with the extension in database postgres. Options:
#	conf	lines of postgresql.conf
#	init	[ options of init ]
#	server	1: with the GPU server; the test is skipped if the server was not built
#	cached	1: queries must use the custom scan and the GPU engine, and their columns are cached at once and refreshed by
#			queries only. Implies server.
sub start_new
{
	my ($class, $name, %options) = @_;
	$options{server} //= $options{cached};
	plan skip_all => 'build/test/gpuagg-server is not built' if $options{server} && !-x server_program();
	my $node = $class->new($name);

	$node->init(extra => [], @{ $options{init} // [] });
	# The folder of temporary files may be in memory (pg_memory_folder in test/pg.sh).
	symlink(File::Temp::tempdir('gpuagg.XXXXXX', DIR => $ENV{TEMPORARY}, CLEANUP => 1), $node->data_dir . '/base/pgsql_tmp')
	  if $ENV{TEMPORARY};
	$node->append_conf('postgresql.conf', <<CONF);
shared_preload_libraries = 'gpuagg'
fsync = off
jit = off
max_parallel_workers_per_gather = 0
CONF
	$node->append_conf('postgresql.conf', "gpuagg.server_program = '" . server_program() . "'") if $options{server};
	$node->append_conf('postgresql.conf', <<CONF) if $options{cached};
gpuagg.require = 'require'
gpuagg.engine = 'cuda'
gpuagg.cache = 'eager'
gpuagg.cache_memory = '64MB'
gpuagg.cache_renew = 0
autovacuum = off
CONF
	$node->append_conf('postgresql.conf', $options{conf}) if $options{conf};
	$node->start;
	return $node;
}

# A copy of the template takes an eighth of initdb's time.
sub init
{
	my ($self, @options) = @_;
	my $run = \&PostgreSQL::Test::Utils::system_or_bail;
	no warnings 'redefine';
	local *PostgreSQL::Test::Utils::system_or_bail =
	  sub { $_[0] eq 'initdb' ? $run->('cp', '-a', '--reflink=auto', $ENV{TEMPLATE}, $self->data_dir) : $run->(@_) };

	return $self->SUPER::init(@options);
}

# Runs a script without psql if possible.
sub psql
{
	my ($self, $database, $script, %options) = @_;
	my @statements = grep({ !/^(?:stdout|stderr|on_error_(?:stop|die))$/ } keys %options) ? () : statements($script);
	my $session = @statements && (wantarray || $options{stdout}) ? Session->new($self->host, $self->port, $database) : undef;
	my ($out, $err, $status) = ('', '', 'ok');

	return $self->SUPER::psql($database, $script, %options) if !$session;
	foreach my $statement (@statements)
	{
		my ($rows, $messages);

		($rows, $messages, $status) = $session->run($statement->[0], "psql:<stdin>:$statement->[1]: ");
		$out .= $rows;
		$err .= $messages;
		last if $status eq 'lost' || ($status eq 'error' && ($options{on_error_stop} // 1));
	}
	$session->close;
	chomp($out, $err);
	${ $options{stdout} } = $out if $options{stdout};
	${ $options{stderr} } = $err if $options{stderr};
	die "error running SQL: '$err'\nwith sql '$script'" if $status ne 'ok' && $options{on_error_die};

	my $code = $status eq 'lost' ? 2 : $status eq 'error' && ($options{on_error_stop} // 1) ? 3 : 0;
	return wantarray ? ($code, $out, $err) : $code;
}

# Runs a query until its result is $expected ('t'). The server may not accept connections yet.
sub poll_query_until
{
	my ($self, $database, $query, $expected) = @_;
	my ($out, $err);
	my $reached = wait_until(sub {
		eval { $self->psql($database, $query, stdout => \$out, stderr => \$err) };
		return !$@ && $err eq '' && $out eq ($expected // 't');
	});

	diag("timed out waiting for: $query\nresult: $out\nstderr: $err") if !$reached;
	return $reached;
}

# ---- queries and answers ----

# Settings that make the planner choose a parallel plan with two workers.
sub parallel_settings
{
	return 'SET max_parallel_workers_per_gather = 2; SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0; '
		. 'SET min_parallel_table_scan_size = 0;';
}

# The query without the custom scan: its aggregates are plain aggregates.
sub without_scan
{
	my ($query) = @_;
	return "SET gpuagg.enabled = off; SET gpuagg.require = 'allow'; $query";
}

# The query with core's aggregates in place of the extension's.
sub core_query
{
	my ($query) = @_;
	return without_scan($query =~ s/gpu_(?=\w+\()//gr);
}

# The output of a query, followed by its first error. The loss of the connection is an error, too.
sub answer
{
	my ($node, $query) = @_;
	my ($out, $err);

	$node->psql('postgres', $query, stdout => \$out, stderr => \$err);
	$err =~ s/^psql:.*?: //mg;
	return $out . ($err =~ /^((?:ERROR|FATAL|PANIC): .*|.*(?:server closed the connection|connection to server was lost).*)/m ? $1 : '');
}

# Tests that a query gives the right answer through the custom scan. The reference must not fail. Options:
#	reference	the query to compare with; default: the same query without the custom scan
#	settings	SQL before the query
#	times		number of executions, each of which must give the right answer; default 1
sub is_right_answer
{
	my ($node, $query, $name, %options) = @_;
	my $right = $node->safe_psql('postgres', $options{reference} // without_scan($query));
	my @answers = map { answer($node, ($options{settings} // '') . " $query") } 1 .. $options{times} // 1;
	my ($wrong) = grep { $_ ne $right } @answers;
	local $Test::Builder::Level = $Test::Builder::Level + 1;

	return is($wrong // $right, $right, $name);
}

# Returns checksums of the queries' answers, in a string, and the peak memory (VmHWM) of their session's process in kB.
sub answer_and_peak
{
	my ($node, $settings, @queries) = @_;
	my @lines = split /\n/, $node->safe_psql('postgres', join('', "$settings;",
			map({ " SELECT md5(string_agg(s::text, ' ' ORDER BY s::text)) FROM ($_) s;" } @queries),
			" SELECT (regexp_match(pg_read_file('/proc/self/status'), 'VmHWM:\\s*([0-9]+)'))[1]"));
	my $peak = pop @lines;

	return ("@lines", $peak);
}

# Returns the plan of an execution of the query.
sub explain_analyze
{
	my ($self, $query) = @_;
	return $self->safe_psql('postgres', "EXPLAIN (ANALYZE, VERBOSE, COSTS OFF) $query");
}

# Starts a query in a new session. Returns the session and its process when the query is active.
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

# ---- the GPU server ----

# The value of an expression over the row of the first device in gpuagg_devices().
sub device
{
	my ($self, $expression) = @_;
	return $self->safe_psql('postgres', "SELECT $expression FROM gpuagg_devices() WHERE device = 0");
}

# The value of an expression over all rows of gpuagg_devices().
sub devices
{
	my ($self, $expression) = @_;
	return $self->safe_psql('postgres', "SELECT $expression FROM gpuagg_devices()");
}

# Waits until $holds returns true. Returns false after the timeout, which is longer than any busy machine needs.
sub wait_until
{
	my ($holds) = @_;
	my $since = time;

	until ($holds->())
	{
		return 0 if time - $since > $PostgreSQL::Test::Utils::timeout_default;
		usleep(50_000);
	}
	return 1;
}

# Waits until an expression over the first device has the value.
sub wait_for_device
{
	my ($self, $expression, $value) = @_;

	return wait_until(sub { $self->device($expression) eq $value });
}

# Waits until an expression over all devices has the value.
sub wait_for_devices
{
	my ($self, $expression, $value) = @_;

	return wait_until(sub { $self->devices($expression) eq $value });
}

# Waits for a ready server with another process than $pid. The end of process $pid may not have been noticed yet.
sub wait_for_another_server
{
	my ($self, $pid) = @_;

	return wait_until(
		sub { $self->device('state') eq 'ready' && $self->server_pid != 0 && $self->server_pid != $pid });
}

# Kills the server. Returns its process, for wait_for_another_server.
sub kill_server
{
	my ($self) = @_;
	my $pid = $self->server_pid or die 'no server';

	kill 'KILL', $pid;
	return $pid;
}

# Waits for a ready server. The end of the previous one may not have been noticed yet, but then its socket is closed.
sub wait_until_ready
{
	my ($self) = @_;

	return wait_until(sub { $self->device('state') eq 'ready' && $self->server_pid != 0 });
}

sub fault_file { return $_[0]->data_dir . '/gpuagg.fault' }

# Requests a fault of the test server; test/stub_server/faults.c lists the faults.
sub set_fault
{
	my ($self, $fault) = @_;
	my $file = $self->fault_file;

	append_to_file("$file.new", "$fault\n");
	rename("$file.new", $file);
	return;
}

sub clear_fault
{
	my ($self) = @_;

	unlink $self->fault_file;
	return;
}

sub socket_path { return $_[0]->data_dir . '/pg_stat_tmp/gpuagg.socket' }

# The server's process, from the socket's peer credentials; 0 without a server.
sub server_pid
{
	my ($self) = @_;
	my $peer = IO::Socket::UNIX->new(Peer => $self->socket_path) or return 0;
	return unpack('l', $peer->sockopt(17));	# SO_PEERCRED
}

# The supervisor's process, which is the parent of the server's.
sub supervisor_pid
{
	my ($self) = @_;
	return slurp_file('/proc/' . $self->server_pid . '/stat') =~ /\) \S (\d+) / ? $1 : die 'no supervisor';
}

# Why regression runs on the CPU, in EXPLAIN; undef: it runs on the GPU. From 19 on, core's state of it has values that the GPU does not compute.
sub regression_reason
{
	my ($self) = @_;
	return $self->safe_psql('postgres', 'SHOW server_version_num') < 190000 ? undef :
		'\w+ needs its own transition function, which runs only on the CPU';
}

# The version of the protocol, from src/protocol.h.
sub protocol_version
{
	return slurp_file("$ENV{TOP}/src/protocol.h") =~ /PROTOCOL_VERSION (\d+)/ ? $1 : die 'no version';
}

# The bytes of a message of the protocol.
sub message
{
	my ($type, $body) = @_;
	return pack('L4', 0x47504741, $type, length $body, 0) . $body;
}

1;
