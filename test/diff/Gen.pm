# Random tables and random queries over them.
package Gen;
use strict;
use warnings;
use Types;
use Expr;
use Pages;

BEGIN { *pick = \&Types::pick; *chance = \&Types::chance; *int_between = \&Types::int_between; }

# Set to try the feed that reads pages: tables with a history, base tables only.
our $pages = 0;

my @sizes = (0, 1, 2, 30, 300, 300, 1000, 3000, 3000, 6000);

# A column: { name, type (a key of %Types::types), info }.
sub make_columns
{
	my ($prefix, $count) = @_;
	my @columns;

	foreach my $i (1 .. $count)
	{
		my $type = pick(@Types::bag);
		push @columns, { name => "$prefix$i", type => $type, info => $Types::types{$type} };
	}
	return @columns;
}

# One table: its statements, in order, and its columns.  "j" joins the tables
# of a set and "id" numbers the rows.
sub make_table
{
	my ($name, $prefix, $nrows, $wild) = @_;
	my @columns = make_columns($prefix, int_between(6, 12));
	my (@makers, @statements, $copy);

	unshift @columns, { name => "${prefix}j", type => 'int4', info => $Types::types{int4} };
	foreach my $column (@columns)
	{
		my $make = $column->{info}{make}->($wild);
		my $nulls = pick(0, 0, 0.05, 0.3, chance(0.1) ? 1 : 0);
		$column->{not_null} = $nulls == 0 && chance(0.3);
		push @makers, sub { chance($nulls) ? undef : $make->($_[0]) };
	}
	$makers[0] = sub { int_between(0, 25) };
	push @statements, "DROP TABLE IF EXISTS $name CASCADE";
	push @statements,
	    "CREATE TABLE $name (id int, dropped text, "
	  . join(', ', map { "$_->{name} $_->{type}" . ($_->{not_null} ? ' NOT NULL' : '') } @columns) . ')'
	  . (chance(0.2) ? ' WITH (fillfactor = 60)' : '');
	$copy = "COPY $name (id, dropped, " . join(', ', map { $_->{name} } @columns) . ") FROM STDIN;\n";
	foreach my $row (1 .. $nrows)
	{
		$copy .= join("\t", $row, chance(0.5) ? 'gone' : '\N', map { Types::copy_text($_->($row)) } @makers) . "\n";
	}
	push @statements, $copy . "\\.\n";
	push @statements, "ALTER TABLE $name DROP COLUMN dropped" if chance(0.5);
	if (chance(0.4))
	{
		push @statements, "ALTER TABLE $name ADD COLUMN ${prefix}late int DEFAULT 7";
		push @columns, { name => "${prefix}late", type => 'int4', info => $Types::types{int4} };
		push @statements, "UPDATE $name SET ${prefix}late = id % 3 WHERE id % 5 = 0";
	}
	push @statements, "DELETE FROM $name WHERE id % " . pick(3, 10, 50) . ' = 1' if chance(0.4);
	push @statements, "CREATE INDEX ON $name (" . pick(grep { !$_->{info}{nokey} } @columns)->{name} . ')' if chance(0.5);
	push @statements, chance(0.5) ? "VACUUM (ANALYZE, FREEZE) $name" : "ANALYZE $name" if chance(0.8);
	return { name => $name, columns => \@columns, statements => \@statements, rows => $nrows };
}

# A set of tables: t (the fact table), d (small), p (t's rows in partitions).
sub make_tables
{
	my $wild = chance(0.3);
	my $make = $pages ? \&Pages::make_table : \&make_table;
	my $t = $make->('t', 'a', pick(@sizes), $wild);
	my $d = $make->('d', 'b', int_between(0, 30), 0);
	my @p = (
		'DROP TABLE IF EXISTS p CASCADE',
		'CREATE TABLE p (LIKE t) PARTITION BY RANGE (id)',
		'CREATE TABLE p1 PARTITION OF p FOR VALUES FROM (MINVALUE) TO (100)',
		'CREATE TABLE p2 PARTITION OF p FOR VALUES FROM (100) TO (2000)',
		'CREATE TABLE p3 PARTITION OF p DEFAULT',
		'INSERT INTO p SELECT * FROM t',
		'ANALYZE p');

	@p = Pages::families($t) if $pages;
	return {
		wild => $wild,
		t => $t,
		d => $d,
		statements => [ @{ $t->{statements} }, @{ $d->{statements} }, @p ]
	};
}

