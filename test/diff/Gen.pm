# Random queries over the tables of a set.
package Gen;
use strict;
use warnings;
use Expr;
use Forms;
use Special;
use Tables;
use Tally;
use Types;
use Values;

# True with --gpu: the queries run with the GPU engine.
our $gpu = 0;

BEGIN { *pick = \&Types::pick; *chance = \&Types::chance; *int_between = \&Types::int_between; *constant = \&Values::constant; }

# The columns whose types have the property.
sub of_kind
{
	my ($kind, @columns) = @_;

	return grep { $_->{info}{$kind} } @columns;
}

# Returns an expression for an argument, { sql, info, type }, or undef if no column has the property.
sub argument
{
	my ($kind, @columns) = @_;
	my @candidates = of_kind($kind, @columns);
	my ($column, $sql);

	return Expr::with_property($kind, @columns) if chance($Tables::pages ? 0.35 : 0.15);
	return undef if !@candidates;
	$column = pick(@candidates);
	$sql = $column->{name};
	return { sql => chosen_constant($column, @columns), info => $column->{info}, type => '' }
	  if chance(0.12) && Values::bare_type($column->{type});
	if ($column->{info}{int} && chance(0.2))
	{
		my $other = pick(of_kind('int', @columns));
		$sql = pick("$sql + 1", "$sql % 7", "-$sql", "$sql * 2", "coalesce($sql, 0)", "abs($sql)",
			"CASE WHEN $sql > 0 THEN $sql END",
			"($sql)::int8 + $other->{name}", "$sql / nullif($other->{name}, 0)", chance(0.1) ? "$sql / $other->{name}" : $sql);
		return { sql => $sql, info => $column->{info}, type => '' };
	}
	return { sql => $sql, info => $column->{info}, type => $column->{type} };
}

