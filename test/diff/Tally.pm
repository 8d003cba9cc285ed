# What the queries were, and which paths of the extension they took: counted, so
# that a test that tries nothing fails.
package Tally;
use strict;
use warnings;

# What the query being made has drawn.
my %drawn;

# feature => number of runs by the custom scan that had an answer, that have one
# of the feature, and of these that returned rows
my ($runs, %answered, %with_rows) = (0);

# path => number of watched runs that took it
my ($watched, %took) = (0);

# The least share of answered runs, in percent, of each feature, and of watched
# runs of each path: about a third of what random queries have.
our (%features, %paths);

# Sets the floors, for tables with pages of a history or for all.
sub expect
{
	my ($pages) = @_;

	%features = ('with rows' => 60);
	%paths = ('custom scan' => 90, $pages ? ('feed heap' => 60) : ());
	return;
}

sub begin_query
{
	%drawn = ();
	return;
}

# Notes a feature of the query being made.
sub draw
{
	$drawn{$_} = 1 foreach @_;
	return;
}

# What the text of a query shows of itself.
my %shown = (
	q{users' aggregates} => qr/\b(?:lossy_sum|null_sum|unsafe_sum|wide_avg|strict_max|bag)\(/,
	'keys that look different' => qr/= ANY \(array_agg/,
	'subqueries that are not reached' => qr/count\(\*\) - count\(\*\)|generate_series\(1, [12]\) i/,
	'subplans' => qr/xid|IN \(SELECT|ANY \(SELECT/,
	'own aggregates' => qr/gpu:/,
	'ordered aggregates' => qr/gpu:\w+\([^()]*(?:\([^()]*\)[^()]*)*ORDER BY/);

sub draw_from
{
	my ($sql) = @_;

	draw(grep { $sql =~ $shown{$_} } keys %shown);
	while ($sql =~ /(?:IN \(|ARRAY\[)([^()\[\]]*)[)\]]/g)
	{
		my $n = 1 + ($1 =~ tr/,//);

		draw('IN of ' . ($n < 10 ? '1 to 9' : $n < 1000 ? '10 to 999' : '1000 and more'));
	}
	return;
}

sub drawn { return sort keys %drawn; }

# A query was answered by the custom scan, with so many rows.
sub answered
{
	my ($rows) = @_;

	$runs++;
	foreach my $feature (keys %drawn, 'all')
	{
		$answered{$feature}++;
		$with_rows{$feature}++ if $rows > 0;
	}
	return;
}

# The paths that a query's plans, as auto_explain wrote them, say it took.
sub watch
{
	my ($text) = @_;
	my %seen;

	return if $text !~ /^\w+:  duration: .* plan:/m;
	$watched++;
	$seen{'custom scan'} = $text =~ /Custom Scan \(GpuAgg\)/;
	$seen{'no custom scan'} = !$seen{'custom scan'};
	$seen{"strategy $1"} = 1 while $text =~ /^ *Strategy: (\w+)(?!.*\(planned\))/mg;
	$seen{"engine $1"} = 1 while $text =~ /^ *Engine: (\w+)/mg;
	$seen{'feed heap'} = 1 if $text =~ /^ *Feed: heap/m;
	$seen{'feed tuples'} = 1 if $text =~ /^ *Feed: tuples/m;
	$seen{'spilled'} = 1 if $text =~ /^ *Spilled: [1-9]/m;
	$seen{'parallel'} = 1 if $text =~ /^ *Participants: (?:[2-9]|\d\d)/m;
	$seen{'workers launched'} = 1 if $text =~ /^ *Workers Launched: [1-9]/m;
	$seen{'several batches'} = 1 if $text =~ /^ *Batches: (?:[2-9]|\d\d)/m;
	$seen{'rescans'} = 1 if $text =~ /Custom Scan \(GpuAgg\).*loops=(?:[2-9]|\d\d)/;
	foreach my $path (keys %seen)
	{
		$took{$path}++ if $seen{$path};
	}
	return;
}

sub percent
{
	my ($part, $whole) = @_;

	return $whole ? 100 * $part / $whole : 0;
}

# Prints the shares; returns the names of those that are too small.  With few
# queries a share says nothing: one is judged where its floor means 10 runs, and one
# of 0 where the share that was seen when floors were set (3 times as much) does.
sub report
{
	my (@low);
	my $line = sub {
		my ($name, $n, $whole, $floor, $more) = @_;
		my $judged = defined $floor && $whole * $floor * ($n > 0 ? 1 : 3) >= 1000;
		my $enough = !$judged || percent($n, $whole) >= $floor;

		push @low, $name if !$enough;
		printf("#   %-28s %6d  %5.1f %%%s%s%s\n", $name, $n, percent($n, $whole),
			defined $floor ? sprintf('  at least %g %%', $floor) : '',
			$more, $enough ? '' : '  TOO FEW');
	};
	my %all = map { $_ => 1 } keys %answered, keys %features;

	delete $all{all};
	print "# $runs answers of the custom scan:\n";
	$line->('with rows', $with_rows{all} // 0, $runs, $features{'with rows'}, '');
	delete $all{'with rows'};
	foreach my $feature (sort keys %all)
	{
		my $n = $answered{$feature} // 0;

		$line->($feature, $n, $runs, $features{$feature}, sprintf('  (%.0f %% with rows)', percent($with_rows{$feature} // 0, $n)));
	}
	print "# $watched runs whose plans were seen:\n";
	$line->($_, $took{$_} // 0, $watched, $paths{$_}, '')
	  foreach sort keys %{ { map { $_ => 1 } keys %took, keys %paths } };
	return @low;
}

1;