sub of_kind
{
	my ($kind, @columns) = @_;

	return grep { $_->{info}{$kind} } @columns;
}

# A scalar expression that may be an argument: { sql, info, type }.
sub argument
{
	my ($kind, @columns) = @_;
	my @candidates = of_kind($kind, @columns);
	my ($column, $sql);

	return Expr::with_property($kind, @columns) if chance($pages ? 0.35 : 0.15);
	return undef if !@candidates;
	$column = pick(@candidates);
	$sql = $column->{name};
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

sub condition
{
	my @columns = @_;

	return Expr::expression('bool', @columns)->{sql} if chance($pages ? 0.35 : 0.15);
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
	my @forms = (
		"$any->{name} IS NOT NULL", "$any->{name} IS NULL", "$int->{name} > " . int_between(-5, 10),
		"$int->{name} BETWEEN -3 AND " . int_between(0, 500), "$int->{name} % 3 = 0", "$int->{name} IN (0, 1, 2, 7)", 'true');

	push @forms, pick(@bools)->{name} if @bools;
	push @forms, pick(@texts)->{name} . ' < ' . pick("'b'", "'JFK'") if @texts;
	push @forms, $int->{name} . ' > 0 AND ' . $any->{name} . ' IS NOT NULL', $int->{name} . ' > 5 OR ' . $any->{name} . ' IS NULL';
	return pick(@forms);
}

my @regressions = qw(corr covar_pop covar_samp regr_avgx regr_avgy regr_count regr_intercept regr_r2 regr_slope
  regr_sxx regr_sxy regr_syy);

# Whether an expression may be a float4.
sub is_single
{
	my ($sql, @columns) = @_;

	return $sql =~ /float4/ || grep { $_->{type} eq 'float4' && $sql =~ /\b$_->{name}\b/ } @columns;
}

# Whether all values of a column are equal, among the rows that a regression over these columns takes.
sub constant_of
{
	my ($filter, @pair) = @_;
	my $rows = 'FILTER (WHERE ' . join(' AND ', (map { "($_) IS NOT NULL" } @pair), $filter ? "($filter)" : ()) . ')';

	return '(' . join(' OR ', map { "min($_) $rows = max($_) $rows" } @pair) . ')';
}

# One aggregate call: { sql with agg:name, float: compare with tolerance, 2: a wide one; constant: SQL
# that says whether the answer hangs on a deviation of equal values }.
# fragile ones depend on rounding too much unless rows come in order.
sub aggregate
{
	my ($wild, $orderly, @columns) = @_;
	my ($arg, $call, $norm, $float, $filter, @pair);
	my $kind = pick(qw(count star sum sum avg minmax minmax minmax stat regr bit bool other));

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
		$float = $arg->{info}{float} && ($kind eq 'sum' && is_single($arg->{sql}, @columns) ? 2 : 1);
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
		$float = $arg->{info}{float};
	}
	elsif ($kind eq 'regr')
	{
		return aggregate(@_) if !$orderly;
		my @numbers = of_kind('num', @columns);
		@numbers = grep { $_->{info}{num} == 1 } @numbers;
		my ($x, $y) = map { my $c = pick(@numbers); $c->{type} =~ /numeric/ ? "$c->{name}::float8" : $c->{name} } 1 .. 2;
		$call = 'agg:' . pick(@regressions) . "($y, $x)";
		$float = 1;
		@pair = ($x, $y) if $call =~ /corr|intercept|r2|slope/;
	}
	elsif ($kind eq 'bit')
	{
		$arg = argument('int', @columns) or return aggregate(@_);
		$call = 'agg:' . pick(qw(bit_and bit_or bit_xor)) . "($arg->{sql})";
	}
	elsif ($kind eq 'other')
	{
		# that gpuagg has no operator for, in a form that does not depend on the order of rows
		my $column = pick(@columns)->{name};
		($call, $norm) = @{ pick([ "string_agg($column\::text, '+')", 'length(%s)' ], [ "jsonb_agg($column)", 'jsonb_array_length(%s)' ],
				[ "array_agg($column)", q{(SELECT md5(string_agg(e::text, ',' ORDER BY e::text COLLATE "C")) FROM unnest(%s) e)} ]) };
	}
	else
	{
		$call = 'agg:' . pick(qw(bool_and bool_or every)) . '(' . condition(@columns) . ')';
	}
	$filter = condition(@columns) if chance(0.2);
	$call .= " FILTER (WHERE $filter)" if $filter;
	return { call => $call, sql => $norm ? sprintf($norm, $call) : $call, float => $float, constant => @pair ? constant_of($filter, @pair) : undef };
}