# An expression in which a constant replaces a column, for all or some rows.
sub chosen_constant
{
	my ($column, @columns) = @_;
	my $type = Values::bare_type($column->{type});
	my $constant;

	$type = pick($type, 'numeric(10,2)', 'numeric(40,2)') if $type =~ /^numeric(?:\(|$)/;
	$constant = constant($type, Values::literal($type, chance(0.5)));
	return $constant if chance(0.4);
	return "coalesce($column->{name}, $constant)" if chance(0.3);
	return 'CASE WHEN ' . simple_condition(@columns) . " THEN $constant ELSE $column->{name} END";
}

sub condition
{
	my @columns = @_;

	return Expr::expression('bool', @columns)->{sql} if chance($Tables::pages ? 0.35 : 0.15);
	return simple_condition(@columns);
}

sub simple_condition
{
	my @columns = @_;
	my @ints = of_kind('int', @columns);
	my @bools = of_kind('bool', @columns);
	my @texts = of_kind('text', @columns);
	my $any = pick(@columns);
	my $int = pick(@ints);
	my $any_type = Values::bare_type($any->{type});
	my @forms = (
		"$any->{name} IS NOT NULL", "$any->{name} IS NULL",
		"$int->{name} > " . Values::int_constant(-5, 10),
		"$int->{name} BETWEEN -3 AND " . Values::int_constant(0, 500),
		"$int->{name} % 3 = 0", "$int->{name} IN (0, 1, 2, 7)", 'true');

	push @forms, "$any->{name} " . pick('=', '<>', 'IS DISTINCT FROM') . ' ' . constant($any_type) if $any_type && chance(0.5);
	return Values::in_list('int', $int->{name}) if chance(0.06);
	return Values::in_list(listed($any), $any->{name}) if listed($any) && chance(0.3);

	push @forms, pick(@bools)->{name} if @bools;
	push @forms, pick(@texts)->{name} . pick(" < 'b'", " < 'JFK'", " LIKE 'k1%'", " LIKE 'a%'", " = 'JFK'", " ^@ 'long'", " LIKE 'x\\_%'", " >= 'near'") if @texts;
	push @forms, $int->{name} . ' > 0 AND ' . $any->{name} . ' IS NOT NULL', $int->{name} . ' > 5 OR ' . $any->{name} . ' IS NULL';
	return pick(@forms);
}

# The kind of IN list for a column, or undef.
sub listed
{
	my ($type) = ($_[0]{type});

	return
	    $type =~ /^(?:text|varchar|wide text)/ ? 'text'
	  : $type =~ /^timestamp\b/ ? 'stamp'
	  : $type eq 'oid' ? 'oid'
	  : $type =~ /^numeric(?:\(|$)/ ? 'num'
	  : $type =~ /^float/ ? 'float'
	  : undef;
}

# A filter that several aggregates of a query share, or undef.
our $common_filter;

# Whether the sums of floats of the query that is being generated are exact (gpuagg.float_sum).
our $exact = 0;

# Whether its only exact aggregates are sums and averages.
our $sums_only = 0;

my @regressions = qw(corr covar_pop covar_samp regr_avgx regr_avgy regr_count regr_intercept regr_r2 regr_slope
  regr_sxx regr_sxy regr_syy);

# Returns whether an expression may have type float4.
sub is_single
{
	my ($sql, @columns) = @_;

	return $sql =~ /float4/ || grep { $_->{type} eq 'float4' && $sql =~ /\b$_->{name}\b/ } @columns;
}

# An expression that tells whether all values of a column are equal, among the rows of a regression over these columns.
sub constant_of
{
	my ($filter, @pair) = @_;
	my $rows = 'FILTER (WHERE ' . join(' AND ', (map { "($_) IS NOT NULL" } @pair), $filter ? "($filter)" : ()) . ')';

	return '(' . join(' OR ', map { "min($_) $rows = max($_) $rows" } @pair) . ')';
}

# Returns an aggregate call:
#	call, sql	the call with agg:name, without and with the expression that normalises its result
#	float		1: compare with a tolerance; 2: with a larger one
#	constant	an expression that tells whether the result depends on the deviation of equal values
# If not $orderly, it makes no regressions, whose rounding depends too much on the order of rows.
sub aggregate
{
	my ($wild, $orderly, @columns) = @_;
	my ($arg, $call, $norm, $float, $filter, @pair, $sum);
	# the GPU takes sums and averages if they are the only exact aggregates of a query
	my $kind = $exact && $gpu && $sums_only ? pick(qw(count star sum sum avg avg minmax bit bool)) : pick(qw(count star sum sum avg minmax minmax minmax stat regr bit bool other));

	if ($kind eq 'star')
	{
		$call = 'agg:count(*)';
	}
	elsif ($kind eq 'count')
	{
		my $column = pick(@columns);
		$call = "agg:count($column->{name})";
	}
	elsif ($kind eq 'sum' || $kind eq 'avg')
	{
		$arg = argument('num', @columns) or return aggregate(@_);
		return aggregate(@_) if $kind eq 'avg' && $arg->{info}{num} > 2;
		$call = "agg:$kind($arg->{sql})";
		$sum = $exact && $arg->{info}{float};
		$float = $arg->{info}{float} && !$exact && ($kind eq 'sum' && is_single($arg->{sql}, @columns) ? 2 : 1);
	}
	elsif ($kind eq 'minmax')
	{
		$arg = argument('minmax', @columns) or return aggregate(@_);
		$call = 'agg:' . pick('min', 'max') . "($arg->{sql})";
		$norm = $arg->{info}{norm};
	}
	elsif ($kind eq 'stat')
	{
		$arg = argument('num', @columns) or return aggregate(@_);
		return aggregate(@_) if $arg->{info}{num} > 1;
		$call = 'agg:' . pick(qw(stddev stddev_pop stddev_samp variance var_pop var_samp)) . "($arg->{sql})";
		$float = $arg->{info}{float} && !$exact;
	}
	elsif ($kind eq 'regr')
	{
		return aggregate(@_) if !$orderly && !$exact;
		my @numbers = of_kind('num', @columns);
		@numbers = grep { $_->{info}{num} == 1 } @numbers;
		my ($x, $y) = map { my $c = pick(@numbers); $c->{type} =~ /numeric/ ? "$c->{name}::float8" : $c->{name} } 1 .. 2;
		# if large values cancel, the digits of sums depend on the order of rows, which a GPU does not keep
		($x, $y) = map { '(' . s/::float8\z//r . '::numeric % 1000)::float8' } $x, $y if $gpu;
		# the intercept of a value over itself is rounding noise around 0
		$call = 'agg:' . pick($x eq $y ? grep { $_ ne 'regr_intercept' } @regressions : @regressions) . "($y, $x)";
		$float = !$exact;
		@pair = ($x, $y) if !$exact && $call =~ /corr|covar|intercept|r2|slope|sxy/;
	}
	elsif ($kind eq 'bit')
	{
		$arg = argument('int', @columns) or return aggregate(@_);
		$call = 'agg:' . pick(qw(bit_and bit_or bit_xor)) . "($arg->{sql})";
	}
	elsif ($kind eq 'other')
	{
		# aggregates without an operator of the extension, in a form that does not depend on the order of rows
		my $column = pick(@columns)->{name};
		my $int = '(' . pick(of_kind('int', @columns))->{name} . ' % 1000)::int4';
		my $own = chance(0.5) ? own_function($int) : undef;
		($call, $norm) = $own ? @$own : @{ pick([ "string_agg($column\::text, '+')", 'length(%s)' ], [ "jsonb_agg($column)", 'jsonb_array_length(%s)' ],
				[ "array_agg($column)", q{(SELECT md5(string_agg(e::text, ',' ORDER BY e::text COLLATE "C")) FROM unnest(%s) e)} ]) };
	}
	else
	{
		$call = 'agg:' . pick(qw(bool_and bool_or every)) . '(' . condition(@columns) . ')';
	}
	# with DISTINCT, any of equal values that print differently may be kept
	if ($call !~ /[*]\)\z|jsonb_agg|bag\(|lossy_sum|unsafe_sum/ && $kind ne 'regr' && chance(0.12) && !$wild
		&& !grep { ($_->{info}{nokey} || $_->{info}{loose} && (!$_->{info}{float} || $call =~ /array_agg/)) && $call =~ /\b$_->{name}\b/ } @columns)
	{
		$call =~ s/\(/(DISTINCT /;
		# so the scale of a quotient that is 0 is undetermined
		$norm //= 'trim_scale(%s)' if $arg && ($arg->{info}{norm} // '') eq 'trim_scale(%s)' && $arg->{sql} !~ /\A\w+\z/;
		Tally::draw('DISTINCT in aggregates');
	}
	$filter = $common_filter // condition(@columns) if chance($common_filter ? 0.5 : 0.2);
	$call .= " FILTER (WHERE $filter)" if $filter;
	return { call => $call, sql => $norm ? sprintf($norm, $call) : $call, float => $float, exact_sum => $sum, constant => @pair ? constant_of($filter, @pair) : undef };
}

# Aggregates of one integer plus, minus or times constants, whose values come from one sum.
sub linear_sums
{
	my (@columns) = @_;
	my $column = pick(of_kind('int', @columns))->{name};
	my $form = pick('%s + %s', '%s + %s', '%s - %s', '%2$s - %1$s', '%s * %s', '%s::int8 * %s', '(%s - 1) * %s', '%s + %s::int2', '(%s + %s)::int8');
	my $filter = chance(0.2) ? ' FILTER (WHERE ' . condition(@columns) . ')' : '';
	my @decimals = grep { $_->{type} =~ /^numeric\(/ } @columns;

	$column = "($column % 1000)::int2" if chance(0.3);
	if (@decimals && chance(0.4))
	{
		$column = pick(@decimals)->{name};
		$form = pick('%s + %s', '%s * %s', '%s * (%s * 0.25)', '%2$s - %1$s', '(1 - %s) * %s', '%s - %s * 1.0000');
	}
	Tally::draw('linear sums');
	return map {
		my $constant = pick(map { "($_)" } int_between(-9, 9), int_between(-9, 9), chance(0.1) ? 2147483647 : 30000);
		my $call = 'agg:' . pick(qw(sum sum avg count)) . '(' . (chance(0.1) ? $column : sprintf($form, $column, $constant)) . ')' . (chance(0.9) ? $filter : '');
		{ call => $call, sql => $call, float => 0 };
	} 1 .. int_between(2, 5);
}

# The fraction of a percentile: a constant, an array, a subquery or an expression of a key. One in fifty is out of range.
sub fractions
{
	my ($keys) = @_;

	return pick("'{0, 0.3, 1}'::float8[]", "'{NULL, 0.5}'::float8[]", "'{}'::float8[]", 'ARRAY[0.25, 0.75]::float8[]') if chance(0.25);
	return pick('1.5', "'NaN'::float8") if chance(0.02);
	return 'NULL::float8' if chance(0.03);
	if (chance(0.1))
	{
		my ($column) = grep { /\A\w+\z/ && !/\A(?:NULL|true|false|\d+)\z/i } map { $_->{sql} } @$keys;

		Tally::draw('subqueries as fractions');
		return pick('(SELECT 0.75)', '(SELECT avg(v) FROM (VALUES (0.25), (0.5)) q(v))') if !$column || chance(0.3);
		return "(SELECT max(v) FROM (VALUES (0.25), (0.5)) q(v) WHERE $column IS NOT NULL OR v < 0.4)" if chance(0.7);
		return "(SELECT array_agg(v ORDER BY v) FROM (VALUES (0.25), (0.5)) q(v) WHERE $column IS NOT NULL OR v < 0.4)::float8[]";
	}
	if (@$keys && chance(0.15))
	{
		my $key = pick(@$keys)->{sql};

		Tally::draw('fractions of keys');
		return "(CASE WHEN ($key) IS NULL THEN 0.5 ELSE 0.25 END)";
	}
	return constant('float8', pick(0, 0.1, 0.25, 0.5, 0.5, 0.9, 0.95, 1));
}

# A percentile or mode, or undef. Only over types whose equal values print alike, because any of them may be the result.
sub ordered_set
{
	my ($keys, @columns) = @_;
	my ($kind, $sql, $call, $argument, $norm);

	$kind = pick(qw(cont cont disc disc mode median));
	if ($kind eq 'cont' || $kind eq 'median')
	{
		my @numbers = grep { $_->{info}{num} == 1 } of_kind('num', @columns);

		return undef if !@numbers;
		$sql = pick(@numbers);
		# + 0 turns -0 into 0
		$sql = "($sql->{name}::float8 + 0)";
		$call = $kind eq 'median' ? "gpu:median($sql)" : undef;
	}
	else
	{
		# there are no arrays of arrays
		my @sortable = grep { !$_->{info}{loose} && !$_->{info}{norm} && $_->{type} !~ /\[\]/ } of_kind('minmax', @columns);

		return undef if !@sortable;
		$argument = pick(@sortable);
		$sql = $argument->{name};
	}
	$sql = "($sql) " . pick('', '', 'DESC', 'NULLS FIRST') if $kind ne 'median';
	$call //= $kind eq 'mode' ? "agg:mode() WITHIN GROUP (ORDER BY $sql)" : "agg:percentile_$kind(" . fractions($keys) . ") WITHIN GROUP (ORDER BY $sql)";
	$call .= ' FILTER (WHERE ' . condition(@columns) . ')' if chance(0.2);
	Tally::draw('ordered sets');
	return { call => $call, sql => $call, float => 1 };
}

# An aggregate of a user, and the format that normalises its result.
sub own_function
{
	my ($int) = @_;

	return pick([ "lossy_sum($int)" ], [ "lossy_sum($int)" ], [ "null_sum($int)" ], [ "unsafe_sum($int)" ],
		[ "wide_avg($int)", 'trim_scale(%s)' ], [ "strict_max(nullif($int, 3)::text)" ], [ "bag(abs($int) % 20)" ]);
}

# A call of an aggregate that core does not have, as gpu:name. The reference executes it as a plain aggregate.
sub own_aggregate
{
	my ($wild, $from) = @_;
	my @columns = @{ $from->{columns} };
	my @forms = ('approx', 'histogram', 'thresholds', 'weights', 'logs', 'grid', 'auto', 'merge', 'product', 'extreme', 'extreme', 'top', 'counts', 'counts', 'mad', 'summary');
	my ($number, $value, $key, $call, $norm, $float, $row);
	my $kind;

	push @forms, qw(run ascending subarray exact linear) if $from->{base} && !$wild;
	$kind = pick(@forms);
	$number = pick(grep { $_->{info}{num} == 1 } of_kind('num', @columns));
	$number = $number->{type} =~ /numeric|int8/ ? "$number->{name}::float8" : $number->{name};
	$key = pick(of_kind('minmax', @columns));
	if ($kind eq 'approx')
	{
		$call = "gpu:approx_count_distinct(" . ($key->{type} eq 'money' ? '1' : $key->{name}) . ')';
	}
	elsif ($kind eq 'histogram')
	{
		my ($low, $high, $bins) = @{ pick([ -10, 100, 20 ], [ 100, -10, 7 ], [ 0, '1e300', 3 ], [ -0.5, 3.5, 4 ]) };
		$call = "gpu:histogram($number, " . constant('float8', $low) . ', '
		  . (chance(0.05) ? constant('float8') : constant('float8', $high)) . ", $bins)";
	}
	elsif ($kind eq 'thresholds')
	{
		$call = "gpu:histogram($number, " . constant('float8[]', pick("'{-5, 0, 0.5, 10}'", "'{0}'") . '::float8[]') . ')';
	}
	elsif ($kind eq 'weights')
	{
		$call = "gpu:histogram($number, 0, " . constant('float8', 50) . ', 5, ' . pick(of_kind('int', @columns))->{name} . ' % 100)';
	}
	elsif ($kind eq 'grid')
	{
		my $other = pick(of_kind('int', @columns))->{name};
		my ($x, $y) = chance(0.5) ? ($number, $other) : ($other, $number);
		my $bounds = pick('-10, 100, 5', '100, -10, 3', "-0.5, " . constant('float8', 3.5) . ', 4');
		$call = "gpu:histogram2d($x, $bounds, $y, " . pick('0, 50, 4', "-1, '1e300', 2", '7, -7, 1', '0, 5, 100') . (chance(0.3) ? ", $other % 100)" : ')');
	}
	elsif ($kind eq 'auto')
	{
		# the state or the result; -0 and 0 are the same to them
		$call = 'gpu:' . pick("histogram_auto($number, " . pick(2, 7, 1000), "histogram_equidepth($number, " . pick(1, 4, 50), "exp_histogram($number, " . pick(-10, 0, 3, 20)) . ')';
		$norm = 'md5(%s::text)';
	}
	elsif ($kind eq 'logs')
	{
		my ($low, $high, $bins) = @{ pick([ 1, 1000, 3 ], [ 0.125, 4096, 15 ], [ 7, 9, 40 ], [ '1e-300', '1e300', 5 ]) };
		$call = "gpu:histogram_log($number, " . constant('float8', $low) . ", $high, $bins)";
	}
	elsif ($kind eq 'merge')
	{
		# the sums of floats are exact in any order; some histograms are NULL, and in one query of twenty their lengths differ
		my $int = pick(of_kind('int', @columns))->{name};
		my $type = pick('int8', 'int8', 'float8', 'numeric');
		my $counts = "ARRAY[$int % 100, 1, CASE WHEN $int > 3 THEN 2 ELSE 0 END]::$type\[]";
		$counts = "CASE WHEN $int % 7 = 0 THEN NULL ELSE $counts END" if chance(0.3);
		$counts = "CASE WHEN $int = 3 THEN '{1}' ELSE $counts END" if chance(0.05);
		$call = "gpu:histogram_merge($counts)";
	}
	elsif ($kind eq 'product')
	{
		# few distinct factors, so that products have few digits
		my $int = pick(of_kind('int', @columns))->{name};
		$call = 'gpu:product(' . pick("nullif($int % 3, 0)::numeric", "CASE WHEN $int % 50 = 0 THEN 1.5 ELSE 1.0 END", "CASE $int WHEN 1 THEN 'NaN' WHEN 2 THEN 2 ELSE (-1)::numeric(4, 1) END") . ')';
		$norm = 'trim_scale(%s)';
	}
	elsif ($kind eq 'extreme')
	{
		$value = pick(of_kind('minmax', @columns));
		$norm = $value->{info}{norm};
		# an anonymous record; as text, because no table can have such a column
		$row = 1 if !$norm && !$value->{info}{loose} && $value->{type} !~ /wide/ && chance(0.2);
		$norm = '%s::text' if $row;
		$call = 'gpu:' . pick(qw(argmax argmin first last)) . '(' . ($row ? "ROW($value->{name}, 1)" : $value->{name}) . ", $key->{name})";
	}
	elsif ($kind eq 'top')
	{
		# there are no arrays of arrays
		$value = pick(grep { $_->{type} !~ /\[\]/ } of_kind('minmax', @columns));
		# often integers and floats alone, which a GPU can sort
		if (chance(0.5))
		{
			my @coded = grep { $_->{type} =~ /^(int[248]|float[48]|date|timestamp|timestamptz|time|bool|oid)$/ } @columns;
			($value, $key) = (pick(@coded), pick(@coded)) if @coded;
		}
		my $n = pick(1, 2, 2, 3, 10, 32, 33, 1000);
		# not a constant
		$n = "CASE WHEN $key->{name} IS NULL THEN $n ELSE $n END" if chance(0.15);
		$call = 'gpu:' . (chance(0.5) ? pick(qw(max_n min_n)) . "($value->{name}, $n)" : pick(qw(argmax_n argmin_n)) . "($value->{name}, $key->{name}, $n)");
		$norm = 'md5(%s::text)';
	}
	elsif ($kind eq 'counts')
	{
		# few enough values that gpu_top_k is exact
		$value = pick(grep { $_->{type} !~ /money|bit/ } of_kind('minmax', @columns));
		$call = 'gpu:' . pick("value_counts($value->{name})", "value_counts($value->{name}, " . pick(1, 2, 3, 100) . ')', "entropy($value->{name})",
			'top_k(' . pick(of_kind('int', @columns))->{name} . ' % 50, ' . pick(1, 2, 20) . ')');
		$norm = $call =~ /entropy/ ? '%s' : 'md5(%s::text)';
	}
	elsif ($kind eq 'summary')
	{
		# without the moments, whose last digits depend on the order of rows
		$call = "gpu:summary($number)";
		$norm = pick('(%s).histogram', '((%1$s).q1, (%1$s).median, (%1$s).q3)::text', '((%1$s).count, (%1$s).nulls, (%1$s).distinct_values, (%1$s).min, (%1$s).max)::text');
	}
	elsif ($kind eq 'mad')
	{
		$call = "gpu:mad($number)";
	}
	else
	{
		my $int = pick(of_kind('int', @columns))->{name};
		my %arguments = (
			run => 'longest_run(' . condition(@columns),
			ascending => "longest_ascending_run($key->{name}",
			subarray => "max_subarray_sum(($int % 1000)::int8",
			exact => 'max_subarray_sum(' . pick("$int % 1000 / 8.0", "$int\::numeric(20, 2)", "CASE $int WHEN 3 THEN 'NaN' WHEN 5 THEN '-Infinity' ELSE ($int % 10 - 4)::numeric END"),
			linear => "compose_linear(($int % 3)::float8, 1");

		$call = "gpu:$arguments{$kind} ORDER BY "
		  . (chance(0.5) ? $key->{name} . pick('', ' DESC', ' NULLS FIRST') . ', ' : '') . 'id)';
	}
	# the same with partial states, as foreign servers compute them
	my $parts;
	if ($kind eq 'extreme' && !$row && $value->{type} !~ /wide/ && chance(0.3))
	{
		my ($name) = $call =~ /gpu:(\w+)/;

		$parts = "'gpu_$name(anyelement, anycompatible)'::regprocedure";
		$call = "gpuagg_merge(gpuagg_pack($parts, $value->{name}, $key->{name}))";
		Tally::draw('aggregates in parts');
	}
	$call .= ' FILTER (WHERE ' . condition(@columns) . ')' if chance(0.2);
	$call = "gpuagg_finish($call, $parts, NULL::$value->{type})" if $parts;
	return { call => $call, sql => $norm ? sprintf($norm, $call) : $call, float => $float };
}

# Returns calls of one or more of core's aggregates with an ORDER BY, each with its own order or none.
sub ordered_aggregates
{
	my ($from) = @_;
	my @columns = grep { $_->{type} !~ /wide/ } @{ $from->{columns} };
	my $any = pick(@columns);
	my $column = $any->{name};
	my $key = pick(of_kind('minmax', @columns));
	my $int = '(' . pick(of_kind('int', @columns))->{name} . ' % 1000)::int4';
	my $scales = "CASE WHEN $int > 0 THEN $int\::numeric(12,2) ELSE 1.0625 END";
	my @calls = @{ pick([ [ "string_agg($column\::text, ','", 'md5(%s)' ] ], [ [ "array_agg($column", 'md5(%s::text)' ] ],
			[ [ "jsonb_agg($int", 'md5(%s::text)' ] ], [ [ "agg:sum($int", '%s' ] ], [ [ "agg:max($int", '%s' ] ],
			[ [ "agg:count($column", '%s' ], [ "array_agg($column", 'md5(%s::text)' ] ],
			[ [ "agg:count($column", '%s' ], [ "agg:count($column)", '%s' ], [ "string_agg($column\::text, ','", 'md5(%s)' ],
				$any->{info}{nokey} ? () : [ "agg:count(DISTINCT $column)", '%s' ] ],
			[ [ "agg:sum($scales", '%s' ], [ "jsonb_agg($scales", 'md5(%s::text)' ] ]) };

	Tally::draw(q{orders of core's aggregates});
	return map {
		my ($call, $norm) = @$_;
		my $order = (chance(0.6) ? $key->{name} . pick('', ' DESC', ' NULLS FIRST', ' DESC NULLS LAST') . ', ' : '') . pick('id', 'id DESC', '-id');
		$call .= " ORDER BY $order)" if $call !~ /\)\z/;
		$call .= ' FILTER (WHERE ' . condition(@columns) . ')' if chance(0.2);
		{ call => $call, sql => sprintf($norm, $call), float => 0 };
	} @calls;
}

# An expression that tells whether a group's key prints like one of the group's rows. Equal keys may print differently.
sub looks_like_a_row
{
	my ($sql) = @_;

	return qq{(concat($sql) COLLATE "C" = ANY (array_agg(concat($sql) COLLATE "C")))};
}

our $texts;						# most keys are texts, many of them computed

# A key of text: a column, an expression of some, or a choice between two or a constant. Undefined without such a column.
sub text_key
{
	my (@columns) = @_;
	my ($a, $b) = map { Expr::text_column(@columns) } 1 .. 2;
	my $condition = simple_condition(@columns);
	my $sql;

	return unless $a && $b;
	$sql = pick($a, Expr::expression('text', @columns)->{sql}, "CASE WHEN $condition THEN $a ELSE " . constant('text') . ' END',
		"CASE WHEN $condition THEN $a WHEN $b LIKE '%a%' THEN 'a' END", "CASE WHEN $condition THEN $a ELSE $b END", "coalesce($a, $b, 'none')",
		"CASE WHEN $condition THEN upper($a) ELSE coalesce($b, 'x') END", "regexp_replace($a, '[0-9]', '')");
	return if Values::literals($sql) !~ /[a-z]/;
	Tally::draw('keys of text');
	return { sql => $sql, shown => "($sql)" };
}

# Returns a key: { sql to group by, shown: an expression that prints equal keys alike, lossy }. $by_image allows looks_like_a_row().
sub key
{
	my ($by_image, @columns) = @_;
	@columns = grep { !$_->{info}{nokey} } @columns;
	my $column = pick(@columns);
	my $sql = $column->{name};
	my $type = Values::bare_type($column->{type});
	my $shown;

	if ($texts && chance(0.7))
	{
		my $key = text_key(@columns);

		return $key if $key;
	}
	if ($type && chance(0.06))
	{
		my $constant = constant($type);

		Tally::draw('constants as keys');
		return { sql => $constant, shown => $type =~ /^(?:text|varchar|bytea|jsonb)/ ? "md5($constant\::text)" : $constant };
	}
	$sql = chosen_constant($column, @columns) if $type && chance(0.06);
	$shown = $column->{info}{norm} ? sprintf($column->{info}{norm}, $sql) : $sql;
	return { sql => $sql, shown => looks_like_a_row($sql) } if $column->{info}{loose} && $by_image && chance(0.5);

	if (chance($Tables::pages ? 0.3 : 0.1))
	{
		my $made = Expr::key(@columns);

		# a plain number in GROUP BY would refer to an output column
		return { sql => $made->{sql}, shown => sprintf($made->{info}{norm} // '%s', $made->{sql}) }
		  if Values::literals($made->{sql}) =~ /[a-z]/;
	}
	if (chance(0.25))
	{
		my $int = pick(of_kind('int', @columns));
		$sql = pick("$int->{name} % 5", "$int->{name} + 1", "$int->{name} IS NULL", "coalesce($int->{name}, -1)",
			"$int->{name}::numeric / 2", "($int->{name} % 3)::text", "$int->{name}::float8");
		return { sql => $sql, shown => $sql };
	}
	return { sql => $sql, shown => $shown, lossy => $column->{info}{lossy} };
}

# Returns a key as key() does, one that is a function of another key.
sub dependent_key
{
	my ($key, @columns) = @_;
	my ($int) = grep { $_->{name} eq $key } of_kind('int', @columns);
	my $sql = pick("($key) IS NULL", "octet_length(($key)::text)", "coalesce(($key) = ($key), true)",
		$int ? ("$key + 1", "-($key)", "100 / ($key)", "($key % 7) * 2", "$key\::float8") : ());

	Tally::draw('keys that depend on keys');
	return { sql => $sql, shown => $sql };
}

# A random subset of the list, in its order.
sub some_of
{
	return grep { chance(0.5) } @_;
}

# A GROUP BY clause with several grouping sets of these keys.
sub several_sets
{
	my (@keys) = @_;
	my @halves = (\@keys);
	my @lists;

	if (chance(0.25) && @keys > 1)
	{
		my $at = int_between(1, $#keys);

		@halves = ([ @keys[ 0 .. $at - 1 ] ], [ @keys[ $at .. $#keys ] ]);
	}
	foreach my $half (@halves)
	{
		my $kind = pick(qw(ROLLUP CUBE SETS SETS));
		my $list = join(', ', @$half);

		# each key must be in some set, because the target list has all keys
		push @lists, $kind eq 'SETS'
		  ? 'GROUPING SETS (' . join(', ', "($list)", (map { '(' . join(', ', some_of(@$half)) . ')' } 1 .. int_between(0, 3)), chance(0.3) ? "ROLLUP ($list)" : ()) . ')'
		  : chance(0.2) && @$half > 1 ? "$kind (($half->[0], $half->[1])" . join('', map { ", $_" } @$half[ 2 .. $#$half ]) . ')'
		  : "$kind ($list)";
	}
	@lists = ('GROUPING SETS (' . join(', ', map { "($_)" } @keys) . ')') if chance(0.15);
	Tally::draw('GROUPING SETS');
	return pick('', '', '', @lists > 1 ? 'DISTINCT ' : '') . join(', ', @lists);
}

# A constant for all rows of a UNION ALL's arm. Sums with a number that is too small to change others would depend on the order of rows.
sub summable_constant
{
	my ($type) = @_;
	my $literal = Values::literal($type, chance(0.3));

	return constant($type, $literal =~ s/'(?:1e-45|5e-324)'/'0.5'/r);
}

# A second arm of a UNION ALL, with constants for some of the columns.
sub arm
{
	my ($from, @columns) = @_;

	return 'SELECT ' . join(', ', map {
			my $type = Values::bare_type($_->{type});
			$type && $_->{type} !~ /COLLATE/ && chance(0.2) ? summable_constant($type) . " AS $_->{name}" : $_->{name} } @columns)
	  . " FROM $from";
}

# Subqueries of t that group it: groups of groups, and set operations, whose sides are groups. Equal keys look alike, as any row's may be
# shown.
sub groups_of
{
	my (@columns) = @_;
	my @ints = of_kind('int', @columns);
	my @keys = (pick(@ints), pick(@ints));
	my ($int, $condition) = (pick(@ints), condition(@columns));
	my %count = (type => 'int8', info => $Types::types{int8});
	my $list;

	pop @keys if $keys[0]{name} eq $keys[1]{name} || chance(0.4);
	$list = join(', ', map { $_->{name} } @keys);
	my $groups = "(SELECT $list, agg:count(*)" . pick('', '', ' * 3') . " AS gn, agg:max($int->{name}) AS gx FROM t" . pick('', " WHERE $condition")
	  . " GROUP BY $list" . pick('', '', ' HAVING agg:count(*) > 1', " HAVING agg:min($int->{name}) < 1000", ' OFFSET 0') . ') s';
	my @of_groups = (@keys, { name => 'gn', %count }, { %$int, name => 'gx' });
	return ({ sql => $groups, columns => \@of_groups, is => 'groups of groups' },
		{ sql => "(SELECT gn, agg:count(*) AS gm, agg:min(gx) AS gx FROM $groups WHERE gn <> 2 GROUP BY gn) s", is => 'groups of groups',
			columns => [ { name => 'gn', %count }, { name => 'gm', %count }, { %$int, name => 'gx' } ] },
		{ sql => "(SELECT DISTINCT $list FROM t) s", columns => \@keys, is => 'groups of groups' },
		{ sql => "(SELECT $list FROM t " . pick('INTERSECT', 'EXCEPT') . pick('', ' ALL') . " SELECT $list FROM " . pick('p', 't') . " WHERE $condition) s",
			columns => \@keys, is => 'INTERSECT and EXCEPT' });
}

# Returns a FROM clause: { sql, columns, orderly: the order of rows does not depend on the plan, base: it is t itself, so it has "id",
# key: a primary key on which the columns "of" depend, is: its feature in Tally }.
sub source
{
	my ($tables) = @_;
	my ($t, $d) = @{$tables}{qw(t d)};
	my @tc = @{ $t->{columns} };
	my @dc = @{ $d->{columns} };
	my @narrow = ((grep { $_->{info}{int} } @tc)[0], grep { chance(0.5) } @tc);
	my @oid = { name => 'tableoid', type => 'oid', info => $Types::types{oid} };
	my $barrier = pick('', ' WITH (security_barrier)');
	my %seen;
	my ($narrow, @both);

	@narrow = grep { !$seen{ $_->{name} }++ } @narrow;
	$narrow = join(', ', map { $_->{name} } @narrow);
	return { sql => 't', columns => [ @tc, chance(0.1) ? @oid : () ], orderly => 1, base => 1, $t->{key} ? (key => 'id', of => \@tc) : () }
	  if $tables->{wild} || chance(0.45);
	@both = (
		{ sql => 'p', columns => [ @tc, chance(0.3) ? @oid : () ] },
		{ sql => "(SELECT $narrow FROM t WHERE " . condition(@tc) . ') s', columns => \@narrow, orderly => 1 },
		{ sql => "(SELECT $narrow FROM t" . (chance(0.5) ? ' WHERE ' . condition(@tc) : '') . ' LIMIT ' . pick('1000000', '1000000', '1000000', 'NULL', '0') . ') s',
			columns => \@narrow, orderly => 1 },
		{ sql => "(SELECT $narrow FROM t UNION ALL " . arm(pick('p', 'p', 't'), @narrow) . ') s', columns => \@narrow, is => 'UNION ALL' },
		{ sql => "(SELECT $narrow FROM t WHERE " . condition(@tc) . ' UNION ALL ' . arm('t', @narrow) . ') s', columns => \@narrow, is => 'UNION ALL' },
		groups_of(@tc), $Tables::pages ? () : groups_of(@tc),
		{ sql => 'v', columns => \@narrow, view => "v$barrier AS SELECT $narrow FROM t WHERE " . condition(@tc), orderly => 1, is => 'views' });
	return pick(@both, { sql => 'i', columns => \@tc }, { sql => 'ONLY i', columns => \@tc }) if $Tables::pages;
	return pick(
		@both,
		{ sql => 't JOIN d ON aj = bj', columns => [ @tc, @dc ], $d->{key} ? (key => 'd.id', of => \@dc) : () },
		{ sql => 't LEFT JOIN d ON aj = bj AND d.id % 2 = 0', columns => [ @tc, @dc ] },
		{ sql => "(SELECT $narrow FROM t WHERE " . condition(@tc) . ' OFFSET 0) s', columns => \@narrow, orderly => 1 },
		{ sql => 'c', with => "WITH c AS MATERIALIZED (SELECT $narrow FROM t)", columns => \@narrow, orderly => 1, is => 'WITH' },
		{ sql => 'c', with => "WITH c AS NOT MATERIALIZED (SELECT $narrow FROM t)", columns => \@narrow, orderly => 1, is => 'WITH' },
		{ sql => '(SELECT * FROM c UNION ALL SELECT * FROM c) s', with => "WITH c AS (SELECT $narrow FROM t)", columns => \@narrow, is => 'WITH' },
		{ sql => 't TABLESAMPLE ' . pick('SYSTEM', 'BERNOULLI') . ' (60) REPEATABLE (3)', columns => \@tc, orderly => 1, is => 'TABLESAMPLE' },
		{ sql => 'w', columns => [ Tables::wide_columns() ], is => 'wide values' },
		{ sql => 'o', columns => [ Tables::odd_columns() ], is => 'odd values' },
		{
			sql => 'generate_series(1, ' . pick(5, 500, 3000) . ') g(n)',
			columns => [ { name => 'n', type => 'int4', info => $Types::types{int4} } ],
			orderly => 1
		});
}

# Calls of aggregates that core does not have, of ordered aggregates, percentiles and modes; often none.
sub special_aggregates
{
	my ($wild, $from, $keys, $sets) = @_;
	my @calls = chance(0.25) ? map { own_aggregate($wild, $from) } 1 .. pick(1, 2, 3) : ();

	push @calls, map { ordered_aggregates($from) } 1 .. pick(1, 1, 2, 3) if $from->{base} && !$wild && chance(0.12);
	push @calls, grep { $_ } map { ordered_set($keys, @{ $from->{columns} }) } 1 .. pick(1, 1, 2, 4) if chance($sets ? 0.4 : 0.15);
	if (grep { $_->{call} =~ /WITHIN GROUP|gpu:median/ } @calls)
	{
		Tally::draw('ordered sets in grouping sets') if $sets;
		# also ordered aggregates in the same query
		push @calls, ordered_aggregates($from) if $from->{base} && !$wild && chance(0.3);
		Tally::draw('ordered sets beside orders') if grep { $_->{call} =~ /ORDER BY/ && $_->{call} !~ /WITHIN GROUP/ } @calls;
	}
	return @calls;
}

sub having_clause
{
	my ($grouping, @columns) = @_;

	return ' HAVING ' . pick('agg:count(*) > ' . Values::int_constant(0, 5),
		$grouping ? ("$grouping > 0", "$grouping <> 1 AND agg:count(*) > 1") : (),
		'agg:max(' . pick(of_kind('int', @columns))->{name} . ') > ' . Values::int_constant(0, 3));
}

# ORDER BY aggregates with a LIMIT, where the keys break ties; or ORDER BY keys.
sub order_clause
{
	my ($keys, $alone, $sets, $grouping, @columns) = @_;
	my $sql;

	if (!$alone && !$sets && chance(0.4) && !grep { $_->{lossy} } @$keys)
	{
		my $int = pick(of_kind('int', @columns))->{name};
		my @values = map { pick('agg:count(*)', "agg:count($int)", "agg:sum($int)", "agg:max($int)", "agg:min($int)", "agg:avg($int)") }
			1 .. (chance(0.4) ? int_between(2, 3) : 1);
		Tally::draw('ORDER BY aggregate LIMIT');
		Tally::draw('ORDER BY aggregates LIMIT') if @values > 1;
		$sql = ' ORDER BY ' . join(', ', map { "$_ " . pick('', 'DESC', 'NULLS FIRST', 'DESC NULLS LAST') } @values);
		$sql .= ", $_ " . pick('', 'DESC') foreach 1 .. @$keys;
		return $sql . pick(' LIMIT ' . int_between(0, 20), ' LIMIT ' . int_between(1, 20) . ' OFFSET ' . int_between(0, 9),
			' FETCH FIRST ' . int_between(1, 9) . ' ROWS WITH TIES');
	}
	$sql = ' ORDER BY ' . join(', ', $grouping && chance(0.5) ? "$grouping DESC" : (), map { "$_ " . pick('', 'DESC', 'NULLS FIRST') } 1 .. @$keys);
	# a LIMIT needs a total order: no keys that print alike, and no grouping sets, in which a missing key equals a NULL key
	$sql .= ' LIMIT ' . int_between(1, 20) if chance(0.5) && !$sets && !grep { $_->{lossy} } @$keys;
	return $sql;
}

# Returns a query: {
#	setup, teardown	statements before and after it
#	sql				the query with agg:name for each aggregate
#	float			for each output column, 0: compare exactly; 1: with a tolerance; 2: with a larger one
#	constant		for each output column, [its SQL, the check that replaces it: "constant" of aggregate()], or undef
#	orderly			results depend on the order of rows, so all variants must read rows in one order
# }
sub make_query
{
	my ($tables) = @_;

	Tally::begin_query();
	return Special::make_query($tables) if !$tables->{wild} && chance($gpu ? 0.35 : 0.23);
	return query_over(source($tables), $tables);
}

# Returns a query over a FROM clause of source(). "where" has conditions that belong to it. $forms: the forms that it may have, or undef.
sub query_over
{
	my ($from, $tables, $forms) = @_;
	my @columns = @{ $from->{columns} };
	my $serial = $tables->{wild} || chance(0.6);
	my $within = $Tables::pages && !$tables->{wild} && chance(0.15) ? Pages::own_changes() : undef;
	my $indexed = $Tables::pages && !$tables->{wild} && chance(0.2) && grep { $_->{name} eq 'aj' } @columns;
	# an index scan changes the order of rows
	my $orderly = $from->{orderly} && $serial && !$within && !$indexed;
	my $nkeys = pick(0, 1, 1, 1, 2, 2, 3, int_between(4, 8));
	# an ORDER BY may sort the rows below the aggregation
	my $order_by = $nkeys && chance(0.25);
	my @keys = map { key(!$order_by, @columns) } 1 .. $nkeys;
	my $sets = @keys && chance(0.12);
	my $grouping;
	my @own = special_aggregates($tables->{wild}, $from, \@keys, $sets);
	# core sorts the rows for these
	my $sorts = $order_by || $sets || grep { $_->{call} =~ /ORDER BY|median/ } @own;
	local $common_filter = chance(0.2) ? condition(@columns) : undef;
	local $exact = chance(0.15);
	local $sums_only = chance(0.6);
	my @aggs = map { aggregate($tables->{wild}, $orderly && !$sorts, @columns) } 1 .. pick(1, 1, 2, 3, 5, 8);
	push @aggs, linear_sums(@columns) if chance(0.12);
	my $where = join(' AND ', $from->{where} || (), ($indexed ? Pages::index_condition('aj', $from->{base}) : ()), chance(0.4) ? '(' . condition(@columns) . ')' : ());
	my (@out, @float, @constant, $sql, %query);

	# a query without aggregates
	my $alone = @keys && !$sets && !$from->{key} && !(grep { $_->{shown} =~ /array_agg/ } @keys) && chance(0.08) ? pick('GROUP BY', 'DISTINCT') : '';

	if ($alone)
	{
		@aggs = @own = ();
		Tally::draw("$alone alone");
	}
	if (@keys && chance(0.1))
	{
		@keys = (@keys, $keys[0]);
	}
	push @keys, dependent_key($keys[0]{sql}, @columns) if @keys && chance(0.1);
	$grouping = 'GROUPING(' . join(', ', map { $_->{sql} } pick([ @keys ], [ $keys[0] ])->@*) . ')' if @keys && chance($sets ? 0.5 : 0.02);
	foreach my $key (@keys)
	{
		push @out, $key->{shown};
		push @float, 0;
	}
	if ($from->{key} && !$order_by && chance(0.1))
	{
		my @dependent = map { $_->{name} } grep { $_->{type} !~ /wide/ } @{ $from->{of} };

		Tally::draw('columns that depend on a key');
		push @keys, { sql => $from->{key} };
		push @out, $from->{key}, @dependent;
		push @float, (0) x (1 + @dependent);
		$sets = 0;
	}
	$grouping = undef if $alone eq 'DISTINCT';
	if ($grouping)
	{
		push @out, $grouping;
		push @float, 0;
	}
	Tally::draw('GROUP BY ' . (@keys > 1 ? 'several keys' : @keys ? 'one key' : 'nothing'));
	Tally::draw($from->{is}) if $from->{is};
	Tally::draw('partitions') if $from->{sql} eq 'p';
	foreach my $agg (@aggs, @own)
	{
		$constant[@out] = [ $agg->{sql}, $agg->{constant} ] if $agg->{constant};
		push @out, $agg->{sql};
		push @float, $agg->{float} || 0;
	}
	if (!$alone && chance(0.15))
	{
		push @out, 'agg:count(*) * 2 + coalesce(agg:sum(' . pick(of_kind('int', @columns))->{name} . '), 0)';
		push @float, 0;
	}
	if (!$alone && chance(0.05) && @keys)
	{
		push @out, 'sum(agg:count(*)) OVER ()';
		push @float, 0;
	}
	$sql = ($from->{with} ? "$from->{with} " : '') . 'SELECT ' . ($alone eq 'DISTINCT' ? 'DISTINCT ' : '') . join(', ', @out) . " FROM $from->{sql}";
	$sql .= " WHERE $where" if $where;
	if (@keys && $alone ne 'DISTINCT')
	{
		my $list = join(', ', map { $_->{sql} } @keys);
		$sql .= ' GROUP BY ' . ($sets ? several_sets(map { $_->{sql} } @keys) : $list);
	}
	$sql .= having_clause($grouping, @columns) if !$alone && chance(0.15);
	if ($order_by)
	{
		$sql .= order_clause(\@keys, $alone, $sets, $grouping, @columns);
		$query{ordered} = 1;
	}
	%query = (%query, sql => $sql, float => \@float, constant => \@constant, orderly => $orderly, serial => $serial, indexed => $indexed, setup => [], teardown => [],
		$forms ? (only_forms => $forms) : ());
	if ($from->{view})
	{
		push @{ $query{setup} }, 'CREATE OR REPLACE TEMP VIEW ' . Values::literals($from->{view});
		Tally::draw_from($query{setup}[-1]);
		push @{ $query{teardown} }, 'DROP VIEW IF EXISTS v';
	}
	$query{within} = $within if $within;
	$query{settings} = [ "timezone = '" . pick('Etc/GMT+8', 'America/New_York', 'Asia/Kolkata', 'Europe/Berlin', 'Australia/Lord_Howe', 'EST5EDT,M3.2.0,M11.1.0') . "'" ] if chance(0.3);
	if ($exact)
	{
		push @{ $query{settings} }, 'gpuagg.float_sum = exact';
		$query{exact} = 1;
		Tally::draw('exact sums') if grep { $_->{call} =~ /agg:(?:sum|avg|std|var|corr|covar|regr)/ } @aggs;
		Tally::draw('exact sums of floats') if grep { $_->{exact_sum} } @aggs;
	}
	Forms::reshape(\%query, $tables);
	return \%query;
}

1;
