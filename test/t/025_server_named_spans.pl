# Spans that are named by their ids together with what else rows on the GPU can need: dictionaries that grow, the order
# of the table, limits; and what another server, or one with less memory, makes of them.
use strict;
use warnings;
use GpuaggNode;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = GpuaggNode->start_new('main', server => 1, conf => <<CONF);
gpuagg.require = 'require'
gpuagg.engine = 'cuda'
gpuagg.cache = 'eager'
gpuagg.cache_memory = '64MB'
gpuagg.cache_renew = 0
autovacuum = off
CONF

$node->safe_psql('postgres', <<SQL);
CREATE TABLE t (k int, s smallint, i int, b bool, txt text, seq int) WITH (fillfactor = 20);
INSERT INTO t SELECT i % 5000, i % 300, i * 7919 % 10007 - 5000, i * 7919 % 3 > 0, 't' || i % 23, i FROM generate_series(1, 60000) i;
VACUUM FREEZE ANALYZE t;
SELECT gpuagg_cache_prewarm('t');
SQL
ok($node->wait_until_ready, 'the server starts');

sub explain { return $node->safe_psql('postgres', "EXPLAIN (ANALYZE, VERBOSE, COSTS OFF) $_[0]") }

# Several times: ranges are looked at, their span is named with its list, and without.
sub same
{
	my ($query, $name) = @_;
	my $right = $node->safe_psql('postgres', "SET gpuagg.enabled = off; SET gpuagg.require = 'allow'; $query");

	is(join('|', map { $node->safe_psql('postgres', $query) eq $right } 1 .. 4), '1|1|1|1', "$name: $query");
	like(explain($query), qr/Resident Rows: [1-9]/, '... on the GPU');
	return;
}

my @queries = (
	'SELECT txt, gpu_count(*), gpu_sum(i) FROM t GROUP BY txt ORDER BY txt',
	"SELECT k % 7, gpu_count(txt) FROM t WHERE txt <> 't3' GROUP BY 1 ORDER BY 1",
	'SELECT gpu_longest_run(b ORDER BY s, seq), gpu_max_subarray_sum(i ORDER BY s, seq) FROM t',
	'SELECT txt, gpu_longest_run(b ORDER BY s) FROM t GROUP BY txt ORDER BY txt',
	'SELECT k, gpu_count(*) AS n, gpu_sum(i) FROM t GROUP BY k ORDER BY n DESC, k LIMIT 10',
	'SELECT k, gpu_sum(i) AS n FROM t GROUP BY k ORDER BY n, k LIMIT 10',
	"SELECT k, gpu_max(i) FILTER (WHERE txt = 't5') AS n FROM t GROUP BY k ORDER BY n DESC NULLS LAST, k LIMIT 10");

same($_, 'at first') for @queries;
# another session than this has added to the dictionary
$node->safe_psql('postgres', "UPDATE t SET txt = 'new' || seq % 5 WHERE seq % 1000 = 0; VACUUM FREEZE t; SELECT gpuagg_cache_prewarm('t')");
same($_, 'more texts') for @queries[0, 1];
# span and range by turns
$node->safe_psql('postgres', 'UPDATE t SET i = i + 1 WHERE seq = 30000');
same($_, 'some rows by the feed') for @queries[0, 1, 4];
$node->safe_psql('postgres', "VACUUM FREEZE t; SELECT gpuagg_cache_prewarm('t')");

# few groups are fetched
# (counts that are 0 are fetched, too)
my $all = 'SELECT k, gpu_count(*) FILTER (WHERE seq < k * 10) AS n FROM t GROUP BY k';
same("$all ORDER BY n DESC, k LIMIT 10", 'a limit');
my ($bytes) = explain($all) =~ /From Device: (\d+) kB/;
my ($few) = explain("$all ORDER BY n DESC LIMIT 10") =~ /From Device: (\d+) kB/;
cmp_ok($few * 3, '<', $bytes, "a limit leaves groups out: $few kB of $bytes");
like(explain("$all ORDER BY n DESC LIMIT 10"), qr/Groups Kept: 10\b/, '... and EXPLAIN tells how many are kept');

# a list and a dictionary that another server had
my $killed = $node->kill_server;
$node->safe_psql('postgres', "SET gpuagg.engine = 'auto'; SELECT gpu_count(*) FROM t");
ok($node->wait_for_another_server($killed), 'another server starts');
same($_, 'another server') for @queries;

done_testing();
