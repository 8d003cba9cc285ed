# The planner hook for Citus, in queries that a user writes by hand over local tables. The hook is active if a setting of Citus exists.
# It removes marks (conditions that carry settings to the workers) and calls of gpuagg_merge from such queries.
use strict;
use warnings;
use GpuaggNode;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = GpuaggNode->start_new('main', conf => "citus.shard_count = 32\n");
$node->safe_psql('postgres', 'CREATE TABLE t AS SELECT i, i % 3 AS k FROM generate_series(1, 1000) i; ANALYZE t');

# A condition with a mark, which is always true.
sub mark { return "concat('gpuagg.require=$_[0]'::text) IS NOT NULL" }

sub count_where
{
	return $node->safe_psql('postgres', "SELECT count(*) FILTER (WHERE $_[0]) FROM t");
}

is(count_where(mark('allow')), '1000', 'a mark is true for all rows');
is(count_where(mark('allow') . ' AND ' . mark('require')), '1000', '... two marks');
is(count_where("i < 10 AND " . mark('allow') . ' AND ' . mark('require')), '9', '... two marks and a condition');
is(count_where("i < 10 AND k = 1 AND " . mark('require')), '3', '... a mark and two conditions');
is(count_where("i < 10 OR " . mark('require')), '1000', '... a mark in OR');
is(count_where("NOT (" . mark('require') . ')'), '0', '... NOT of a mark is false');
is(count_where("concat('gpuagg.require=allow'::text) IS NULL"), '0', '... IS NULL of a mark is false');
like($node->safe_psql('postgres', "EXPLAIN SELECT k, sum(i) FILTER (WHERE " . mark('require') . ") FROM t GROUP BY k"), qr/GpuAgg/,
	'a query of core\'s aggregates with a mark uses the custom scan');

# A query that packs, merges and finishes partial states.
sub merge_query
{
	my ($aggregate, $arguments, $result) = @_;
	return "SELECT gpuagg_finish(gpuagg_merge(gpuagg_pack('$aggregate'::regprocedure, $arguments)), '$aggregate'::regprocedure, NULL::$result) FROM t";
}

is($node->safe_psql('postgres', merge_query('gpu_sum(int8)', 'i::int8', 'numeric')), '500500', 'gpuagg_merge gives the right answer');
is($node->safe_psql('postgres', merge_query('gpu_argmax(anyelement, anycompatible)', "'n' || i, i", 'text')), 'n1000', '... also for a polymorphic aggregate');
for (['gpu_stddev(int4)', 'i', 'int4'], ['gpu_approx_count_distinct("any")', 'i', 'text'], ['gpu_sum(int8)', 'i::int8', 'int8[]'],
	['gpu_argmax(anyelement, anycompatible)', 'i, i', 'text'], ['gpu_argmin(anyelement, anycompatible)', 'i::text, i', 'int8'])
{
	my ($status, $out, $err) = $node->psql('postgres', merge_query(@$_));
	like($err, qr/result of the aggregate is of type \w+, not/, "the result of $_->[0] as $_->[2] is an error");
}
my ($status, $out, $err) = $node->psql('postgres', merge_query('gpu_argmax(anyelement, anycompatible)', "'x', i", 'text'));
like($err, qr/arguments do not match those of aggregate gpu_argmax/, 'an argument that is a literal without a type is an error');
done_testing();
