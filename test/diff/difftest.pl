#!/usr/bin/env perl
# The differential test: random queries over random tables, answered by
#
#	core	core's aggregates, the extension disabled
#	plain	gpu_* aggregates in core's executor (gpuagg.require = forbid)
#	scan	gpu_* aggregates in the custom scan (gpuagg.require = require), with
#			random strategy, batch size, memory, feed and parallelism
#	builtin	core's aggregates taken by the custom scan (gpuagg.replace_builtin)
#
# and compared: floats with a tolerance, everything else as text, errors by
# SQLSTATE.  Everything follows from the seed.  A difference is printed with a
# script for psql that shows it; --set and --query repeat one query alone.
#
# --pages tries the heap feed: tables whose pages have a history (Pages.pm), queries
# of base tables, partitions and inheritance children only; it counts how many of
# them EXPLAIN says to read pages.
#
# --gpu allows for what the GPU engine states more exactly than core: the deviation of equal values is 0
# there, rounding noise in core, and corr and regr_* may be NULL for the one and a number for the other.
#
# difftest.pl [--seed N] [--queries N] [--pages] [--gpu] [--set N [--query N]] [--scripts DIR]
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use Getopt::Long;
use IO::Handle;
use Gen;
use Session;

my $PER_SET = 25;
my %option = (seed => 1, queries => 2000, scripts => '.', show => 0);
GetOptions(\%option, 'seed=i', 'queries=i', 'set=i', 'query=i', 'scripts=s', 'pages', 'gpu', 'show') or exit 2;
if ($option{pages})
{
	$Gen::pages = 1;
	Pages::add_types();
}
binmode(STDOUT, ':utf8');
STDOUT->autoflush(1);

my $session = Session->new(log => "$option{scripts}/diff-psql.log");
my %count = (core => 0, plain => 0, scan => 0, builtin => 0, refused => 0, unlimited => 0, answered => 0, heap => 0, errors => 0, constant => 0, mismatches => 0);
my @builtin = (
	'gpuagg.replace_builtin = on', 'gpuagg.startup_cost = 0', 'gpuagg.row_cost = 0', 'gpuagg.slot_cost = 0');

sub reseed
{
	my $n = 2166136261;

	foreach my $part (@_)
	{
		$n = (($n ^ $part) * 16777619) & 0xffffffff;
		$n ^= $n >> 15;
	}
	srand($n);
	rand() for 1 .. 3;
	return;
}

sub version_text
{
	my ($sql, $variant) = @_;

	$sql =~ s/\bgpu:/gpu_/g;
	if ($variant eq 'core' || $variant eq 'builtin')
	{
		$sql =~ s/\bagg://g;
	}
	else
	{
		$sql =~ s/\bagg:/gpu_/g;
	}
	return $sql;
}

sub variant_settings
{
	my ($variant, $query, $scan) = @_;

	return [ 'gpuagg.enabled = off', @{ Gen::core_settings($query) } ] if $variant eq 'core';
	return [ "gpuagg.require = 'forbid'", @{ Gen::core_settings($query) } ] if $variant eq 'plain';
	return [ "gpuagg.require = 'require'", ($variant eq 'builtin' ? @builtin : ()), @$scan ];
}

# The statements of one variant, the last but the teardown being the query.
sub variant_script
{
	my ($variant, $query, $scan) = @_;
	my $sql = version_text($query->{sql}, $variant);
	my @before =
	  (join("; ", 'RESET ALL', 'SET statement_timeout = 60000', map { "SET $_" } @{ variant_settings($variant, $query, $scan) }));
	my @after;

	if ($query->{within})
	{
		push @before, @{ $query->{within} };
		push @after, 'ROLLBACK';
	}
	elsif ($query->{prepare})
	{
		push @before, "PREPARE q(int) AS $sql";
		push @after, 'DEALLOCATE q';
		$sql = 'EXECUTE q(1)';
		push @before, $sql for 1 .. 2;
	}
	elsif ($query->{cursor})
	{
		push @before, 'BEGIN', "DECLARE c CURSOR FOR $sql", 'FETCH 3 FROM c';
		push @after, 'COMMIT';
		return (\@before, 'FETCH ALL FROM c', \@after, 1);
	}
	elsif ($query->{ctas})
	{
		my @names = map { "o$_" } 0 .. $#{ $query->{float} };
		push @before, 'DROP TABLE IF EXISTS made', 'CREATE TEMP TABLE made (' . join(', ', @names) . ") AS $sql";
		$sql = 'SELECT * FROM made';
	}
	return (\@before, $sql, \@after, 0);
}

