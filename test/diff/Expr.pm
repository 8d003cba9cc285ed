# Random scalar expressions over columns, typed: what vector expressions and
# core's evaluator must agree on.  Integers come from small values mostly, so
# that few queries end in an overflow, and those that do must do so in core too.
package Expr;
use strict;
use warnings;
use Types;

BEGIN { *pick = \&Types::pick; *chance = \&Types::chance; *int_between = \&Types::int_between; }

# What a result of each kind is to an aggregate; as in Types.
my %info = (
	int => { num => 1, minmax => 1, int => 1 },
	num => { norm => 'trim_scale(%s)', num => 1, minmax => 1 },
	float => { norm => '(%s + 0)', num => 1, minmax => 1, float => 1 },
	text => { minmax => 1, text => 1 },
	date => { minmax => 1 },
	stamp => { minmax => 1 },
	bool => { bool => 1 });

my @fields = qw(second minute hour day week month quarter year dow doy);

sub column_of
{
	my ($test, @columns) = @_;
	my @found = grep { $test->($_) } @columns;

	return @found ? pick(@found)->{name} : undef;
}

sub int_column { return column_of(sub { $_[0]{info}{int} }, @_); }
sub num_column { return column_of(sub { $_[0]{type} =~ /^numeric/ }, @_); }
sub float_column { return column_of(sub { $_[0]{info}{float} }, @_); }
sub bool_column { return column_of(sub { $_[0]{info}{bool} }, @_); }
sub text_column { return column_of(sub { $_[0]{type} =~ /^(?:text$|varchar)/ }, @_); }
sub date_column { return column_of(sub { $_[0]{type} eq 'date' }, @_); }
sub stamp_column { return column_of(sub { $_[0]{type} =~ /^timestamp(?:\(\d\))?$/ }, @_); }

