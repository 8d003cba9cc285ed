# Long values do not take more memory than core needs for the same query, however many
# rows a batch may have: batches end by bytes.  Measured as the most memory that the
# session's process ever had (VmHWM), each query in a session of its own.
use strict;
use warnings;
use GpuaggNode;
use PostgreSQL::Test::Utils;
use Test::More;

plan skip_all => 'no /proc/self/status' if !-e '/proc/self/status';

# What a query may take beyond core, in kB: some values, and the arrays of a batch.
my $margin = 24 * 1024;

my $node = GpuaggNode->start_new('main', conf => <<CONF);
work_mem = '1MB'
gpuagg.engine = 'cpu'
CONF
# 120 values of 512 kB, which a batch would hold together: more than twice the margin
$node->safe_psql('postgres', <<SQL);
CREATE TABLE wide AS SELECT repeat(md5((i % 50)::text), 16384) AS k, i % 7 AS g FROM generate_series(1, 120) i;
ANALYZE wide;
SQL

# The answer to a query, and VmHWM of its session in kB.
sub run_query
{
	my ($settings, $query) = @_;
	my $out = $node->safe_psql('postgres', "$settings SELECT md5(string_agg(s::text, ' ' ORDER BY s::text)) FROM ($query) s;"
			. " SELECT (regexp_match(pg_read_file('/proc/self/status'), 'VmHWM:\\s*([0-9]+)'))[1]");
	my ($answer, $memory) = split /\n/, $out;
	return ($answer, $memory);
}

my $inline = "(SELECT k || '' AS k, g FROM wide OFFSET 0) s";

# [name, query with @ before aggregates, settings]
my @cases = (
	[ 'keys out of line', 'SELECT left(k, 5) AS l, @count(*) FROM wide GROUP BY k' ],
	[ 'keys of a subquery', "SELECT left(k, 5) AS l, \@count(*) FROM $inline GROUP BY k" ],
	[ 'large batches', "SELECT left(k, 5) AS l, \@count(*) FROM $inline GROUP BY k", 'SET gpuagg.batch_rows = 65536;' ],
	[ 'two keys', 'SELECT left(k, 5) AS l, @count(*) FROM wide GROUP BY k, g' ],
	[ 'arguments', "SELECT g, left(\@max(k), 3) AS l, \@count(*) FROM wide GROUP BY g" ],
	[ 'computed arguments', "SELECT g, left(\@max(k || ''), 3) AS l FROM wide GROUP BY g" ],
	[ 'beside string_agg', "SELECT left(k, 3) AS l, string_agg(left(k, 3), ','), \@count(*) FROM wide GROUP BY k" ],
	[ 'conditions', "SELECT g, \@count(*) FROM wide WHERE upper(k) LIKE '%AB%' GROUP BY g" ],
	[ 'values of extremes', "SELECT g, left(gpu_argmax(k, g), 3) AS l FROM wide GROUP BY g" ],
	[ 'partitioned', "SELECT left(k, 5) AS l, \@count(*) FROM $inline GROUP BY k", "SET gpuagg.strategy = 'sort';" ],
	[ 'sorted by the feed', "SELECT left(k, 5) AS l, gpu_longest_run(g > 3 ORDER BY g) FROM wide GROUP BY k" ],
	[ 'sorted by the feed, from a subquery', "SELECT left(k, 5) AS l, gpu_longest_run(g > 3 ORDER BY g) FROM $inline GROUP BY k" ]);

foreach my $case (@cases)
{
	my ($name, $query, $settings) = (@$case, '');
	my ($expected, $core) = run_query('SET gpuagg.enabled = off;', $query =~ s/@//gr);

	foreach my $feed ('auto', 'tuples')
	{
		my ($answer, $memory) = run_query("$settings SET gpuagg.feed = '$feed'; SET gpuagg.require = 'require';", $query =~ s/@/gpu_/gr);

		is($answer, $expected, "$name, feed $feed: answer");
		cmp_ok($memory, '<', $core + $margin, "$name, feed $feed: kB of memory");
	}
}
$node->stop;
done_testing();
