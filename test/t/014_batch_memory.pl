# A query over long values needs little more memory than core, however many rows a batch may have, because a batch is limited by
# bytes too. The measure is the peak memory (VmHWM) of the session's process. Each query has its own session.
use strict;
use warnings;
use GpuaggNode;
use PostgreSQL::Test::Utils;
use Test::More;

plan skip_all => 'no /proc/self/status' if !-e '/proc/self/status';

# The memory that a query may use beyond core's, in kB, for some values and for the arrays of a batch.
my $margin = 24 * 1024;

my $node = GpuaggNode->start_new('main', conf => <<CONF);
work_mem = '1MB'
gpuagg.engine = 'cpu'
CONF
# 120 values of 512 kB. A batch of all of them would need more than twice the margin.
$node->safe_psql('postgres', <<SQL);
CREATE TABLE wide AS SELECT repeat(md5((i % 50)::text), 16384) AS k, i % 7 AS g FROM generate_series(1, 120) i;
ANALYZE wide;
SQL


my $inline = "(SELECT k || '' AS k, g FROM wide OFFSET 0) s";

# [name, query with @ before aggregates that core has too, settings]
my @cases = (
	[ 'keys out of line', 'SELECT left(k, 5) AS l, @count(*) FROM wide GROUP BY k' ],
	[ 'keys of a subquery', "SELECT left(k, 5) AS l, \@count(*) FROM $inline GROUP BY k" ],
	[ 'large batches', "SELECT left(k, 5) AS l, \@count(*) FROM $inline GROUP BY k", 'SET gpuagg.batch_rows = 65536;' ],
	[ 'two keys', 'SELECT left(k, 5) AS l, @count(*) FROM wide GROUP BY k, g' ],
	[ 'arguments', "SELECT g, left(\@max(k), 3) AS l, \@count(*) FROM wide GROUP BY g" ],
	[ 'computed arguments', "SELECT g, left(\@max(k || ''), 3) AS l FROM wide GROUP BY g" ],
	[ 'with string_agg', "SELECT left(k, 3) AS l, string_agg(left(k, 3), ','), \@count(*) FROM wide GROUP BY k" ],
	[ 'conditions', "SELECT g, \@count(*) FROM wide WHERE upper(k) LIKE '%AB%' GROUP BY g" ],
	[ 'values of extremes', "SELECT g, left(gpu_argmax(k, g), 3) AS l FROM wide GROUP BY g" ],
	[ 'partitioned', "SELECT left(k, 5) AS l, \@count(*) FROM $inline GROUP BY k", "SET gpuagg.strategy = 'sort';" ],
	[ 'sorted by the feed', "SELECT left(k, 5) AS l, gpu_longest_run(g > 3 ORDER BY g) FROM wide GROUP BY k" ],
	[ 'sorted by the feed, from a subquery', "SELECT left(k, 5) AS l, gpu_longest_run(g > 3 ORDER BY g) FROM $inline GROUP BY k" ]);

foreach my $case (@cases)
{
	my ($name, $query, $settings) = (@$case, '');
	my ($expected, $core) = answer_and_peak($node, 'SET gpuagg.enabled = off', $query =~ s/@//gr);

	foreach my $feed ('auto', 'tuples')
	{
		my ($answer, $memory) = answer_and_peak($node, "$settings SET gpuagg.feed = '$feed'; SET gpuagg.require = 'require'", $query =~ s/@/gpu_/gr);

		is($answer, $expected, "$name, feed $feed: the answer is core's");
		cmp_ok($memory, '<', $core + $margin, "$name, feed $feed: the peak memory is near core's, in kB");
	}
}
$node->stop;
done_testing();
