# Tests of queries over rows that may be cached on the GPU server's devices. They compare answers with core's, and check whether
# the query read the cached copies ("Resident Rows" of EXPLAIN).
package Resident;
use strict;
use warnings;
use Exporter 'import';
use GpuaggNode;
use Test::More;

our @EXPORT = qw(core_answer is_core_answer is_resident our_answer plan_and_errors);
our $node;						# the cluster of all queries; the test sets it

# The answer of core's plans with core's aggregates.
sub core_answer
{
	my ($query) = @_;

	$query =~ s/gpu_median\(((?:[^()]|\([^()]*\))*)\)/percentile_cont(0.5) WITHIN GROUP (ORDER BY $1)/g;
	return answer($node, core_query($query));
}

sub our_answer { return answer($node, $_[0]) }

# Tests that the query's answer is core's.
sub is_core_answer
{
	my ($query, $name) = @_;
	local $Test::Builder::Level = $Test::Builder::Level + 1;

	return is(our_answer($query), core_answer($query), $name // $query);
}

# The plan of an execution of the query, followed by its messages.
sub plan_and_errors
{
	my ($query) = @_;
	my ($out, $err);

	$node->psql('postgres', "EXPLAIN (ANALYZE, VERBOSE, COSTS OFF, TIMING OFF, SUMMARY OFF) $query", stdout => \$out, stderr => \$err);
	return $out . $err;
}

# Tests that the query's answer is core's, and that it read rows from the device. With $reason, tests instead that it read no rows
# from the device, for a reason that matches. Returns the plan.
sub is_resident
{
	my ($query, $reason) = @_;
	local $Test::Builder::Level = $Test::Builder::Level + 1;

	is_core_answer($query);
	my $plan = plan_and_errors($query);
	like($plan, defined $reason ? qr/Resident Rows: none: $reason|Engine: cpu \($reason|cuda failed: $reason/ : qr/Resident Rows: [1-9]/,
		defined $reason ? "... not from the device: $reason" : '... from the device');
	return $plan;
}

1;
