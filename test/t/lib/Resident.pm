# Queries over rows of which the GPU server may have copies: answers of the custom scan beside core's, and where the rows were.
package Resident;
use strict;
use warnings;
use Exporter 'import';
use Test::More;

our @EXPORT = qw(core ours seen resident);
our $node;						# to be set: the node that all of them ask

# What a query prints, and its first error.
sub answer
{
	my ($query) = @_;
	my ($out, $err);

	$node->psql('postgres', $query, stdout => \$out, stderr => \$err);
	$err =~ s/^psql:.*?: //mg;
	return $out . ($err =~ /^(ERROR: .*)/m ? $1 : '');
}

# By core's plans and core's aggregates.
sub core
{
	my ($query) = @_;

	$query =~ s/gpu_median\(((?:[^()]|\([^()]*\))*)\)/percentile_cont(0.5) WITHIN GROUP (ORDER BY $1)/g;
	$query =~ s/gpu_(?=\w+\()//g;
	return answer("SET gpuagg.enabled = off; SET gpuagg.require = 'allow'; $query");
}

sub ours { return answer($_[0]) }

# The plan of a run of the query, and errors.
sub seen
{
	my ($query) = @_;
	my ($out, $err);

	$node->psql('postgres', "EXPLAIN (ANALYZE, VERBOSE, COSTS OFF, TIMING OFF, SUMMARY OFF) $query", stdout => \$out, stderr => \$err);
	return $out . $err;
}

# The query's answer is core's, and its rows are on the GPU, or are not with a reason like this.
sub resident
{
	my ($query, $why) = @_;
	my $seen;
	local $Test::Builder::Level = $Test::Builder::Level + 1;

	is(ours($query), core($query), $query);
	$seen = seen($query);
	like($seen, defined $why ? qr/Resident Rows: none: $why|cuda failed: $why/ : qr/Resident Rows: [1-9]/, '... ' . ($why // 'on the GPU'));
	return $seen;
}

1;
