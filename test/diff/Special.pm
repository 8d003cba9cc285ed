# Queries for one purpose each, which random queries rarely have: how often functions are called, expressions that must not be
# evaluated, states that are spilled and combined.
package Special;
use strict;
use warnings;
use Expr;
use Tables;
use Tally;
use Types;
use Values;

BEGIN { *pick = \&Types::pick; *chance = \&Types::chance; *int_between = \&Types::int_between; *constant = \&Values::constant; }

# Picks n elements of a list.
sub some
{
	my ($n, @list) = @_;
	my @out;

	push @out, splice(@list, int(rand(@list)), 1) while @list && $n-- > 0;
	return @out;
}

# Queries over random() whose answers are the same whatever it returns, if it is called once for each row.
sub volatile_values
{
	my ($t, @ints) = @_;
	my $x = pick('random()', '(random() * 1000)::numeric(10,2)', '(random() * 1000)::int', 'random()::text', 'clock_timestamp()');
	my $from = pick(
		("(SELECT $x x, aj FROM t UNION ALL SELECT $x, aj FROM t) s") x 3,
		"(SELECT $x x, aj FROM t) s",
		"(SELECT $x x, aj FROM t OFFSET 0) s", "(SELECT $x x, aj FROM t WHERE $ints[0] > 0) s", "(SELECT $x x, aj FROM p) s");
	my @calls = (
		'agg:count(*) FILTER (WHERE x < x)', 'agg:max((x <> x)::int)', 'agg:count(x)', 'agg:bool_and(x = x)',
		'agg:sum(CASE WHEN x > x THEN 1 ELSE 0 END)', 'agg:count(nullif(x, x))', 'agg:min((x = x)::int)');

	push @calls, ('agg:sum(x - x)') x 3 if $x !~ /text|clock/;
	if (chance(0.3))
	{
		return {
			sql => "SELECT agg:sum((x <> s)::int), agg:bool_and(x = m) FROM (SELECT x, agg:min(x) s, agg:max(x) m FROM $from GROUP BY x) z",
			float => [ 0, 0 ] };
	}
	my @out = some(int_between(1, 4), @calls);
	my $sql = join(', ', @out) . " FROM $from" . pick('', '', ' WHERE x = x', ' WHERE aj > 3');

	return chance(0.5) ? { sql => "SELECT $sql", float => [ (0) x @out ] } : { sql => "SELECT aj, $sql GROUP BY aj", float => [ (0) x (1 + @out) ] };
}

# Queries whose functions advance a sequence. Its value counts the calls.
sub volatile_calls
{
	my ($t, @ints) = @_;
	my $int = "($ints[0] % 1000)::int8";
	my $x = pick("nextval('sq')", "nextval('sq')", "bump($int)");
	my ($condition, $arm) = (Gen::simple_condition(@{ $t->{columns} }), chance(0.5) ? "SELECT $x, aj FROM t" : "SELECT 1, 2");
	my $from = pick(
		"(SELECT $x x, aj FROM t OFFSET 0) s", "(SELECT $x x, aj FROM t) s", "(SELECT $x x, aj FROM t WHERE $condition) s",
		"(SELECT $x x, aj FROM t UNION ALL $arm) s", "t WHERE bump(7) = 7", "t WHERE $condition AND bump(aj) >= 0", "(SELECT aj, id x FROM t WHERE bump(id) % 2 = 0) s");
	my ($sql, @out);

	if ($from =~ /^t /)
	{
		@out = ('agg:count(*)', "agg:sum($ints[0] % 1000)");
	}
	else
	{
		@out = pick([ 'agg:count(*)', 'agg:sum(x)' ], ['agg:count(*)'], [ 'agg:count(aj)', 'agg:max(x)', 'agg:min(x)', 'agg:sum(x + x)' ], ['agg:sum(aj)']);
		@out = @{ $out[0] };
	}
	$sql = 'SELECT ' . join(', ', @out) . " FROM $from";
	if (chance(0.25))
	{
		@out = (1, 2);
		$sql = "SELECT k, agg:count(*) FROM (SELECT nextval('sq') % 3 AS k FROM t" . pick('', ' OFFSET 0') . ') s GROUP BY k';
		$sql = "SELECT nextval('sq') % 3 AS k, agg:count(*) FROM t GROUP BY 1" if chance(0.3);
	}
	return {
		sql => $sql,
		float => [ (0) x @out ],
		reset => ['ALTER SEQUENCE sq RESTART'],
		also => ['SELECT last_value, is_called FROM sq'],
		orderly => 1,
		only_forms => [qw(plain prepared function do_block made subquery)]
	};
}

