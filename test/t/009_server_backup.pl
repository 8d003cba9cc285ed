# The GPU server's socket is in the data directory. pg_basebackup and pg_rewind must not stumble over it, and a socket that a crash
# left, or a missing directory, must not keep the next server from starting.
use strict;
use warnings;
use GpuaggNode;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = GpuaggNode->start_new('main', init => [ allows_streaming => 1 ], server => 1, conf => <<CONF);
wal_log_hints = on
wal_keep_size = '256MB'
CONF
$node->safe_psql('postgres', 'CREATE TABLE rows AS SELECT i FROM generate_series(1, 1000) i');

sub wait_for_both_devices
{
	my ($node) = @_;
	return $node->poll_query_until('postgres', "SELECT count(*) = 2 AND bool_and(state = 'ready') FROM gpuagg_devices()");
}

sub sockets { return grep { -S $_ } glob($_[0]->data_dir . '/*'), glob($_[0]->data_dir . '/*/*') }

# A base backup succeeds without a warning, and contains no socket.
ok(wait_for_both_devices($node), 'the server is ready');
is(scalar(sockets($node)), 1, '... and its socket is in the data directory');
my ($out, $err);
my $backup = $node->backup_dir . '/b';
mkdir $node->backup_dir;
ok(IPC::Run::run([ 'pg_basebackup', '-D', $backup, '-h', $node->host, '-p', $node->port, '--checkpoint', 'fast', '--no-sync' ],
	'>', \$out, '2>', \$err), 'pg_basebackup succeeds');
is($err, '', '... without a warning');
ok(-d "$backup/pg_stat_tmp" && !-e "$backup/pg_stat_tmp/gpuagg.socket", '... and without the socket');

# A standby has its own server.
my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($node, 'b', has_streaming => 1);
$standby->start;
$node->wait_for_catchup($standby);
ok(wait_for_both_devices($standby), 'a standby has its own server');
is($standby->safe_psql('postgres', "SET gpuagg.engine = 'cuda'; SET gpuagg.require = 'require'; SELECT gpu_sum(i) FROM rows"), '500500',
	'... which executes queries');

# The standby is promoted, and the old primary is rewound to it while the standby's server runs.
$standby->promote;
$standby->safe_psql('postgres', 'INSERT INTO rows VALUES (5); CHECKPOINT');
$node->safe_psql('postgres', 'INSERT INTO rows VALUES (7)');
$node->stop('fast');
ok(scalar(sockets($standby)) == 1, 'the source of pg_rewind has a socket');
ok(IPC::Run::run([ 'pg_rewind', '--target-pgdata', $node->data_dir, '--source-server', $standby->connstr('postgres'), '--no-sync' ],
	'>', \$out, '2>', \$err), 'pg_rewind from a running cluster succeeds') or diag $err;
unlike($err, qr/gpuagg|warning|error/, '... without a warning');
my $port = $node->port;
$node->append_conf('postgresql.conf', "port = $port\nunix_socket_directories = '" . $node->host . "'\n");
$node->start;
is($node->safe_psql('postgres', 'SELECT sum(i) FROM rows'), '500505', '... and the rewound cluster starts');
ok(wait_for_both_devices($node), '... with a GPU server');

# A crash leaves the socket.
$node->stop('immediate');
$node->start;
ok(wait_for_both_devices($node), 'a GPU server starts after a crash');
$node->stop;

# A copy of the data directory may lack empty directories.
unlink glob($node->data_dir . '/pg_stat_tmp/*');
rmdir $node->data_dir . '/pg_stat_tmp' or die "could not remove pg_stat_tmp: $!";
$node->start;
ok(wait_for_both_devices($node), 'a GPU server starts without the directory of its socket');
$node->stop;
$standby->stop;
done_testing();