sub run_variant
{
	my ($variant, $query, $scan) = @_;
	my ($before, $sql, $after, $prefix) = variant_script($variant, $query, $scan);
	my ($result, @first);

	foreach my $statement (@$before)
	{
		$result = $session->run($statement);
		@first = @{ $result->{rows} } if $prefix && $statement =~ /^FETCH/;
		last if $result->{state} ne '00000';
	}
	if ($result->{state} eq '00000')
	{
		$result = $session->run($sql);
		unshift @{ $result->{rows} }, @first;
		$result->{heap} = reads_pages($query, $variant, $sql) 
		  if $option{pages} && $result->{state} eq '00000' && $variant =~ /scan|builtin/;
	}
	$result->{rows} = [] if $result->{state} ne '00000';
	$session->run($_) foreach @$after;
	return $result;
}

# Whether EXPLAIN of the statement, or of the query inside it, names the heap feed.
sub reads_pages
{
	my ($query, $variant, $sql) = @_;

	$sql = version_text($query->{sql}, $variant) if $sql !~ /^EXECUTE/;
	return scalar grep { $_->[0] =~ /Feed: heap pages/ } @{ $session->run("EXPLAIN (COSTS OFF) $sql")->{rows} };
}

sub same_number
{
	my ($a, $b, $single) = @_;
	my ($difference, $scale);

	return 0 if $a !~ /^-?[\d.]+(?:e[-+]?\d+)?$/i || $b !~ /^-?[\d.]+(?:e[-+]?\d+)?$/i;
	$difference = abs($a - $b);
	$scale = abs($a) > abs($b) ? abs($a) : abs($b);
	# float4 sums are rounded to 24 bits at each of some thousand rows
	return $difference <= ($single ? 1e-4 : 1e-9) * $scale || $difference <= 1e-9;
}

