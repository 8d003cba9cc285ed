# Random scalar expressions over columns, by type. The extension's vector expressions and core's evaluator must agree on them. Integers
# are mostly small, so that few queries end with an overflow. These must overflow in core too.
package Expr;
use strict;
use warnings;
use Tally;
use Types;
use Values;

BEGIN { *pick = \&Types::pick; *chance = \&Types::chance; *int_between = \&Types::int_between; *constant = \&Values::constant; }

# The properties of results of each kind, as in Types.
my %info = (
	int => { num => 1, minmax => 1, int => 1 },
	num => { norm => 'trim_scale(%s)', num => 1, minmax => 1 },
	float => { norm => '(%s + 0)', num => 1, minmax => 1, float => 1 },
	text => { minmax => 1, text => 1 },
	date => { minmax => 1 },
	stamp => { minmax => 1 },
	zoned => { minmax => 1 },
	span => { norm => $Types::types{interval}{norm}, loose => 1, num => 2, minmax => 1 },
	oid => { minmax => 1 },
	bool => { bool => 1 });

my @fields = qw(second minute hour day week month quarter year dow doy);

sub column_of
{
	my ($test, @columns) = @_;
	my @found = grep { $test->($_) } @columns;

	return @found ? pick(@found)->{name} : undef;
}

