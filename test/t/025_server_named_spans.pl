# Spans that the backend refers to by their ids, in queries that also need dictionaries, the order of rows, or a LIMIT. Dictionaries
# grow, some rows come from the heap, and the server is replaced. The reference is the answer of the plain aggregates.
use strict;
use warnings;
use GpuaggNode;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = GpuaggNode->start_new('main', cached => 1);

$node->safe_psql('postgres', <<SQL);
CREATE TABLE t (k int, s smallint, i int, b bool, txt text, seq int) WITH (fillfactor = 20);
INSERT INTO t SELECT i % 5000, i % 300, i * 7919 % 10007 - 5000, i * 7919 % 3 > 0, 't' || i % 23, i FROM generate_series(1, 60000) i;
VACUUM FREEZE ANALYZE t;
SELECT gpuagg_cache_prewarm('t');
SQL
ok($node->wait_until_ready, 'the server starts');

# Tests the query's answer, and that its rows come from the device. It runs four times: the first execution proves ranges, the second
# one sends the span with its list of ranges, the next ones send the span's id only.
sub check_query
{
	my ($query, $name) = @_;

	is_right_answer($node, $query, "$name: $query", times => 4);
	like($node->explain_analyze($query), qr/Resident Rows: [1-9]/, '... from the device');
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

check_query($_, 'at first') for @queries;
# another session has added values to the dictionary
$node->safe_psql('postgres', "UPDATE t SET txt = 'new' || seq % 5 WHERE seq % 1000 = 0; VACUUM FREEZE t; SELECT gpuagg_cache_prewarm('t')");
check_query($_, 'with more texts') for @queries[0, 1];
# a changed row splits the span
$node->safe_psql('postgres', 'UPDATE t SET i = i + 1 WHERE seq = 30000');
check_query($_, 'with some rows from the heap') for @queries[0, 1, 4];
$node->safe_psql('postgres', "VACUUM FREEZE t; SELECT gpuagg_cache_prewarm('t')");

# ---- a LIMIT: only few groups are fetched ----

my $all = 'SELECT k, gpu_count(*) FILTER (WHERE seq < k * 10) AS n FROM t GROUP BY k';
check_query("$all ORDER BY n DESC, k LIMIT 10", 'with a LIMIT');
my ($bytes) = $node->explain_analyze($all) =~ /From Device: (\d+) kB/;
my ($few) = $node->explain_analyze("$all ORDER BY n DESC LIMIT 10") =~ /From Device: (\d+) kB/;
cmp_ok($few * 3, '<', $bytes, "with a LIMIT fewer groups are fetched: $few kB of $bytes");
like($node->explain_analyze("$all ORDER BY n DESC LIMIT 10"), qr/Groups Kept: 10\b/, '... and EXPLAIN shows how many are kept');

# ---- another server, which does not have the spans and dictionaries ----
my $killed = $node->kill_server;
$node->safe_psql('postgres', "SET gpuagg.engine = 'auto'; SELECT gpu_count(*) FROM t");
ok($node->wait_for_another_server($killed), 'another server starts');
check_query($_, 'with another server') for @queries;

done_testing();