# Expressions that would fail, behind conditions that keep them from being evaluated.
sub not_reached
{
	my ($t, @ints) = @_;
	my $f = pick(Expr::failing(), Expr::failing(), 'id / (id - id)', '1 / (aj - aj)', "'x'::text::int");
	my $int = "($ints[0] % 100)";
	my @args = (
		"CASE WHEN id < 0 THEN $f ELSE $int END", "CASE WHEN id > 0 THEN $int ELSE $f END", "coalesce(id, $f)", "coalesce(id, $int, $f)",
		"CASE WHEN id > 0 OR $f = 1 THEN $int END", "CASE WHEN id < 0 AND $f = 1 THEN 1 ELSE $int END", "CASE id WHEN id THEN $int WHEN $f THEN 1 END");
	my @calls = (
		map({ 'agg:' . pick(qw(sum max count)) . "($_)" } @args),
		"agg:sum($f) FILTER (WHERE id < 0)", "agg:count(*) FILTER (WHERE id > 0 OR $f = 1)", "agg:bool_or(id < 0 AND $f = 1)");
	my @out = some(int_between(1, 3), @calls);
	my $sql = join(', ', @out) . ' FROM t';

	return { sql => "SELECT $args[2], $sql WHERE id % 2 = 0 GROUP BY 1", float => [ (0) x (1 + @out) ] } if chance(0.3);
	return { sql => "SELECT agg:max($f), agg:sum($f), $sql WHERE id < 0", float => [ (0) x (2 + @out) ] } if chance(0.3);
	return { sql => "SELECT $sql WHERE id > 0 OR $f = 1", float => [ (0) x @out ] } if chance(0.3);
	return { sql => "SELECT $sql", float => [ (0) x @out ] };
}

# Histograms over no rows, whose bounds would be errors.
sub bounds
{
	my ($t, @ints) = @_;
	my $bad = pick("current_setting('nope.nope')::float8", Expr::failing() . '::float8', "'NaN'::float8", 'NULL::float8', '0', constant('float8'), "'x'::text::float8");
	my $bins = pick(10, 10, 10, 0, -1, 'NULL', 'length(repeat(\'x\', 3))');
	my $empty = pick(' WHERE id < 0', ' WHERE false', ' WHERE NULL');
	my $call = pick("gpu:histogram(aj, 0, $bad, $bins)", "gpu:histogram(aj, $bad, 10, $bins)", "gpu:histogram(aj, 0, $bad, $bins, id)");

	return { sql => "SELECT agg:count(*), $call FROM t$empty", float => [ 0, 0 ] } if chance(0.4);
	return { sql => "SELECT aj, $call, agg:count(*) FROM t$empty GROUP BY aj", float => [ 0, 0, 0 ] } if chance(0.3);
	return { sql => "SELECT aj, $call FILTER (WHERE id < 0), agg:count(*) FROM t GROUP BY aj", float => [ 0, 0, 0 ] } if chance(0.6);
	return { sql => "SELECT gpu:histogram(NULL::float8, 0, $bad, $bins), agg:count(*) FROM t$empty", float => [ 0, 0 ] };
}

