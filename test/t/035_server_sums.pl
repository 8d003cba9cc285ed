# What EXPLAIN ANALYZE says of several engines in one scan is the sum of all: grouping sets, and DISTINCT.
use strict;
use warnings;
use GpuaggNode;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = GpuaggNode->start_new('main', server => 1, conf => <<CONF);
gpuagg.require = 'require'
gpuagg.engine = 'cuda'
gpuagg.cache = off
max_parallel_workers_per_gather = 0
CONF
# in some batches there is a numeric that the GPU cannot hold
$node->safe_psql('postgres', <<SQL);
CREATE TABLE odd (k int, b int, t text, n numeric(12, 2));
INSERT INTO odd SELECT i % 100, i % 7, (i % 37)::text, CASE WHEN i % 40000 = 1 THEN 'NaN'::numeric ELSE i END FROM generate_series(1, 100000) i;
ANALYZE odd;
SQL
ok($node->wait_until_ready, 'the server starts with the cluster');

# Properties of the custom scan.
sub said
{
	my ($query) = @_;
	my $text = $node->safe_psql('postgres', "EXPLAIN (ANALYZE, COSTS OFF, FORMAT JSON) $query");
	my %said;

	$said{$1} = $2 while $text =~ /"([A-Z][A-Za-z ]+)": "?([\d.]+|cuda)"?,?$/mg;
	return \%said;
}
my $k = said('SELECT k, gpu_sum(n) FROM odd GROUP BY k');
my $b = said('SELECT b, gpu_sum(n) FROM odd GROUP BY b');
my $both = said('SELECT k, b, gpu_sum(n) FROM odd GROUP BY GROUPING SETS (k, b)');

is($_->{Engine}, 'cuda', 'engine') foreach ($k, $b, $both);
cmp_ok($k->{'Rows on CPU'}, '>', 0, 'rows of one set on the CPU');
is($both->{'Rows on CPU'}, $k->{'Rows on CPU'} + $b->{'Rows on CPU'}, '... and of two');
is($both->{'Input Rows'}, 100000, 'all read the same rows');
is($both->{Groups}, $k->{Groups} + $b->{Groups}, 'groups of both');
cmp_ok($both->{'Server Time'}, '>', 0, 'their time');
my $sets = said('SELECT k, gpu_count(DISTINCT n), gpu_count(DISTINCT t), gpu_sum(n) FROM odd GROUP BY k');
cmp_ok($sets->{'Rows on CPU'}, '>', 0, 'rows of sets of distinct values on the CPU');
cmp_ok($sets->{$_}, '>', 0, "$_ of their engines") foreach ('Server Time', 'Fetch Time', 'Finish Time');
is($sets->{'Input Rows'}, 100000, 'rows are those of the scan');
is($sets->{Groups}, 100, '... and so are groups');
$node->stop;
done_testing();
