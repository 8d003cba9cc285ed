# Joins whose sides may fail: which side runs first, and whether the other one runs at all, decides whether an error is raised. Sides may
# be empty, and scans may be repeated with other parameters. Core and the custom scan are only compared where their joins are the same.
package Sides;
use strict;
use warnings;
use Tally;
use Types;

BEGIN { *pick = \&Types::pick; *chance = \&Types::chance; *int_between = \&Types::int_between; }

# The share of such queries among joins. Many of them fail, as they should.
our $share = 0.05;

# The settings of core and the custom scan, which leave one order of joins and hash joins.
my @settings = (
	(map { "enable_$_ = off" } qw(nestloop mergejoin material memoize)), (map { "enable_$_ = on" } qw(hashjoin seqscan)),
	'join_collapse_limit = 1', 'from_collapse_limit = 1', 'max_parallel_workers_per_gather = 0', "work_mem = '64MB'", 'hash_mem_multiplier = 1');

# A condition of integer $x, which a parameter may be in. Most can raise an error, or let no row pass.
sub condition
{
	my ($x, $p) = @_;
	my $n = int_between(-2, 9);

	return pick("100 / ($x - $n) > -1000", "100 / ($x - $p) > -1000", "$x + 0 > $p * 20", "$x + 0 > 1000000 - $n", "$x + 0 > $p AND 100 / ($x - $n) < 99", "$x + 0 <> $n", 'true');
}

# A subquery of a dimension: { name, keys, x: an integer column }.
sub side
{
	my ($d, $p) = @_;
	my $condition = condition("$d->{name}x", $p);

	return "(SELECT * FROM $d->{name} WHERE $condition) $d->{name}" if chance(0.2);
	return "(SELECT $d->{name}.*, 100 / ($d->{name}x - $p) AS $d->{name}z FROM $d->{name} OFFSET 0) $d->{name}" if chance(0.2);
	return "(SELECT * FROM $d->{name} WHERE $condition OFFSET 0) $d->{name}";
}

# Joins a dimension: returns what follows the tables before it, and a condition for WHERE.
sub join_side
{
	my ($d, $p) = @_;
	my $on = join(' AND ', map { "$d->{of}[$_] = $d->{keys}[$_]" } 0 .. $#{ $d->{keys} });
	my $kind = pick('JOIN', 'JOIN', 'JOIN', 'LEFT JOIN', 'EXISTS', 'NOT EXISTS');
	my $side = side($d, $p);

	return (" $kind $side ON $on", '') if $kind =~ /JOIN/;
	return ('', "$kind (SELECT FROM $side WHERE $on)");
}

# Returns a query in the form of Gen::make_query. fact: the table, x: an integer column of it, dimensions: with columns ...x of integers
sub make_query
{
	my ($fact, $x, @dimensions) = @_;
	my $repeated = chance(0.6);
	my $p = $repeated ? 'p' : int_between(-3, 9);
	my ($from, @where) = ($fact, condition($x, $p));
	my ($sql, @float);

	Tally::begin_query();
	Tally::draw('sides that may fail', $repeated ? 'sides that may fail in rescans' : ());
	foreach my $d (Special::some(pick(1, 1, 2), @dimensions))
	{
		my ($join, $condition) = join_side($d, $p);

		$from .= $join;
		push @where, $condition || ();
	}
	$sql = "SELECT agg:count(*), agg:sum($x) FROM $from WHERE " . join(' AND ', @where);
	@float = (0, 0);
	if ($repeated)
	{
		$sql =~ s/, agg:sum\(\Q$x\E\)//;
		$sql = "SELECT p, ($sql) FROM unnest(ARRAY[" . join(', ', map { int_between(-3, 9) * pick(1, 1, 10000) } 1 .. int_between(2, 4)) . ']) p';
	}
	return { sql => $sql, float => \@float, form => 'plain', serial => 1, same_plan => 1, setup => [], teardown => [], places => [], last => \@settings };
}

1;