# An aggregate that core does not have, as gpu:name: it runs in core's executor
# for the reference.  "numbered" sources have an "id" to order by.
sub own_aggregate
{
	my ($wild, $from) = @_;
	my @columns = @{ $from->{columns} };
	my @forms = ('approx', 'histogram', 'thresholds', 'weights', 'extreme', 'extreme');
	my ($number, $value, $key, $call, $norm, $float);
	my $kind;

	push @forms, qw(run ascending subarray linear) if $from->{base} && !$wild;
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
		$call = "gpu:histogram($number, " . pick('-10, 100, 20', '100, -10, 7', '0, 1e300, 3', '-0.5, 3.5, 4') . ')';
	}
	elsif ($kind eq 'thresholds')
	{
		$call = "gpu:histogram($number, " . pick("'{-5, 0, 0.5, 10}'", "'{0}'") . '::float8[])';
	}
	elsif ($kind eq 'weights')
	{
		$call = "gpu:histogram($number, 0, 50, 5, " . pick(of_kind('int', @columns))->{name} . ' % 100)';
	}
	elsif ($kind eq 'extreme')
	{
		$value = pick(of_kind('minmax', @columns));
		$norm = $value->{info}{norm};
		$call = 'gpu:' . pick(qw(argmax argmin first last)) . "($value->{name}, $key->{name})";
	}
	else
	{
		my $int = pick(of_kind('int', @columns))->{name};
		my %arguments = (
			run => 'longest_run(' . condition(@columns),
			ascending => "longest_ascending_run($key->{name}",
			subarray => "max_subarray_sum(($int % 1000)::int8",
			linear => "compose_linear(($int % 3)::float8, 1");

		$call = "gpu:$arguments{$kind} ORDER BY "
		  . (chance(0.5) ? $key->{name} . pick('', ' DESC', ' NULLS FIRST') . ', ' : '') . 'id)';
	}
	$call .= ' FILTER (WHERE ' . condition(@columns) . ')' if chance(0.2);
	return { call => $call, sql => $norm ? sprintf($norm, $call) : $call, float => $float };
}