# Arguments and ORDER BY expressions that would fail for rows which a FILTER removes.
sub filtered
{
	my ($t, @ints) = @_;
	my $order = pick('id', '1 / (id % 3), id', '10 / aj, id', 'aj, id');
	my $filter = ' FILTER (WHERE ' . pick('id % 3 <> 0 AND aj <> 0', 'aj <> 0 AND id % 3 > 0') . ')';
	my @calls = (
		"gpu:longest_run((aj + id) % 2 = 0 ORDER BY $order)$filter", "gpu:max_subarray_sum((10 / aj - 3)::int8 ORDER BY $order)$filter",
		"gpu:longest_ascending_run(100 / aj ORDER BY $order)$filter", "agg:sum(100 / aj)$filter", "gpu:argmax(100 / aj, 1 / (id % 3) + id)$filter",
		"agg:max(100 / (id % 3))$filter", "gpu:approx_count_distinct(100 / aj)$filter", "gpu:histogram(100 / aj, 0, 100, 7)$filter",
		"agg:count(*)$filter", "round((gpu:skewness(100 / aj)$filter)::numeric, 6)", "round((gpu:kurtosis_pop(100 / (id % 3))$filter)::numeric, 6)");
	my @out = some(int_between(1, 4), @calls);
	my $sql = join(', ', @out) . ' FROM t';

	return chance(0.5) ? { sql => "SELECT $sql", float => [ (0) x @out ] } : { sql => "SELECT id % 7, $sql GROUP BY 1", float => [ (0) x (1 + @out) ] };
}

# Aggregates of a user over many groups, whose states need more than 64 kB.
sub many_states
{
	my ($t, @ints) = @_;
	my $int = "($ints[0] % 1000)::int4";
	my $key = pick('id / 2', 'id % 2500', 'id', "id % 1000, aj", 'aj');
	my @calls = map { $_->[1] ? sprintf($_->[1], $_->[0]) : $_->[0] } map { Gen::own_function($int) } 1 .. int_between(1, 3);
	my @keys = split(/, /, $key);

	push @calls, 'agg:count(*)', pick("agg:sum($int)", 'agg:max(id)');
	return { sql => "SELECT $key, " . join(', ', @calls) . ' FROM ' . pick('t', 't', 'p') . " GROUP BY $key", float => [ (0) x (@keys + @calls) ], serial => chance(0.7) };
}

