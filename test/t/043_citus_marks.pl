# What the planner's hook for Citus makes of queries that users write by hand.  The hook is there with Citus's setting, and
# takes marks and calls of gpuagg_merge away from queries over tables that are not Citus's.
use strict;
use warnings;
use lib "$ENV{TOP}/lib";
use GpuaggNode;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = GpuaggNode->start_new('main', conf => "citus.shard_count = 32\n");
$node->safe_psql('postgres', 'CREATE TABLE t AS SELECT i, i % 3 AS k FROM generate_series(1, 1000) i; ANALYZE t');

sub mark { return "concat('gpuagg.require=$_[0]'::text) IS NOT NULL" }

sub count_where
{
	return $node->safe_psql('postgres', "SELECT count(*) FILTER (WHERE $_[0]) FROM t");
}

is(count_where(mark('allow')), '1000', 'a mark');
is(count_where(mark('allow') . ' AND ' . mark('require')), '1000', 'two, and nothing else');
is(count_where("i < 10 AND " . mark('allow') . ' AND ' . mark('require')), '9', 'two and a condition');
is(count_where("i < 10 AND k = 1 AND " . mark('require')), '3', 'two conditions');
is(count_where("i < 10 OR " . mark('require')), '1000', 'OR');
is(count_where("NOT (" . mark('require') . ')'), '0', 'NOT');
is(count_where("concat('gpuagg.require=allow'::text) IS NULL"), '0', 'IS NULL');
like($node->safe_psql('postgres', "EXPLAIN SELECT k, sum(i) FILTER (WHERE " . mark('require') . ") FROM t GROUP BY k"), qr/GpuAgg/,
	'a mark is for the custom scan');

sub parts
{
	my ($aggregate, $arguments, $result) = @_;
	return "SELECT gpuagg_finish(gpuagg_merge(gpuagg_pack('$aggregate'::regprocedure, $arguments)), '$aggregate'::regprocedure, NULL::$result) FROM t";
}

is($node->safe_psql('postgres', parts('gpu_sum(int8)', 'i::int8', 'numeric')), '500500', 'parts');
is($node->safe_psql('postgres', parts('gpu_argmax(anyelement, anycompatible)', "'n' || i, i", 'text')), 'n1000', 'parts of any type');
for (['gpu_stddev(int4)', 'i', 'int4'], ['gpu_approx_count_distinct("any")', 'i', 'text'], ['gpu_sum(int8)', 'i::int8', 'int8[]'],
	['gpu_argmax(anyelement, anycompatible)', 'i, i', 'text'], ['gpu_argmin(anyelement, anycompatible)', 'i::text, i', 'int8'])
{
	my ($status, $out, $err) = $node->psql('postgres', parts(@$_));
	like($err, qr/result of the aggregate is of type \w+, not/, "$_->[0] is no $_->[2]");
}
my ($status, $out, $err) = $node->psql('postgres', parts('gpu_argmax(anyelement, anycompatible)', "'x', i", 'text'));
like($err, qr/arguments do not match those of aggregate gpu_argmax/, 'a literal without a type');
done_testing();