# Rows sorted by their exact fields first.
sub in_order
{
	my ($exact, $rows) = @_;

	return map { $_->[1] }
	  sort { $a->[0] cmp $b->[0] }
	  map { my $row = $_; [ join("\x00", (map { $row->[$_] // '' } @$exact), @$row), $row ] } @$rows;
}

# Rows by their exact fields, for those of one group.
sub exact_fields
{
	my ($query, $row) = @_;

	return join("\x00", map { $row->[$_] // '' } grep { !$query->{float}[$_] } 0 .. $#{ $query->{float} });
}

# Whether a field of a row that differs is the correlation or so of a column whose values in the group are all equal.
sub constant_column
{
	my ($query, $scan, $field, $row) = @_;
	my ($sql, $constant) = @{ $query->{constant}[$field] // return 0 };
	my %asked = (%$query, sql => $query->{sql} =~ s/\Q$sql\E/$constant/gr);
	my @same = grep { exact_fields($query, $_) eq exact_fields($query, $row) } @{ run_variant('core', \%asked, $scan)->{rows} };

	$count{constant}++;
	return scalar grep { ($_->[$field] // '') eq 't' } @same;
}

# Compares two results; returns what differs, or undef.
sub difference
{
	my ($query, $reference, $result, $scan) = @_;
	my $float = $query->{float};
	my @exact = grep { !$float->[$_] } 0 .. $#$float;
	my (@a, @b);

	# where several rows have errors, or one has several, which is met first may differ
	return undef if $reference->{state} =~ /^22/ && $result->{state} =~ /^22/;
	if ($reference->{state} ne $result->{state})
	{
		return "$reference->{state} $reference->{message} | $result->{state} $result->{message}";
	}
	@a = in_order(\@exact, $reference->{rows});
	@b = in_order(\@exact, $result->{rows});
	return scalar(@a) . ' rows | ' . scalar(@b) . ' rows' if @a != @b;
	foreach my $row (0 .. $#a)
	{
		foreach my $field (0 .. $#{ $a[$row] })
		{
			my ($x, $y) = ($a[$row][$field], $b[$row][$field]);

			next if defined $y && $x eq $y;
			next if $float->[$field] && same_number($x, $y, $float->[$field] == 2);
			next if $option{gpu} && constant_column($query, $scan, $field, $a[$row]);
			return join(' ; ', @{ $a[$row] }) . "\n#   | " . join(' ; ', @{ $b[$row] });
		}
	}
	return undef;
}

# Under LIMIT over sorted groups either side may stop before the row that raises
# an error.  Without it both have to reach that row, or to agree on all groups.
sub unlimited_difference
{
	my ($query, $variant, $scan) = @_;
	my %whole = (%$query, sql => $query->{sql} =~ s/ LIMIT \d+\z//r);

	$count{unlimited}++;
	return difference(\%whole, run_variant('core', \%whole, $scan), run_variant($variant, \%whole, $scan), $scan);
}

sub write_script
{
	my ($file, $tables, $query, $scan, @variants) = @_;

	open(my $out, '>:utf8', $file) or die "$file: $!";
	print $out "CREATE EXTENSION IF NOT EXISTS gpuagg;\n";
	print $out "$_", (/\\\.\n\z/ ? '' : ';'), "\n" foreach @{ prelude() }, @{ $tables->{statements} }, @{ $query->{setup} };
	foreach my $variant (@variants)
	{
		my ($before, $sql, $after) = variant_script($variant, $query, $scan);
		print $out "\n\\echo $variant\n", map { "$_;\n" } @$before, $sql, @$after;
	}
	close($out);
	return;
}

sub prelude
{
	return [
		'SET client_min_messages = warning',
		'DROP TYPE IF EXISTS mood CASCADE',
		"CREATE TYPE mood AS ENUM ('sad', 'ok', 'happy')",
		"CREATE COLLATION IF NOT EXISTS nocase (provider = icu, locale = 'und-u-ks-level2', deterministic = false)"
	];
}

sub run_query
{
	my ($set, $number, $tables) = @_;
	my ($query, $scan, @variants, $reference);

	reseed($option{seed}, $set, $number + 1);
	$query = Gen::make_query($tables);
	$scan = Gen::scan_settings($query);
	@variants = ('scan');
	push @variants, 'plain' if Types::chance(0.4);
	push @variants, 'builtin' if Types::chance(0.4);
	print "-- $set.$number: $query->{sql}\n" if $option{show};
	$session->run($_) foreach @{ $query->{setup} };
	$reference = run_variant('core', $query, $scan);
	$count{core}++;
	$count{errors}++ if $reference->{state} ne '00000';
	die "query $set.$number is wrong: $query->{sql}\n$reference->{state} $reference->{message}\n"
	  if $reference->{state} =~ /^42(?!P22)|^26|^34/;
	foreach my $variant (@variants)
	{
		my $result = run_variant($variant, $query, $scan);
		my $what;

		if ($variant ne 'plain' && $result->{state} eq '0A000' && $result->{message} =~ /gpuagg|custom scan/i)
		{
			$count{refused}++;
			next;
		}
		$count{$variant}++;
		$count{answered}++ if $variant ne 'plain' && $result->{state} eq '00000';
		$count{heap}++ if $result->{heap};
		$what = difference($query, $reference, $result, $scan);
		$what = unlimited_difference($query, $variant, $scan)
		  if $what && $query->{sql} =~ /LIMIT/ && $reference->{state} ne $result->{state};
		if ($what)
		{
			my $file = "$option{scripts}/diff-$option{seed}-$set-$number.sql";
			my $mode = $option{pages} ? " --pages" : "";

			$count{mismatches}++;
			write_script($file, $tables, $query, $scan, 'core', $variant);
			print "not ok query $set.$number: $variant differs from core\n",
			  "# $query->{sql}\n# " . join('; ', @$scan) . "\n#     $what\n",
			  "# again: test/diff/run.sh$mode --seed $option{seed} --set $set --query $number\n# script: $file\n";
		}
		if ($result->{state} eq 'LOST')
		{
			$session->reconnect;
			load($tables);
			$session->run($_) foreach @{ $query->{setup} };
		}
	}
	$session->run($_) foreach @{ $query->{teardown} };
	return;
}

sub load
{
	my ($tables) = @_;

	foreach my $statement (@{ prelude() }, @{ $tables->{statements} })
	{
		my $result = $session->run($statement);
		die "cannot set up: $statement\n$result->{state} $result->{message}\n" if $result->{state} ne '00000';
	}
	return;
}

my $sets = int(($option{queries} + $PER_SET - 1) / $PER_SET);
$session->run('CREATE EXTENSION IF NOT EXISTS gpuagg');
foreach my $set (defined $option{set} ? $option{set} : 0 .. $sets - 1)
{
	my $tables;

	reseed($option{seed}, $set, 0);
	$tables = Gen::make_tables();
	$session->run('RESET ALL');
	load($tables);
	run_query($set, $_, $tables) foreach defined $option{query} ? $option{query} : 0 .. $PER_SET - 1;
}
print "# $count{core} queries ($count{errors} raise errors): $count{scan} by the custom scan, $count{plain} plain,",
  " $count{builtin} with replace_builtin; $count{refused} times refused;",
  " $count{unlimited} compared again without LIMIT", ($option{gpu} ? ", $count{constant} asked for constant columns" : ''), "\n";
if (!defined $option{query})
{
	# A scan that refuses everything would agree with core.
	my $enough = $count{scan} + $count{builtin} > 4 * $count{refused};
	print $enough ? 'ok ' : 'not ok ', "the custom scan takes most queries\n";
	$count{mismatches}++ if !$enough;
	if ($option{pages})
	{
		$enough = $count{heap} > 0.9 * $count{answered};
		print $enough ? 'ok ' : 'not ok ', "pages are read\n# by $count{heap} of $count{answered} queries that were answered\n";
		$count{mismatches}++ if !$enough;
	}
}
print $count{mismatches} ? 'not ok ' : 'ok ', "$count{core} queries, seed $option{seed}\n";
exit($count{mismatches} ? 1 : 0);