# A key: { sql to group by, shown: equal keys print alike }.
sub key
{
	my @columns = grep { !$_->{info}{nokey} } @_;
	my $column = pick(@columns);
	my $sql = $column->{name};

	if (chance($pages ? 0.3 : 0.1))
	{
		my $made = Expr::key(@columns);

		# a number alone would be the place of an output column
		return { sql => $made->{sql}, shown => sprintf($made->{info}{norm} // '%s', $made->{sql}) }
		  if $made->{sql} =~ /[a-z]/;
	}
	if (chance(0.25))
	{
		my $int = pick(of_kind('int', @columns));
		$sql = pick("$int->{name} % 5", "$int->{name} + 1", "$int->{name} IS NULL", "coalesce($int->{name}, -1)",
			"$int->{name}::numeric / 2", "($int->{name} % 3)::text", "$int->{name}::float8");
		return { sql => $sql, shown => $sql };
	}
	return { sql => $sql, shown => $column->{info}{norm} ? sprintf($column->{info}{norm}, $sql) : $sql };
}

# FROM clause: { sql, columns, orderly: rows come in one order whatever the plan }.
sub source
{
	my ($tables) = @_;
	my ($t, $d) = @{$tables}{qw(t d)};
	my @tc = @{ $t->{columns} };
	my @dc = @{ $d->{columns} };
	my @narrow = ((grep { $_->{info}{int} } @tc)[0], grep { chance(0.5) } @tc);
	my %seen;
	my $narrow;

	@narrow = grep { !$seen{ $_->{name} }++ } @narrow;
	$narrow = join(', ', map { $_->{name} } @narrow);
	return { sql => 't', columns => \@tc, orderly => 1, base => 1 } if $tables->{wild} || chance(0.5);
	return pick(
		{ sql => 'p', columns => \@tc },
		{ sql => 'i', columns => \@tc },
		{ sql => 'ONLY i', columns => \@tc },
		{ sql => "(SELECT $narrow FROM t WHERE " . condition(@tc) . ') s', columns => \@narrow, orderly => 1 },
		{ sql => "(SELECT $narrow FROM t UNION ALL SELECT $narrow FROM p) s", columns => \@narrow },
		{ sql => 'v', columns => \@narrow, view => "SELECT $narrow FROM t WHERE " . condition(@tc), orderly => 1 })
	  if $pages;
	return pick(
		{ sql => 'p', columns => \@tc },
		{ sql => 't JOIN d ON aj = bj', columns => [ @tc, @dc ] },
		{ sql => 't LEFT JOIN d ON aj = bj AND d.id % 2 = 0', columns => [ @tc, @dc ] },
		{ sql => "(SELECT $narrow FROM t WHERE " . condition(@tc) . ') s', columns => \@narrow, orderly => 1 },
		{ sql => "(SELECT $narrow FROM t WHERE " . condition(@tc) . ' OFFSET 0) s', columns => \@narrow, orderly => 1 },
		{ sql => "(SELECT $narrow FROM t UNION ALL SELECT $narrow FROM p) s", columns => \@narrow },
		{ sql => 'c', with => "WITH c AS MATERIALIZED (SELECT $narrow FROM t)", columns => \@narrow, orderly => 1 },
		{ sql => 'v', columns => \@narrow, view => "SELECT $narrow FROM t WHERE " . condition(@tc), orderly => 1 },
		{
			sql => 'generate_series(1, ' . pick(5, 500, 3000) . ') g(n)',
			columns => [ { name => 'n', type => 'int4', info => $Types::types{int4} } ],
			orderly => 1
		});
}

# A query: {
#	setup, teardown	statements around it
#	sql				with agg:name for each aggregate
#	float			per output column, whether to compare with tolerance: 1, or 2, a wide one
#	constant		per output column, [its sql, what to ask instead: see aggregate], or undef
#	orderly			rounding may not depend on the plan
# }
sub make_query
{
	my ($tables) = @_;
	my $from = source($tables);
	my @columns = @{ $from->{columns} };
	my $serial = $tables->{wild} || chance(0.6);
	my $within = $pages && !$tables->{wild} && chance(0.15) ? Pages::own_changes() : undef;
	my $orderly = $from->{orderly} && $serial && !$within;
	my @keys = map { key(@columns) } 1 .. pick(0, 1, 1, 1, 2, 2, 3, 4);
	# each may sort the rows, into another order
	my $order_by = @keys && chance(0.2);
	my $sets = @keys && chance(0.04) ? pick('ROLLUP', 'CUBE') : '';
	my @own = chance(0.25) ? map { own_aggregate($tables->{wild}, $from) } 1 .. pick(1, 2, 3) : ();
	my $sorts = $order_by || $sets || grep { $_->{call} =~ /ORDER BY/ } @own;
	my @aggs = map { aggregate($tables->{wild}, $orderly && !$sorts, @columns) } 1 .. pick(1, 1, 2, 3, 5, 8);
	my $where = chance(0.4) ? condition(@columns) : undef;
	my (@out, @float, @constant, $sql, %query);

	if (@keys && chance(0.1))
	{
		@keys = (@keys, $keys[0]);
	}
	foreach my $key (@keys)
	{
		push @out, $key->{shown};
		push @float, 0;
	}
	foreach my $agg (@aggs, @own)
	{
		$constant[@out] = [ $agg->{sql}, $agg->{constant} ] if $agg->{constant};
		push @out, $agg->{sql};
		push @float, $agg->{float} || 0;
	}
	if (chance(0.15))
	{
		push @out, 'agg:count(*) * 2 + coalesce(agg:sum(' . pick(of_kind('int', @columns))->{name} . '), 0)';
		push @float, 0;
	}
	if (chance(0.05) && @keys)
	{
		push @out, 'sum(agg:count(*)) OVER ()';
		push @float, 0;
	}
	$sql = ($from->{with} ? "$from->{with} " : '') . 'SELECT ' . join(', ', @out) . " FROM $from->{sql}";
	$sql .= " WHERE $where" if $where;
	if (@keys)
	{
		my $list = join(', ', map { $_->{sql} } @keys);
		$sql .= ' GROUP BY ' . ($sets ? "$sets($list)" : $list);
	}
	if (chance(0.15))
	{
		$sql .= ' HAVING ' . pick('agg:count(*) > ' . int_between(0, 5), 'agg:max(' . pick(of_kind('int', @columns))->{name} . ') > 1');
	}
	if ($order_by)
	{
		$sql .= ' ORDER BY ' . join(', ', map { "$_ " . pick('', 'DESC', 'NULLS FIRST') } 1 .. @keys);
		$sql .= ' LIMIT ' . int_between(1, 20) if chance(0.5);
		$query{ordered} = 1;
	}
	%query = (%query, sql => $sql, float => \@float, constant => \@constant, orderly => $orderly, serial => $serial, setup => [], teardown => []);
	if ($from->{view})
	{
		push @{ $query{setup} }, "CREATE OR REPLACE TEMP VIEW v AS $from->{view}";
		push @{ $query{teardown} }, 'DROP VIEW v';
	}
	$query{within} = $within if $within;
	reshape(\%query, $tables) if !$query{ordered} && !$within;
	return \%query;
}

# Puts some queries inside another statement.
sub reshape
{
	my ($query, $tables) = @_;
	my $how = pick((undef) x 12, qw(prepared prepared cursor ctas correlated subquery lateral));

	return if !defined $how || $tables->{wild};
	if ($how eq 'prepared' && $query->{sql} =~ s/ > 1\b/ > \$1/)
	{
		$query->{prepare} = 1;
	}
	elsif ($how eq 'cursor')
	{
		$query->{cursor} = 1;
	}
	elsif ($how eq 'ctas')
	{
		$query->{ctas} = 1;
	}
	elsif ($how eq 'correlated' || $how eq 'lateral')
	{
		my @tc = @{ $tables->{t}{columns} };
		my @dc = @{ $tables->{d}{columns} };
		my $agg = aggregate(0, 0, @tc);
		my $inner = "FROM t WHERE aj = d.bj AND " . condition(@tc);

		$query->{sql} =
		  $how eq 'correlated'
		  ? "SELECT d.id, (SELECT $agg->{sql} $inner) FROM d"
		  : "SELECT d.id, x.a FROM d CROSS JOIN LATERAL (SELECT $agg->{sql} AS a $inner GROUP BY aj) x";
		$query->{float} = [ 0, $agg->{float} ];
		$query->{constant} = [];
		$query->{orderly} = 0;
	}
	elsif ($how eq 'subquery')
	{
		my @float = @{ $query->{float} };
		my $names = join(', ', map { "o$_" } 0 .. $#float);

		return if $query->{sql} =~ /^WITH/;
		$query->{sql} = "SELECT * FROM ($query->{sql}) s($names) WHERE o0 IS NOT NULL OR o0 IS NULL";
	}
	return;
}

my @strategies = qw(auto auto auto single segmented direct hash sort);

# Settings for the custom scan's turn.
sub scan_settings
{
	my ($query) = @_;
	my @settings = (
		"gpuagg.strategy = '" . pick(@strategies) . "'",
		"gpuagg.feed = '" . ($pages ? 'heap' : pick('auto', 'auto', 'tuples')) . "'",
		'gpuagg.batch_rows = ' . pick(64, 128, 1000, 4096, 65536),
		"work_mem = '" . pick('64kB', '64kB', '256kB', '4MB', '64MB') . "'",
		'hash_mem_multiplier = ' . pick(1, 2),
		"plan_cache_mode = '" . pick('auto', 'force_generic_plan', 'force_custom_plan') . "'",
		'enable_hashagg = ' . pick('on', 'on', 'off'));

	push @settings, 'enable_sort = off' if $query->{orderly} || $pages;
	push @settings, map { "$_ = off" } qw(enable_indexscan enable_indexonlyscan enable_bitmapscan) if $pages;
	push @settings, 'enable_seqscan = ' . ($pages ? 'on' : pick('on', 'off')), 'enable_hashjoin = ' . pick('on', 'off')
	  if !$query->{orderly};
	push @settings, @{ parallel_settings($query) };
	return \@settings;
}

sub parallel_settings
{
	my ($query) = @_;

	return ['max_parallel_workers_per_gather = 0'] if $query->{serial};
	return [
		'max_parallel_workers_per_gather = ' . pick(1, 2, 3),
		'max_parallel_workers = ' . pick(8, 8, 8, 0),
		'parallel_leader_participation = ' . pick('on', 'on', 'off'),
		'parallel_setup_cost = 0',
		'parallel_tuple_cost = ' . ($pages ? 0.1 : 0),
		'min_parallel_table_scan_size = 0',
		'min_parallel_index_scan_size = 0'
	];
}

# Settings of the reference: rows in heap order where that matters.
sub core_settings
{
	my ($query) = @_;

	return [ 'max_parallel_workers_per_gather = 0', "work_mem = '64MB'" ] if !$query->{orderly};
	return [
		'max_parallel_workers_per_gather = 0', "work_mem = '64MB'",
		'enable_sort = off', 'enable_indexscan = off',
		'enable_bitmapscan = off', 'enable_indexonlyscan = off'
	];
}

1;
