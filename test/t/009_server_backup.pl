# Backup and rewind tools meet the GPU server's socket in the data directory.
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

sub ready
{
	my ($node) = @_;
	return $node->poll_query_until('postgres', "SELECT count(*) = 2 AND bool_and(state = 'ready') FROM gpuagg_devices()");
}

sub sockets { return grep { -S $_ } glob($_[0]->data_dir . '/*'), glob($_[0]->data_dir . '/*/*') }

# A base backup says nothing, and has no socket.
ok(ready($node), 'the server is ready');
is(scalar(sockets($node)), 1, '... at its socket in the data directory');
my ($out, $err);
my $backup = $node->backup_dir . '/b';
mkdir $node->backup_dir;
ok(IPC::Run::run([ 'pg_basebackup', '-D', $backup, '-h', $node->host, '-p', $node->port, '--checkpoint', 'fast', '--no-sync' ],
	'>', \$out, '2>', \$err), 'pg_basebackup');
is($err, '', '... without a warning');
ok(-d "$backup/pg_stat_tmp" && !-e "$backup/pg_stat_tmp/gpuagg.socket", '... and without the socket');

# A standby has a server of its own.
my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($node, 'b', has_streaming => 1);
$standby->start;
$node->wait_for_catchup($standby);
ok(ready($standby), 'a standby has a server of its own');
is($standby->safe_psql('postgres', "SET gpuagg.engine = 'cuda'; SET gpuagg.require = 'require'; SELECT gpu_sum(i) FROM rows"), '500500',
	'... which runs queries');

# The standby takes over; the old primary is rewound to it while its server runs.
$standby->promote;
$standby->safe_psql('postgres', 'INSERT INTO rows VALUES (5); CHECKPOINT');
$node->safe_psql('postgres', 'INSERT INTO rows VALUES (7)');
$node->stop('fast');
# what a crash would have left
ok(scalar(sockets($standby)) == 1, 'the source has a socket');
ok(IPC::Run::run([ 'pg_rewind', '--target-pgdata', $node->data_dir, '--source-server', $standby->connstr('postgres'), '--no-sync' ],
	'>', \$out, '2>', \$err), 'pg_rewind from a running server') or diag $err;
unlike($err, qr/gpuagg|warning|error/, '... without a complaint');
my $port = $node->port;
$node->append_conf('postgresql.conf', "port = $port\nunix_socket_directories = '" . $node->host . "'\n");
$node->start;
is($node->safe_psql('postgres', 'SELECT sum(i) FROM rows'), '500505', '... and the rewound server starts');
ok(ready($node), '... with a GPU server');

# What a crash leaves does not keep the next server from starting.
$node->stop('immediate');
$node->start;
ok(ready($node), 'a server after a crash');
$node->stop;

# Nor does a copy of the data directory without what is empty in it.
unlink glob($node->data_dir . '/pg_stat_tmp/*');
rmdir $node->data_dir . '/pg_stat_tmp' or die "could not remove pg_stat_tmp: $!";
$node->start;
ok(ready($node), 'a server without the directory of its socket');
$node->stop;
$standby->stop;
done_testing();