sub int_column { return column_of(sub { $_[0]{info}{int} }, @_); }
sub num_column { return column_of(sub { $_[0]{type} =~ /^numeric(?:\(|$)/ }, @_); }
sub float_column { return column_of(sub { $_[0]{info}{float} }, @_); }
sub bool_column { return column_of(sub { $_[0]{info}{bool} }, @_); }
sub text_column { return column_of(sub { $_[0]{type} =~ /^(?:text$|varchar)/ }, @_); }
sub date_column { return column_of(sub { $_[0]{type} eq 'date' }, @_); }
sub stamp_column { return column_of(sub { $_[0]{type} =~ /^timestamp(?:\(\d\))?$/ }, @_); }
sub zoned_column { return column_of(sub { $_[0]{type} =~ /^timestamptz/ }, @_); }
sub span_column { return column_of(sub { $_[0]{type} eq 'interval' }, @_); }
sub oid_column { return column_of(sub { $_[0]{type} eq 'oid' }, @_); }

# Subqueries over d, which has an "id" and few rows: without a reference to the outer row, with one, and with an error.
sub initplan { return pick('(SELECT count(*) FROM d)::int', '(SELECT max(id) % 7 FROM d)', '(SELECT min(id) FROM d WHERE id > 3)'); }
sub subplan { return "(SELECT count(*)::int FROM (SELECT id AS xid FROM d) x WHERE xid <= $_[0] % 10)"; }
sub failing { return pick('(SELECT 1 / (count(*) - count(*))::int FROM d)', '(SELECT i FROM generate_series(1, 2) i)', '(SELECT i / 0 FROM generate_series(1, 1) i)'); }

# An integer expression with a subquery that would fail, in an operand that core never evaluates.
sub lazy_int
{
	my ($column, $a) = @_;

	return pick(
		"CASE WHEN $column IS NULL AND $column IS NOT NULL THEN " . failing() . " ELSE $a END",
		"CASE WHEN $column IS NULL OR $column IS NOT NULL THEN $a ELSE " . failing() . ' END',
		"coalesce($a, " . int_between(0, 9) . ', ' . failing() . ')',
		"CASE coalesce($a, 0) WHEN coalesce($a, 0) THEN 2 WHEN " . failing() . ' THEN 1 END');
}

# Generators by kind: sub(depth, columns) that returns SQL. They use another form if there is no column of the kind.
my %make;
%make = (
	int => sub {
		my ($depth, @c) = @_;
		my $column = int_column(@c);
		my ($text, $date, $stamp, $float, $oid) = (text_column(@c), date_column(@c), stamp_column(@c), float_column(@c), oid_column(@c));
		my $zoned = zoned_column(@c);
		my @leaf = ("($column % 1000)", "($column % 7)", chance(0.2) ? $column : "($column % 50)", Values::int_constant(-3, 12));
		return pick(@leaf) if $depth <= 0;
		my ($a, $b) = map { $make{int}->($depth - 1, @c) } 1 .. 2;
		my @form = (
			@leaf, "($a + $b)", "($a - $b)", "($a * $b)", "($a / nullif($b, 0))", "($a % nullif($b, 0))", "(- $a)", "abs($a)",
			"coalesce($a, $b)", "nullif($a, $b)", "greatest($a, $b)", "least($a, $b, 5)",
			'CASE WHEN ' . $make{bool}->($depth - 1, @c) . " THEN $a ELSE $b END",
			"CASE $a WHEN 0 THEN $b WHEN 1 THEN 7 END", "($a & $b)", "($a)::int8");

		return lazy_int($column, $a) if chance(0.03);
		push @form, "($a / $b)" if chance(0.05);
		push @form, constant(pick(qw(int2 int4 int8))) if chance(0.1);
		push @form, initplan() if chance(0.3);
		push @form, subplan($column) if chance(0.1);
		push @form, "($oid\::int4)", "($oid\::int8 % 1000)" if $oid;
		push @form, "length($text)" if $text;
		push @form, 'extract(' . pick(@fields) . " FROM $stamp)::int" if $stamp;
		push @form, 'extract(' . pick(@fields) . " FROM $zoned)::int" if $zoned;
		push @form, 'extract(' . pick(qw(day month year dow)) . " FROM $date)::int", "($date - date '2000-01-01')" if $date;
		push @form, "position('1' in $text)", "ascii(lower($text))", "char_length(replace($text, 'a', '\xc3\xa4\xc3\xa4'))" if $text;
		push @form, 'extract(' . pick(qw(epoch day hour)) . ' FROM ' . $make{span}->(0, @c) . ')::int8' if chance(0.2);
		push @form, "width_bucket($float, " . pick('-10, 100, 20', '100, -10, 33', '0, 1, 10', '0.7, 0.1, 6') . ')' if $float && chance(0.5);
		return pick(@form);
	},
	num => sub {
		my ($depth, @c) = @_;
		my $column = num_column(@c);
		my $oid = oid_column(@c);
		return "($oid\::int4::numeric)" if $oid && chance(0.3);
		return '(' . $make{int}->($depth, @c) . ')::numeric' . pick('', '(12,3)') if !$column;
		return $column if $depth <= 0;
		my $constant = constant(pick('numeric', 'numeric(10,2)', 'numeric(40,2)'));
		my ($a, $b) = ($make{num}->($depth - 1, @c), chance(0.5) ? $column : chance(0.5) ? $constant : pick('1', '0.5', '2.25', '-3'));
		# several display scales: a sum has the largest one
		return pick('CASE WHEN ' . $make{bool}->($depth - 1, @c) . " THEN $a ELSE 0 END",
			'CASE WHEN ' . $make{bool}->($depth - 1, @c) . " THEN $b WHEN " . $make{bool}->(0, @c) . " THEN $a * 1.25 ELSE 3 END",
			"coalesce($b, $a, 1.5)", "least($a, $b, 2.125)", "($a / (abs($b) + 100.0))", "(CASE WHEN $b > 0 THEN $a / nullif($b, 0) ELSE 0.00 END)")
		  if chance(0.4);
		return pick($column, "($a + $b)", "($a - $b)", "($a * $b)", "(- $a)", "abs($a)", "coalesce($a, 0)", "nullif($a, $b)",
			"greatest($a, $b)", "(1 - $a)", "($a / nullif($b, 0))", '(' . $make{int}->(0, @c) . " / (1.5 + abs($a)))", "round($a, " . int_between(-2, 6) . ')', "trunc($a, " . int_between(-2, 4) . ')', pick(qw(round trunc ceil floor sign)) . "($a)",
			"($a % nullif($b, 0))", "mod($a, " . pick('7', '0.3', '2.50') . ')', "round($a / (abs($b) + 1.5), " . int_between(0, 3) . ')',
			'CASE WHEN ' . $make{bool}->($depth - 1, @c) . " THEN $a END",
			'CASE WHEN ' . $make{bool}->($depth - 1, @c) . " THEN $a ELSE $constant END", "coalesce($a, $constant)");
	},
	float => sub {
		my ($depth, @c) = @_;
		my $column = float_column(@c);
		return '(' . $make{int}->($depth, @c) . ')::' . pick('float8', 'float4') if !$column;
		return $column if $depth <= 0;
		my $a = $make{float}->($depth - 1, @c);
		my $constant = constant('float8');
		return pick($column, "($a + $column)", "($a - 1.5)", "($a * 0.25)", "(- $a)", "abs($a)", "floor($a)", "ceil($a)", "round($a)",
			"trunc($a)", "coalesce($a, 0)", "greatest($a, $column)", "nullif($a, 0)",
			'CASE WHEN ' . $make{bool}->($depth - 1, @c) . " THEN $a ELSE 0 END",
			'CASE WHEN ' . $make{bool}->($depth - 1, @c) . " THEN $a ELSE $constant END");
	},
	text => sub {
		my ($depth, @c) = @_;
		my $column = text_column(@c);
		return '(' . $make{int}->($depth, @c) . ')::text' if !$column;
		my $other = text_column(@c);
		my $pattern = pick('^[a-k]', '1', 'a|x$', '.*');
		return pick("replace($column, 'a', 'bb')", "split_part($column, 'a', 1)", "btrim($column, 'ax ')", "reverse($column)",
			"($column || '-' || $other)", "concat($column, '/', $other)", "regexp_replace($column, '$pattern', '<\\&>')", "initcap($column)",
			"lower(left($column, 1))", "substring($column from '$pattern')", "lpad($column, 3, '*')", "translate($column, 'abc', 'xy')",
			'(' . $make{int}->(0, @c) . ')::text', "(coalesce($column, '') || " . (int_column(@c) // "''") . "::text)",
			'to_char(' . $make{stamp}->(0, @c) . ", '" . pick('YYYY-MM', 'Dy', 'HH24') . "')")
		  if chance(0.5);
		return pick($column, "left($column, " . int_between(0, 3) . ')', "substr($column, 2, 2)", "upper($column)", "lower($column)",
			"($column || 'x')", "coalesce($column, '-')", "nullif($column, 'a')", 'coalesce(' . "$column, " . constant('text') . ')',
			'CASE WHEN ' . $make{bool}->($depth - 1, @c) . " THEN $column ELSE " . constant('text') . ' END');
	},
	date => sub {
		my ($depth, @c) = @_;
		my ($date, $stamp) = (date_column(@c), stamp_column(@c));
		return "(date '2001-02-27' + (" . $make{int}->(0, @c) . ')::int)' if !$date && !$stamp;
		return $date ? pick($date, "($date + 3)", "greatest($date, '2001-01-01')", "coalesce($date, " . constant('date') . ')') : "$stamp\::date";
	},
	stamp => sub {
		my ($depth, @c) = @_;
		my $stamp = stamp_column(@c);
		return '(' . $make{date}->($depth, @c) . ')::timestamp' if !$stamp;
		return pick($stamp, "date_trunc('" . pick(@fields[ 0 .. 7 ]) . "', $stamp)", "($stamp + interval '36 hours')",
			"($stamp - interval '1 month')", "coalesce($stamp, " . constant('timestamp') . ')');
	},
	zoned => sub {
		my ($depth, @c) = @_;
		my $zoned = zoned_column(@c);
		return '(' . $make{stamp}->($depth, @c) . ')::timestamptz' if !$zoned;
		return pick($zoned, "date_trunc('" . pick(@fields[ 0 .. 7 ]) . "', $zoned)", "($zoned + interval '90 minutes')", "($zoned - interval '1 day')");
	},
	span => sub {
		my ($depth, @c) = @_;
		my $span = span_column(@c);
		my $kind = chance(0.6) ? 'stamp' : 'zoned';
		my ($a, $b) = ($make{$kind}->(0, @c), $make{$kind}->(0, @c));
		# not every release can subtract infinities
		my $between = "(CASE WHEN isfinite($a) AND isfinite($b) THEN $a - $b END)";
		return $between if $depth <= 0 && !$span;
		return pick($between, "($a - date_trunc('day', $a))") if $depth <= 0 && chance(0.03);
		$span //= $between;
		return pick($span, $between, "($span + $between)", "($span - interval '1 day 25 hours')", "(- $span)", "greatest($span, interval '3 hours')",
			'CASE WHEN ' . $make{bool}->($depth - 1, @c) . " THEN $span ELSE $between END");
	},
	oid => sub {
		my ($depth, @c) = @_;
		my $oid = oid_column(@c);
		return $oid if $oid && chance(0.5);
		my $int = column_of(sub { $_[0]{type} eq 'int4' }, @c);
		return $int && chance(0.7) ? "($int\::int4::oid)" : constant('oid');
	},
	bool => sub {
		my ($depth, @c) = @_;
		my $kind = pick(qw(int int num float text date stamp zoned span), oid_column(@c) ? 'oid' : ());
		my ($bool, $text, $any) = (bool_column(@c), text_column(@c), pick(@c)->{name});
		my $compare = pick('=', '<>', '<', '<=', '>', '>=', 'IS DISTINCT FROM', 'IS NOT DISTINCT FROM');
		my ($a, $b) = map { $make{$kind}->($depth - 1, @c) } 1 .. 2;
		my @form = ("($a $compare $b)", "($any IS NULL)", "($any IS NOT NULL)");

		push @form, $bool, "(NOT $bool)", "($bool IS NOT TRUE)" if $bool;
		push @form, "($text LIKE '" . pick('a%', '%b', 'k1%', '%', '', '%1%', 'k%1', '%a%1%', '_', 'a_%') . "')", "($text ~ '" . pick('^a', '[0-9]$', 'x.*k') . "')", "(lower($text) = 'a')", "($text IN ('a', 'JFK', '', 'x'))",
		  "($text = '" . pick('a', 'x', 'k7') . "')", "($text $compare " . constant('text') . ')'
		  if $text;
		return pick(@form) if $depth <= 0;
		my ($x, $y) = map { $make{bool}->($depth - 1, @c) } 1 .. 2;
		my $column = int_column(@c);
		push @form, "($x AND $y)", "($x OR $y)", "(NOT $x)", "($x IS NOT TRUE)", "($a BETWEEN $b AND $a)";
		push @form, "($a IN (0, 1, 7, NULL))", "($a NOT IN (1, 2, 3))" if $kind eq 'int';
		push @form, Values::in_list($kind, $a) if chance(0.3) && $kind !~ /date|zoned|span/;
		push @form, "($x OR ($column IS NULL AND $column IS NOT NULL AND " . failing() . ' > 0))' if chance(0.05);
		push @form, "($column % 20 NOT IN (SELECT id FROM d WHERE id > 10))", "EXISTS (SELECT FROM (SELECT id AS xid FROM d) x WHERE xid = $column % 30)",
		  "($column % 20 = ANY (SELECT id FROM d))"
		  if chance(0.15);
		return pick(@form);
	});

# An expression of a kind, in the form of Gen::argument() and Gen::key().
sub expression
{
	my ($kind, @columns) = @_;
	my $sql = $make{$kind}->(pick(1, 1, 2, 3), @columns);

	Tally::draw('expressions');
	return { sql => $sql, info => $info{$kind}, type => '' };
}

# An expression of a kind that has the property.
sub with_property
{
	my ($property, @columns) = @_;

	return expression(pick(grep { $info{$_}{$property} } sort keys %info), @columns);
}

sub key
{
	return expression(pick(qw(int int text text date stamp zoned bool num oid)), @_);
}

1;
