# Counts the features of queries, and the paths of the extension that they took. A test whose queries have a feature or a path too rarely
# fails.
package Tally;
use strict;
use warnings;

# Features of the query that is being generated.
my %drawn;

# The number of executions by the custom scan that gave an answer; and by feature, the number of these, and of those with rows.
my ($runs, %answered, %with_rows) = (0);

# The number of watched executions; and by path, the number of those that took it.
my ($watched, %took) = (0);

# The minimum shares in percent, of each feature among answers, and of each path among watched executions. They are about a third of
# the shares that random queries have.
my (%features, %paths);

my %usual = (
	'with rows' => 50,
	'GROUP BY nothing' => 5, 'GROUP BY one key' => 12, 'GROUP BY several keys' => 18,
	'IN of 1 to 9' => 6, 'IN of 10 to 999' => 2.2, 'IN of 1000 and more' => 0.6,
	'GROUPING SETS' => 2.5, 'UNION ALL' => 0.8, 'groups of groups' => 1.5, 'INTERSECT and EXCEPT' => 0.5, views => 0.8, partitions => 0.7,
	'exact sums' => 3, constants => 18, 'odd constants' => 2.8, 'constants as keys' => 1.6, 'subqueries as constants' => 3.5,
	parameters => 2.3, variables => 2.5,
	expressions => 15, subplans => 0.4, 'subqueries that are not reached' => 0.7,
	(map { ("cursor $_" => 0.3) } qw(beside changes held_at_once hold scroll steps two)),
	(map { ("form $_" => 0.3) } qw(correlated exists execute_into lateral nested made rescan subquery union view with_twice)),
	'form cursor' => 3, 'form do_block' => 1.4, 'form function' => 1.8, 'form prepared' => 4, 'form sql_function' => 1, 'form plain' => 16,
	(map { ($_ => 0.4) } 'best rows', 'dashboards', 'errors behind FILTER', 'histogram bounds', 'joined tables', 'longer values', 'linear sums', 'many groups', 'never evaluated', 'volatile calls', 'volatile values', q{users' states}),
	joins => 3, 'joins in rescans' => 0.3, 'joins of partitions' => 0.4, 'joins that multiply rows' => 0.6, 'inner joins' => 1.5, 'left joins' => 1, 'right joins' => 0.2,
	'full joins' => 0.2, 'keys of other types' => 1.5, 'semi joins' => 0.6, 'anti joins' => 0.4, 'grouped dimensions' => 0.2, 'conditions of both sides' => 0.3, 'ON conditions of left joins' => 0.1,
	'subqueries in conditions' => 0.2, snowflakes => 0.6, 'dimensions that may be noticed' => 0.2, 'joins of no rows' => 0.05, 'sides that may fail' => 0.05,
	'ORDER BY aggregates LIMIT' => 0.6, 'keys that depend on keys' => 1, 'keys that look different' => 2.5, 'ordered aggregates' => 1, 'ordered sets' => 2, 'ordered sets in grouping sets' => 0.6, 'ordered sets beside orders' => 0.6, 'subqueries as fractions' => 0.5, 'own aggregates' => 8, q{users' aggregates} => 4, q{orders of core's aggregates} => 1,
	parallel => 8,
	q{setting GB'} => 1, 'setting batch_rows = 1048576' => 0.6, 'setting batch_rows = 64' => 10, q{setting work_mem = '64kB'} => 15,
	q{setting work_mem = '2147483647kB'} => 0.3);
my %of_random_tables = (
	TABLESAMPLE => 0.6, WITH => 2, 'columns that depend on a key' => 0.5, 'odd values' => 0.4, 'wide values' => 0.7);

my %cpu_paths = (
	'feed heap' => 12, 'feed tuples' => 15, 'cached blocks' => 4, 'cached and changed blocks' => 2,
	spilled => 4, 'several batches' => 10,
	'strategy single' => 6, 'strategy direct' => 3, 'strategy hash' => 12, 'strategy segmented' => 6, 'strategy sort' => 3);

# Sets the minimum shares, which depend on --pages, on the engine of the session, and on whether the planner may aggregate below joins.
sub expect
{
	my ($pages, $eager) = @_;

	%features = (%usual, $pages ? () : %of_random_tables);
	%paths = ('lookup joins' => 0.3, 'lookups of equal keys' => 0.1, 'custom scan' => 85, 'best rows' => 0.1, 'feed groups' => 0.5, rescans => $pages ? 0.5 : 2, 'workers launched' => 1.5, 'merged parts' => 0.3);
	if (($ENV{PGOPTIONS} // '') =~ /gpuagg\.engine=cuda/)
	{
		# dashboards are a quarter of the queries there
		$features{$_} /= 2 foreach grep { $_ ne 'with rows' } keys %features;
		$features{dashboards} = 5;
		%paths = (%paths, 'engine cuda' => 12, 'feed heap' => 12, 'feed tuples' => 15, 'rows on the GPU' => $pages ? 0.4 : 3, 'exact sums on the GPU' => 0.3, 'limits on the GPU' => 0.2, 'limits by several keys on the GPU' => 0.1, $pages ? () : ('sorted on the GPU' => 1));
	}
	else
	{
		%paths = (%paths, %cpu_paths, $pages ? ('feed heap' => 60, 'feed bitmap' => 0.4, 'feed index' => 2, 'feed tuples' => 0, 'strategy segmented' => 1) : ());
	}
	$paths{'below a join'} = 0.2 if $eager;
	return;
}

# The same for stars, most of whose rows the GPU has.
sub expect_stars
{
	%features = ('with rows' => 50, 'sides that may fail' => 1.5, 'sides that may fail in rescans' => 1, (map { ($_ => 10) } 'semi joins', 'anti joins', 'left joins', 'several matches'), map { ("keys: $_" => 5) } qw(dense dates sparse ends pair triple));
	%paths = ('lookup joins' => 60, 'custom scan' => 85);
	%paths = (%paths, 'rows on the GPU' => 50, 'hash tables on the GPU' => 20, 'passes on the GPU' => 2) if ($ENV{PGOPTIONS} // '') =~ /gpuagg\.engine=cuda/;
	return;
}

sub begin_query
{
	%drawn = ();
	return;
}

# Records features of the query that is being generated.
sub draw
{
	$drawn{$_} = 1 foreach @_;
	return;
}

# Features that the text of a query shows.
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

# Records an answer of the custom scan with the number of its rows.
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

# Records the paths of a query from the plans that auto_explain printed.
sub watch
{
	my ($text) = @_;
	my %seen;

	return if $text !~ /^\w+:  duration: .* plan:/m;
	$watched++;
	# keeps only the lines that are needed: a function may add a plan for each row, and patterns with ^ are slow in long texts
	$text = join("\n", grep { /GpuAgg|Bitmap Heap Scan|Index Scan|^ *Lookup|(?:Strategy|Engine|Feed|Cached Blocks|Spilled|Merged Parts|Participants|Workers Launched|Batches|Device Limit|Resident Passes): / } split(/\n/, $text));
	$seen{'custom scan'} = $text =~ /Custom Scan \(GpuAgg\)/;
	$seen{'no custom scan'} = !$seen{'custom scan'};
	$seen{'best rows'} = 1 if $text =~ /Custom Scan \(GpuAggTopRows\)/;
	$seen{'below a join'} = 1 if $text =~ /Custom Scan \(GpuAgg\) on /;
	$seen{"strategy $1"} = 1 while $text =~ /^ *Strategy: (\w+)(?!.*\(planned\))/mg;
	$seen{"engine $1"} = 1 while $text =~ /^ *Engine: (\w+)/mg;
	$seen{'feed heap'} = 1 if $text =~ /^ *Feed: .*heap pages/m;
	$seen{'lookup joins'} = 1 if $text =~ /^ *Lookup/m;
	$seen{'lookups of equal keys'} = 1 if $text =~ /^ *Lookup.* with equal keys/m;
	$seen{'feed groups'} = 1 if $text =~ /^ *Feed: .*groups of/m;
	$seen{'cached blocks'} = 1 if $text =~ /^ *Feed: .*column cache \([1-9]/m;
	$seen{'sorted on the GPU'} = 1 if $text =~ /^ *Engine: cuda.*(?:\n(?!.*Custom Scan).*)*?\n *Strategy: segmented \(rows arrive grouped/m;
	$seen{'exact sums on the GPU'} = 1 if $drawn{'exact sums of floats'} && $seen{'engine cuda'};
	$seen{'limits on the GPU'} = 1 if $text =~ /^ *Device Limit: /m;
	$seen{'limits by several keys on the GPU'} = 1 if $text =~ /^ *Device Limit: \d+ by [2-9] keys/m;
	$seen{'rows on the GPU'} = 1 if $text =~ /^ *Feed: GPU memory \([1-9]/m;
	$seen{'hash tables on the GPU'} = 1 if $text =~ /^ *Lookup.* GPU hash table/m;
	$seen{'passes on the GPU'} = 1 if $text =~ /^ *Resident Passes: /m;
	$seen{'cached and changed blocks'} = 1 if $text =~ /^ *Cached Blocks: .*changed=[1-9]/m;
	$seen{'feed index'} = 1 if $text =~ /^ *Feed: .*heap pages.*(?:\n(?!.*Custom Scan).*)*?\n.*(?<!Bitmap )Index Scan/m;
	$seen{'feed bitmap'} = 1 if $seen{'feed heap'} && $text =~ /Bitmap Heap Scan/;
	$seen{'feed tuples'} = 1 if $text =~ /^ *Feed: tuples/m;
	$seen{'spilled'} = 1 if $text =~ /^ *Spilled: [1-9]/m;
	$seen{'parallel'} = 1 if $text =~ /^ *Participants: (?:[2-9]|\d\d)/m;
	$seen{'merged parts'} = 1 if $text =~ /^ *Merged Parts: [1-9]/m;
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

# Prints the shares, and returns the names of those that are too small. A share is checked only if enough queries ran: if its minimum
# corresponds to 10 executions, or, for a count of 0, if three times the minimum does.
sub report
{
	my (@low);
	my $line = sub {
		my ($name, $n, $whole, $floor, $more) = @_;
		my $judged = defined $floor && $whole * $floor * ($n > 0 ? 1 : 3) >= 1000;
		my $enough = !$judged || percent($n, $whole) >= $floor;

		push @low, $name if !$enough;
		printf("#   %-36s %6d  %5.1f %%%s%s%s\n", $name, $n, percent($n, $whole),
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