# Each returns SQL, and falls back to another form where there is no such column.
my %make;
%make = (
	int => sub {
		my ($depth, @c) = @_;
		my $column = int_column(@c);
		my ($text, $date, $stamp, $float) = (text_column(@c), date_column(@c), stamp_column(@c), float_column(@c));
		my @leaf = ("($column % 1000)", "($column % 7)", chance(0.2) ? $column : "($column % 50)", int_between(-3, 12));
		return pick(@leaf) if $depth <= 0;
		my ($a, $b) = map { $make{int}->($depth - 1, @c) } 1 .. 2;
		my @form = (
			@leaf, "($a + $b)", "($a - $b)", "($a * $b)", "($a / nullif($b, 0))", "($a % nullif($b, 0))", "(- $a)", "abs($a)",
			"coalesce($a, $b)", "nullif($a, $b)", "greatest($a, $b)", "least($a, $b, 5)",
			'CASE WHEN ' . $make{bool}->($depth - 1, @c) . " THEN $a ELSE $b END",
			"CASE $a WHEN 0 THEN $b WHEN 1 THEN 7 END", "($a & $b)", "($a)::int8");

		push @form, "($a / $b)" if chance(0.05);
		push @form, "length($text)" if $text;
		push @form, 'extract(' . pick(@fields) . " FROM $stamp)::int" if $stamp;
		push @form, 'extract(' . pick(qw(day month year dow)) . " FROM $date)::int", "($date - date '2000-01-01')" if $date;
		push @form, "width_bucket($float, -10, 100, 20)" if $float && chance(0.5);
		return pick(@form);
	},
	num => sub {
		my ($depth, @c) = @_;
		my $column = num_column(@c);
		return '(' . $make{int}->($depth, @c) . ')::numeric' . pick('', '(12,3)') if !$column;
		return $column if $depth <= 0;
		my ($a, $b) = ($make{num}->($depth - 1, @c), chance(0.5) ? $column : pick('1', '0.5', '2.25', '-3'));
		return pick($column, "($a + $b)", "($a - $b)", "($a * $b)", "(- $a)", "abs($a)", "coalesce($a, 0)", "nullif($a, $b)",
			"greatest($a, $b)", "(1 - $a)", "round($a, " . int_between(0, 3) . ')', "trunc($a)",
			'CASE WHEN ' . $make{bool}->($depth - 1, @c) . " THEN $a END");
	},
	float => sub {
		my ($depth, @c) = @_;
		my $column = float_column(@c);
		return '(' . $make{int}->($depth, @c) . ')::' . pick('float8', 'float4') if !$column;
		return $column if $depth <= 0;
		my $a = $make{float}->($depth - 1, @c);
		return pick($column, "($a + $column)", "($a - 1.5)", "($a * 0.25)", "(- $a)", "abs($a)", "floor($a)", "ceil($a)", "round($a)",
			"trunc($a)", "coalesce($a, 0)", "greatest($a, $column)", "nullif($a, 0)",
			'CASE WHEN ' . $make{bool}->($depth - 1, @c) . " THEN $a ELSE 0 END");
	},
	text => sub {
		my ($depth, @c) = @_;
		my $column = text_column(@c);
		return '(' . $make{int}->($depth, @c) . ')::text' if !$column;
		return pick($column, "left($column, " . int_between(0, 3) . ')', "substr($column, 2, 2)", "upper($column)", "lower($column)",
			"($column || 'x')", "coalesce($column, '-')", "nullif($column, 'a')");
	},
	date => sub {
		my ($depth, @c) = @_;
		my ($date, $stamp) = (date_column(@c), stamp_column(@c));
		return "(date '2001-02-27' + (" . $make{int}->(0, @c) . ')::int)' if !$date && !$stamp;
		return $date ? pick($date, "($date + 3)", "greatest($date, '2001-01-01')") : "$stamp\::date";
	},
	stamp => sub {
		my ($depth, @c) = @_;
		my $stamp = stamp_column(@c);
		return '(' . $make{date}->($depth, @c) . ')::timestamp' if !$stamp;
		return pick($stamp, "date_trunc('" . pick(@fields[ 0 .. 7 ]) . "', $stamp)", "($stamp + interval '36 hours')",
			"($stamp - interval '1 month')");
	},
	bool => sub {
		my ($depth, @c) = @_;
		my $kind = pick(qw(int int num float text date stamp));
		my ($bool, $text, $any) = (bool_column(@c), text_column(@c), pick(@c)->{name});
		my $compare = pick('=', '<>', '<', '<=', '>', '>=', 'IS DISTINCT FROM', 'IS NOT DISTINCT FROM');
		my ($a, $b) = map { $make{$kind}->($depth - 1, @c) } 1 .. 2;
		my @form = ("($a $compare $b)", "($any IS NULL)", "($any IS NOT NULL)");

		push @form, $bool, "(NOT $bool)", "($bool IS NOT TRUE)" if $bool;
		push @form, "($text LIKE '" . pick('a%', '%b', 'k1%', '%', '') . "')", "($text IN ('a', 'JFK', '', 'x'))",
		  "($text = '" . pick('a', 'x', 'k7') . "')"
		  if $text;
		return pick(@form) if $depth <= 0;
		my ($x, $y) = map { $make{bool}->($depth - 1, @c) } 1 .. 2;
		push @form, "($x AND $y)", "($x OR $y)", "(NOT $x)", "($x IS NOT TRUE)", "($a BETWEEN $b AND $a)";
		push @form, "($a IN (0, 1, 7, NULL))", "($a NOT IN (1, 2, 3))" if $kind eq 'int';
		return pick(@form);
	});

# An expression of a kind, as argument() and key() of Gen want it.
sub expression
{
	my ($kind, @columns) = @_;
	my $sql = $make{$kind}->(pick(1, 1, 2, 3), @columns);

	return { sql => $sql, info => $info{$kind}, type => '' };
}

# Of a kind that an aggregate of the given property takes.
sub with_property
{
	my ($property, @columns) = @_;

	return expression(pick(grep { $info{$_}{$property} } sort keys %info), @columns);
}

sub key
{
	return expression(pick(qw(int int text date stamp bool num)), @_);
}

1;
