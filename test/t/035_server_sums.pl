# EXPLAIN ANALYZE of a composite engine (grouping sets, DISTINCT) prints the sums of its engines' counters and times.
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
# some batches have a numeric that the GPU cannot represent
$node->safe_psql('postgres', <<SQL);
CREATE TABLE odd (k int, b int, t text, n numeric(12, 2));
INSERT INTO odd SELECT i % 100, i % 7, (i % 37)::text, CASE WHEN i % 40000 = 1 THEN 'NaN'::numeric ELSE i END FROM generate_series(1, 100000) i;
ANALYZE odd;
SQL
ok($node->wait_until_ready, 'the server starts with the cluster');

# Returns the properties of the plan that EXPLAIN ANALYZE prints, by name.
sub plan_properties
{
	my ($query) = @_;
	my $text = $node->safe_psql('postgres', "EXPLAIN (ANALYZE, COSTS OFF, FORMAT JSON) $query");
	my %properties;

	$properties{$1} = $2 while $text =~ /"([A-Z][A-Za-z ]+)": "?([\d.]+|cuda)"?,?$/mg;
	return \%properties;
}
my $k = plan_properties('SELECT k, gpu_sum(n) FROM odd GROUP BY k');
my $b = plan_properties('SELECT b, gpu_sum(n) FROM odd GROUP BY b');
my $both = plan_properties('SELECT k, b, gpu_sum(n) FROM odd GROUP BY GROUPING SETS (k, b)');

is($_->{Engine}, 'cuda', 'the engine is cuda') foreach ($k, $b, $both);
cmp_ok($k->{'Rows on CPU'}, '>', 0, 'one grouping set has rows on the CPU');
is($both->{'Rows on CPU'}, $k->{'Rows on CPU'} + $b->{'Rows on CPU'}, '... two grouping sets have the sum of both');
is($both->{'Input Rows'}, 100000, '... input rows are counted once');
is($both->{Groups}, $k->{Groups} + $b->{Groups}, '... groups are the sum');
cmp_ok($both->{'Server Time'}, '>', 0, '... and there is a server time');
# the GPU finds the distinct values, and the CPU aggregates them
my $sets = plan_properties('SELECT k, gpu_argmax(DISTINCT b, k), gpu_sum(n) FROM odd GROUP BY k');
cmp_ok($sets->{$_}, '>', 0, "aggregates of distinct values have a $_") foreach ('Server Time', 'Finish Time');
is($sets->{'Input Rows'}, 100000, '... input rows are those of the scan');
is($sets->{Groups}, 100, '... groups are those of the scan');
$node->stop;
done_testing();