# Small batches, each with longer values than the one before, and constants as arguments that no vector can represent. They test the
# memory of a batch and the memory of the query.
sub longer_values
{
	my ($t, @ints) = @_;
	my $text = 'repeat(' . pick("'d'", "'xy'") . ', 8 + (id / ' . pick(64, 300, 1000) . ') * 6)';
	my $type = pick('numeric(10,2)', 'numeric(40,2)', 'numeric(40,2)', 'numeric', 'text', 'float8');
	my $constant = constant($type, Values::literal($type, 1));
	my $of_text = pick("left(agg:max($text), 40)", "left(agg:min($text), 40)", "length(string_agg($text, '+'))", "left(gpu:last($text, id), 40)");
	my $of_constant = $type eq 'text' ? pick('left(agg:min(%s), 40)', 'agg:count(%s)', 'left(gpu:first(%s, id), 40)') : pick(qw(agg:sum(%s) agg:min(%s) agg:max(%s) agg:avg(%s) agg:count(%s)));
	my $key = pick('id % 5', 'aj', "left($text, 9)", "md5($text)", 'id % 3, ' . "left($text, 12)");
	my @out = (split(/, (?=left)/, $key), $of_text, sprintf($of_constant, $constant), pick("agg:sum(length($text))", 'agg:count(*)', sprintf($of_constant, "CASE WHEN id % 3 = 0 THEN $constant END")));

	return {
		sql => 'SELECT ' . join(', ', @out) . ' FROM ' . pick('t', 't', 't', '(SELECT id, aj FROM t OFFSET 0) t') . " GROUP BY $key",
		float => [ map { /avg|sum\(length/ ? 1 : 0 } @out ],
		small_batches => 1
	};
}

# A comparison of a column with a constant, without an expression.
sub plain_condition
{
	my @columns = @_;
	my $column = pick(@columns);
	my ($name, $type) = ($column->{name}, Values::bare_type($column->{type}));

	return $name if $column->{info}{bool};
	return "$name IS NOT NULL" if !$type || !$column->{info}{minmax} || chance(0.1);
	return "$name " . pick('<', '<=', '>', '>=', chance(0.3) ? '=' : '<>', '<>') . ' ' . constant($type, Values::literal($type, chance(0.1)));
}

# An aggregate of a column, without an expression, in the form of Gen::aggregate. If $light, no variance and no sum of floats.
sub plain_aggregate
{
	my ($light, @columns) = @_;
	my $column = pick(@columns);
	my ($name, $info) = ($column->{name}, $column->{info});
	my $number = $info->{num} && !($light && $info->{float});
	my @names = ('count', $info->{minmax} ? qw(min max min max) : (), $number ? qw(sum avg) : (), $number && !$light ? 'stddev' : ());
	my $of = pick(@names);
	my $filter = chance(0.2) ? ' FILTER (WHERE ' . plain_condition(@columns) . ')' : '';
	my $call = chance(0.15) ? "agg:count(*)$filter" : "agg:$of($name)$filter";

	return [ $call, 0 ] if $call =~ /count/;
	return [ $info->{norm} ? sprintf($info->{norm}, $call) : $call, 0 ] if $of =~ /^m/;
	return [ $call, $info->{float} ? ($of eq 'sum' && $column->{type} eq 'float4' ? 2 : 1) : 0 ];
}

# Queries that a fused kernel can run over cached columns: aggregates of columns, few groups, comparisons of columns with constants.
sub dashboards
{
	my ($t) = @_;
	my $numbers = chance(0.6);
	my @columns = $numbers ? Tables::number_columns()
	  : grep { $_->{type} =~ /^(?:int[248]|float[48]|numeric\([125]\d?,\d+\)|bool|date|timestamp|timestamptz)$/ } @{ $t->{columns} };
	my ($from, $key) = $numbers ? ('m', 'mj') : ('t', 'aj');
	my $light = chance(0.5);
	my @bools = map { $_->{name} } grep { $_->{info}{bool} } @columns;
	my @keys = some(pick(0, 1, 1, 2), $key, "$key % 4", pick(@bools, "$key > 3"));
	my @few = some(int_between(1, 3), @columns);
	my @out = map { plain_aggregate($light, @few) } 1 .. int_between(1, 5);
	my @where = map { plain_condition(@columns) } 1 .. pick(0, 1, 1, 2, 2, 3);

	push @where, '(' . plain_condition(@columns) . ' OR ' . plain_condition(@columns) . ')' if chance(0.1);
	return {
		sql => 'SELECT ' . join(', ', @keys, map { $_->[0] } @out) . " FROM $from"
		  . (@where ? ' WHERE ' . join(' AND ', @where) : '') . (@keys ? ' GROUP BY ' . join(', ', 1 .. @keys) : ''),
		float => [ (0) x @keys, map { $_->[1] } @out ],
		cached => 1,
		only_forms => [qw(plain prepared)],
		# all blocks are cached and not stale
		reset => $Gen::gpu && !$Tables::pages ? [ "VACUUM $from", "SELECT gpuagg_cache_prewarm('$from')" ] : []
	};
}

# Joins of t with one to three tables. From PostgreSQL 19 on, the planner may aggregate t in part before it joins it. Arguments cannot fail,
# because they are then evaluated for rows without a partner, too.
sub joined_tables
{
	my ($t, $int, $first, $d) = @_;
	my @columns = @{ $t->{columns} };
	my @keys = map { $_->{name} } grep { !$_->{info}{loose} && !$_->{info}{norm} && !$_->{info}{nokey} && !$_->{info}{float} && $_->{type} !~ /wide/ } @{ $d->{columns} };
	my $where = join(' AND ', map { plain_condition(@columns) } 1 .. pick(0, 0, 0, 1, 2));
	my $from = pick('t', 't', 't', 'p t', '(SELECT * FROM t WHERE ' . plain_condition(@columns) . ') t');
	my @joins = some(pick(0, 0, 1, 2),
		' JOIN (SELECT bj AS cj, id AS cid FROM d) c ON cj = ' . pick('aj', 'bj'),
		' LEFT JOIN (SELECT bj AS ej, id AS eid FROM d) e ON ej = ' . pick('aj', 'bj AND eid % 2 = 0'),
		' JOIN (SELECT DISTINCT aj AS sj FROM t) s ON sj = aj',
		' JOIN (SELECT aj AS uj, id AS uid FROM t) u ON uj = aj AND uid < 9');

	unshift @joins, pick((' JOIN d ON aj = bj') x 4, ' LEFT JOIN d ON aj = bj', ' RIGHT JOIN d ON aj = bj', ' JOIN d ON aj = bj AND d.id <> aj');
	push @keys, 'aj', 'bj', 'bj', 'bj', pick('bj % 3', 'coalesce(bj, 7)', 'aj + bj');
	push @keys, map { pick('cid % 4', 'cj') } grep { / c ON/ } @joins;
	@keys = some(pick(0, 1, 1, 1, 2, 3), @keys);

	my @few = some(int_between(2, 4), grep { ($_->{info}{num} // 1) == 1 } @columns);
	my @bools = map { $_->{name} } grep { $_->{info}{bool} } @columns;
	my @numbers = map { $_->{name} } grep { $_->{info}{int} } @columns;
	my @out = map { plain_aggregate(chance(0.5), @few) } 1 .. int_between(1, 4);
	my $number = pick(@numbers);
	push @out, map { [ $_, 0 ] } some(pick(0, 0, 1, 2),
		"agg:bit_or($number)", "agg:var_pop($number)", "agg:sum(CASE WHEN $number > 3 THEN 1 END)", "gpu:histogram($number, -10, 90, 5)",
		"gpu:approx_count_distinct($number)", 'gpu:argmax(aj, t.id)', "wide_avg($number)", "strict_max(($number)::text)", map { "agg:bool_and($_)" } @bools);
	push @out, [ pick("agg:count(DISTINCT $number)", "string_agg(t.id::text, '+' ORDER BY t.id)", 'agg:sum(aj + bj)'), 0 ] if chance(0.1);

	my $sql = 'SELECT ' . join(', ', @keys, map { $_->[0] } @out) . " FROM $from" . join('', @joins) . ($where ? " WHERE $where" : '');
	$sql .= ($where ? ' AND ' : ' WHERE ') . 'EXISTS (SELECT FROM d x WHERE x.bj = t.aj)' if chance(0.1);
	$sql .= ' GROUP BY ' . join(', ', @keys) if @keys;
	$sql .= ' HAVING agg:count(*) > ' . Values::int_constant(0, 9) if chance(0.15);
	my $ordered = @keys && chance(0.2);
	$sql .= ' ORDER BY ' . join(', ', map { $_ . pick('', ' DESC') } 1 .. @keys) . ' LIMIT ' . int_between(1, 20) if $ordered;
	return { sql => $sql, float => [ (0) x @keys, map { $_->[1] } @out ], serial => chance(0.4), ordered => $ordered, joins => 1 };
}

# Aggregates of the best rows of groups: window functions that a condition bounds, and DISTINCT ON.
sub best_rows
{
	my ($t) = @_;
	my @columns = grep { $_->{type} !~ /wide/ } @{ $t->{columns} };
	my @keys = some(int_between(1, 3), (map { $_->{name} } grep { !$_->{info}{nokey} } @columns), 'aj', 'aj % 3', 'id % ' . pick(7, 1000));
	my @order = map { $_ . pick('', ' DESC', ' NULLS FIRST', ' DESC NULLS LAST') }
		some(pick(0, 1, 1, 2, 3), (map { $_->{name} } grep { $_->{info}{minmax} } @columns), 'aj', 'aj % 3');
	my $where = chance(0.4) ? ' WHERE ' . Gen::simple_condition(@columns) : '';
	my $from = pick('t', 't', 't', 'p t',
		$Tables::pages ? () : ('(SELECT * FROM t OFFSET 0) t', 't JOIN (SELECT bj, min(id) AS least FROM d GROUP BY bj) d ON aj = bj'));
	my $function = @order ? pick('row_number', 'rank', 'dense_rank') : 'row_number';
	my @result = ('agg:count(*)', 'agg:sum(id)', 'agg:sum(id::int8 * id % 9973)', 'agg:max(id)');
	my $keys = join(', ', @keys);

	# without an order that is total, only ranks are determined
	push @order, pick('id', 'id DESC', '-id') if $function eq 'row_number' || chance(0.2);
	if (chance(0.4))
	{
		push @order, 'id' if !grep { /^-?id\b/ } @order;
		return {
			sql => 'SELECT ' . join(', ', @result) . " FROM (SELECT DISTINCT ON ($keys) id FROM $from$where ORDER BY $keys, " . join(', ', @order) . ') x',
			float => [ (0) x @result ],
			serial => chance(0.6)
		};
	}
	push @result, 'agg:sum(place)';
	return {
		sql => 'SELECT ' . join(', ', @result) . " FROM (SELECT id, $function() OVER (PARTITION BY $keys ORDER BY " . join(', ', @order) . ") place FROM $from$where) x"
		  . ' WHERE place ' . pick('= 1', '<= ' . int_between(1, 4), '< ' . pick(3, 11, 50), '<= ' . Values::int_constant(0, 5)),
		float => [ (0) x @result ],
		serial => chance(0.6)
	};
}

# Aggregates of many groups by 1 to 12 keys, which participants of a parallel plan merge in partitions: percentiles, modes, grouping sets,
# distinct values. Most groups are small, or one is large.
sub many_groups
{
	my %shown = (gn => 'trim_scale(gn)', gc => 'lower(gc)');
	my %odd = (gk => 'one value in most rows', gz => 'always NULL', go => 'always the same');
	my @many = qw(gi gs gn gc);
	my @keys = chance(0.6) ? some(int_between(1, 3), @many, 'gf', pick(sort keys %odd)) : (pick(@many), some(int_between(1, 11), qw(gf gd gb vi vt vn vf), sort keys %odd));
	my $few = grep { $_ eq 'gf' } @keys;
	my $fraction = $few && chance(0.3) ? 'CASE WHEN gf > 4 THEN 0.25 ELSE 0.5 END' : pick(0, 0.3, 0.5, 1);
	my @sets = some(pick(0, 1, 1, 2), "agg:percentile_cont($fraction) WITHIN GROUP (ORDER BY vf)", 'agg:percentile_cont(0.9) WITHIN GROUP (ORDER BY vi)',
		"agg:percentile_disc(ARRAY[0.1, 0.5]::float8[]) WITHIN GROUP (ORDER BY vf DESC)", 'agg:percentile_disc(0.5) WITHIN GROUP (ORDER BY vt)',
		'agg:percentile_disc(0.4) WITHIN GROUP (ORDER BY vn)', 'agg:mode() WITHIN GROUP (ORDER BY vi)', 'agg:mode() WITHIN GROUP (ORDER BY vt)');
	my @out = some(int_between(1, 3), 'agg:count(*)', 'agg:sum(vi)', 'agg:max(vt)', 'agg:sum(vn)', 'agg:avg(vn)', 'agg:stddev(vi)', 'wide_avg(vi)', 'strict_max(vt)',
		chance(0.1) ? 'agg:sum(1000 / (vi - 700))' : 'agg:min(gf)');
	my $list = join(', ', @keys);
	my $kind = pick(('') x 7, @keys > 3 ? ('SETS') : qw(ROLLUP CUBE SETS));
	# participants spill, and so merge in partitions
	my $merged = $kind eq '' && chance(0.9);
	my @having = ('agg:count(*) > 2', 'agg:count(*) > 7', 'agg:max(id) % 5 = 0', 'agg:min(vi) = 40');
	my ($sql, $ordered);

	# several sets of values with little memory take long
	splice(@sets, 1) if chance(0.8);
	push @out, some(@sets && chance(0.8) ? 0 : pick(0, 0, 1, $kind ? 1 : 2), 'agg:count(DISTINCT vi)', 'agg:count(DISTINCT vt)', 'agg:sum(DISTINCT vi)');
	foreach my $call (@sets)
	{
		$call .= ' FILTER (WHERE ' . pick('vi > 500', 'id % 3 = 0', 'gf IS NOT NULL') . ')' if chance(0.2);
	}
	push @out, @sets;
	$sql = 'SELECT ' . join(', ', map({ $shown{$_} // $_ } @keys), @out) . ' FROM g' . pick('', '', ' WHERE id % 10 < ' . Values::int_constant(3, 9))
	  . ' GROUP BY ' . ($kind eq 'SETS' ? "GROUPING SETS (($list), ($keys[0]), ($keys[-1]), ())" : $kind ? "$kind ($list)" : $list);
	$sql .= ' HAVING ' . pick(@having) if chance(0.7);
	Tally::draw(map { "keys: $odd{$_}" } grep { $odd{$_} } @keys);
	Tally::draw('keys: ' . (@keys > 8 ? '9 to 12' : @keys > 3 ? '4 to 8' : '1 to 3') . ' of many groups');
	# a total order
	$ordered = $kind eq '' && chance(0.2);
	$sql .= ' ORDER BY ' . join(', ', map { $_ . pick('', ' DESC') } 1 .. @keys) . pick('', ' LIMIT 5') if $ordered;
	return {
		sql => $sql,
		float => [ (0) x @keys, map { /stddev|cont|wide/ ? 1 : 0 } @out ],
		serial => 0,
		merged => $merged,
		ordered => $ordered,
		only_forms => [qw(plain prepared), $merged ? 'plain' : 'cursor']
	};
}

my %kinds = (
	'best rows' => \&best_rows,
	dashboards => \&dashboards,
	'joined tables' => \&joined_tables,
	'volatile values' => \&volatile_values,
	'volatile calls' => \&volatile_calls,
	'never evaluated' => \&not_reached,
	'histogram bounds' => \&bounds,
	'errors behind FILTER' => \&filtered,
	'users\' states' => \&many_states,
	'longer values' => \&longer_values,
	'many groups' => \&many_groups);

# A query of a random kind, in the form of Gen::make_query.
sub make_query
{
	my ($tables) = @_;
	my $kind = pick(sort(keys %kinds), ('joined tables') x 2, ('many groups') x 6, 'longer values', 'volatile values', 'volatile calls', ('dashboards') x ($Gen::gpu ? 20 : 2));
	my $t = $tables->{t};
	my @ints = map { $_->{name} } grep { $_->{info}{int} } @{ $t->{columns} };
	my $query = $kinds{$kind}->($t, @ints[ int(rand(@ints)), 0 ], $tables->{d});

	Tally::draw($kind);
	$query = { orderly => 0, serial => 1, setup => [], teardown => [], %$query };
	Forms::reshape($query, $tables);
	return $query;
}

1;
