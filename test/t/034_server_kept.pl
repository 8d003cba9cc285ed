# A backend keeps its connection to the GPU server between queries: it holds nothing at the server meanwhile, is noticed when
# it is lost, and is not kept after an error.
use strict;
use warnings;
use GpuaggNode;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(usleep);

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
ok($node->wait_for_devices('sum(sessions)', 0, 10), '... and is no session meanwhile');
is($psql->query($query), '5000|12502500', 'another query') foreach 1 .. 3;
is(sockets($pid) - $before, 1, '... over the same one');
is(scalar(grep { (readlink($_) // '') eq $inode } glob "/proc/$pid/fd/*"), 1, '... the very same');

# another process has the arena meanwhile
is($node->safe_psql('postgres', $query), '5000|12502500', 'another backend');
is($psql->query($query), '5000|12502500', '... and the first one again');

# lost between two queries
kill 'KILL', $node->server_pid;
usleep(100_000);
ok($node->wait_for_devices("bool_and(state = 'ready')", 't', 20), 'another server starts');
like($psql->query($plan), qr/Engine: cuda/, '... and has the next query of a session with a connection to the first one');
is(sockets($pid) - $before, 1, '... over one that is kept in its turn');
is($psql->query($query), '5000|12502500', '... with the right answer');

# scans beside each other
is($psql->query("SELECT sum(s) FROM (SELECT gpu_sum(v) AS s FROM t UNION ALL SELECT gpu_sum(v) FROM t UNION ALL SELECT gpu_sum(v + 1) FROM t) u"), '37512500',
	'several scans');
is(sockets($pid) - $before, 1, '... leave one connection');
is(mapped($pid), 1, '... and one arena');
$psql->quit;
done_testing();
