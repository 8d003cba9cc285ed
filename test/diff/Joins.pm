# Joins: dimension tables, and queries that join them with the fact tables of a set in stars, snowflakes and chains.
#
# A dimension has one or two key columns, and other columns. Its keys are integers, dense or sparse, or values of a column of t, often of
# another type. A primary key, a unique index, an index with several NULLs, or nothing says that keys are unique. Some keys are missing,
# some dimensions are empty, and some have several rows for a key.
package Joins;
use strict;
use warnings;
use Hidden;
use Sides;
use Special;
use Tables;
use Tally;
use Types;
use Values;

BEGIN { *pick = \&Types::pick; *chance = \&Types::chance; *int_between = \&Types::int_between; *some = \&Special::some; }

# The share of queries that are joins, among those of sets whose sums do not depend on the order of rows.
our $share = 0.175;
# The share of joins whose plans are likely to have lookups: of tables with dimensions, which are on the right side.
my $PLAIN_SHARE = 0.5;
# The query at hand is one of these.
my $plain;

# Types of a dimension's key for values of a type, besides the type itself.
my %others = (
	int2 => [qw(int4 int8 numeric float8)],
	int4 => [qw(int8 numeric float8)],
	int8 => ['numeric'],
	small => [qw(int4 int8)],
	float4 => ['float8'],
	'numeric(12,2)' => ['numeric'],
	'numeric(5,0)' => ['numeric'],
	date => [qw(timestamp timestamptz)],
	timestamp => ['date'],
	text => [qw(varchar bpchar citext)],
	varchar => [qw(text citext)],
	'char(4)' => [qw(text bpchar)],
	bpchar => [qw(text char(4))],
	citext => ['text'],
	oid => ['int8']);

# Columns that any dimension may have: type, and the value of row i.
my %attributes = (
	x => sub { ('int4', 'i % ' . pick(3, 7, 50) . ' - 2') },
	y => sub { ('int2', '(i % 5)::int2') },
	s => sub { (pick('text', 'varchar', 'text COLLATE "C"'), "'s' || i % " . pick(2, 9, 100)) },
	c => sub { ('char(4)', "(ARRAY['a', 'ab', '', 'abcd'])[1 + i % 4]") },
	n => sub { ('numeric(12,2)', '(i % 9) / 4.0') },
	f => sub { ('float8', '(i % 17) / 8.0') },
	b => sub { ('bool', 'i % 3 = 0') },
	d => sub { ('date', "date '2000-01-01' + i % 40") });

# Returns columns in the form of Tables, with the value of each for row i: a column that refers to another dimension, and some others.
sub attributes
{
	my ($prefix) = @_;
	my @names = ('x', 's', some(int_between(0, 4), grep { !/[xs]/ } sort keys %attributes));
	my @columns = map { my ($type, $value) = $attributes{$_}->(); { name => "$prefix$_", type => $type, info => $Types::types{$type}, value => $value } } @names;

	push @columns, { name => "${prefix}r", type => 'int4', info => $Types::types{int4}, value => 'i % 28 - 1', refers => 1 };
	foreach my $column (@columns)
	{
		$column->{value} = "CASE WHEN i % " . pick(3, 11) . " > 0 THEN $column->{value} END" if chance(0.25);
	}
	return @columns;
}

# The keys of a dimension by kind: sub(prefix, columns of t) that returns its key columns, the expressions of the fact table that they
# are compared with, and the FROM clause of the rows: i is the row's number, and k1, k2 are the keys.
my %keys = (
	# compared with a column of some values, which all fact tables have
	small => sub {
		my ($prefix) = @_;
		my ($low, $count, $step) = (pick(0, 0, -3, 5), pick(5, 20, 30, 300), pick(1, 1, 1, 1, 3, 1000003));
		my $type = pick(qw(int4 int4 int8 int8 numeric float8), $count * $step < 30000 ? 'int2' : ());
		my $of = $step > 3 ? "aj::int8 * $step" : 'aj';

		return ([ [ 'k', $type ] ], [$of], "(SELECT i, i * $step AS k1 FROM generate_series($low, " . ($low + $count) . ') i) q', $count);
	},
	id => sub {
		my ($prefix) = @_;
		my $count = pick(90, 1000, 3000, 3000, 7000);
		my $type = pick(qw(int4 int4 int8 numeric));

		return ([ [ 'k', $type ] ], [ pick('id', 'id', "id % $count", 'id + 5') ], "(SELECT i, i AS k1 FROM generate_series(1, $count) i) q", $count);
	},
	pair => sub {
		my ($prefix) = @_;
		my ($of, $type, $value) = @{ pick([ 'id % 5', pick(qw(int2 int8)), 'i % 4' ], [ "'u' || id % 5", 'text', "'u' || i % 4" ]) };

		return ([ [ 'k', pick(qw(int4 int8)) ], [ 'l', $type ] ], [ 'aj', $of ], "(SELECT i, i / 4 AS k1, $value AS k2 FROM generate_series(0, 90) i) q", 90);
	},
	values => sub {
		my ($prefix, @columns) = @_;
		my $column = pick(grep { !$_->{info}{nokey} && $_->{type} !~ /\[\]|wide/ } @columns);
		my $other = pick(grep { $Types::types{$_} } @{ $others{ $column->{type} } // [ $column->{type} ] });
		my $type = $other && chance(0.6) ? $other : $column->{type};
		my $bare = $type =~ s/ COLLATE .*//r;
		my ($collation) = $type =~ /( COLLATE .*)/;
		my $of = $column->{name};

		# the key's collation decides whether its index makes it unique
		$of .= $collation // ' COLLATE "default"' if $column->{type} =~ / COLLATE / && $type ne $column->{type} && $type =~ /text|varchar|bpchar|char\(/;
		return ([ [ 'k', $type ] ], [$of],
			"(SELECT row_number() OVER (ORDER BY least)::int AS i, k1 FROM (SELECT $column->{name}::$type AS k1, min(id) AS least FROM t"
			  . " WHERE octet_length($column->{name}::text) < 500 GROUP BY 1) g) q", 1000);
	});

# Returns a dimension: { name, columns, keys: names of the key columns, of: the expressions they are compared with, other_types: these are
# of another type than some key, unique: how its keys are unique, rows: about how many, kind: of its keys, statements }.
sub dimension
{
	my ($name, $kind, @columns) = @_;
	my ($keys, $of, $from, $rows) = $keys{$kind}->($name, @columns);
	my @attributes = attributes($name);
	my @keys = map { { name => "$name$_->[0]", type => $_->[1], info => $Types::types{ $_->[1] } } } @$keys;
	my $list = join(', ', map { $_->{name} } @keys);
	my $unique = pick('primary', 'primary', 'index', 'index', 'nulls', 'silent', $rows <= 300 ? ('many', 'many') : ());
	my $where = chance(0.06) ? ' WHERE false' : chance(0.5) ? ' WHERE i % ' . pick(3, 7, 20) . ' <> 1' : '';
	my $values = join(', ', map { $_->{value} } @attributes);
	my @statements = (
		"DROP TABLE IF EXISTS $name CASCADE",
		"CREATE TABLE $name (${name}id int, " . join(', ', map { "$_->{name} $_->{type}" } @keys, @attributes) . ')',
		"INSERT INTO $name SELECT i, " . join(', ', map { "k$_" } 1 .. @keys) . ", $values FROM $from$where");

	push @statements, "INSERT INTO $name SELECT i, " . join(', ', 'NULL', map { chance(0.5) ? 'NULL' : $_->{name} } @keys[ 1 .. $#keys ]) . ", $values FROM (SELECT ${name}id AS i, * FROM $name LIMIT 3) q"
	  if $unique eq 'nulls' || ($unique =~ /silent|many/ && chance(0.4));
	push @statements, "INSERT INTO $name SELECT i + 1000, $list, $values FROM (SELECT ${name}id AS i, * FROM $name WHERE ${name}id % " . pick(1, 2, 5) . ' = 0) q' if $unique eq 'many';
	push @statements, $unique eq 'primary' ? "ALTER TABLE $name ADD PRIMARY KEY ($list)" : "CREATE UNIQUE INDEX ON $name ($list)" if $unique =~ /primary|index|nulls/;
	push @statements, chance(0.5) ? "VACUUM (ANALYZE, FREEZE) $name" : "ANALYZE $name" if chance(0.8);
	my @compared = map { my $of = $_; (grep { $_->{name} eq $of } @columns)[0] // { type => 'int4' } } @$of;
	my $other = grep { $keys[$_]{type} ne $compared[$_]{type} } 0 .. $#keys;
	return { name => $name, other_types => $other, columns => [ @keys, @attributes ], keys => \@keys, of => $of, unique => $unique, rows => $rows, kind => $kind, statements => \@statements };
}

# Returns a dimension g1 that is a view of another one, so that a query may join a table twice.
sub view_of
{
	my ($d) = @_;
	my $rename = sub { my ($column) = @_; return { %$column, name => $column->{name} =~ s/\A$d->{name}/g1/r } };
	my $list = join(', ', "$d->{name}id AS g1id", map { "$_->{name} AS " . $rename->($_)->{name} } @{ $d->{columns} });

	return { %$d, name => 'g1', columns => [ map { $rename->($_) } @{ $d->{columns} } ], keys => [ map { $rename->($_) } @{ $d->{keys} } ],
		statements => [ 'CREATE VIEW g1' . pick('', '', ' WITH (security_barrier)') . " AS SELECT $list FROM $d->{name}" . pick('', " WHERE $d->{name}x > 0") ] };
}

# Adds dimensions e1 to e5, and a view of one, to a set of tables.
sub add_dimensions
{
	my ($tables) = @_;
	my @kinds = ('small', pick('small', 'id'), 'values', 'values', pick('pair', 'pair', 'small', 'id'));
	my @dimensions = map { dimension("e$_", $kinds[ $_ - 1 ], @{ $tables->{t}{columns} }) } 1 .. @kinds;

	push @dimensions, view_of(pick(@dimensions[ 0, 1 ]));
	$tables->{dimensions} = \@dimensions;
	push @{ $tables->{statements} }, map { @{ $_->{statements} } } @dimensions;
	return;
}

# Statements that change dimensions before a query; usually none.
sub changes
{
	my ($tables) = @_;
	my $name = 'e' . int_between(1, 5);
	my $which = "${name}id % " . pick(3, 7, 20) . ' = ' . int_between(0, 2);

	return () if !chance(0.15);
	return pick("UPDATE $name SET ${name}x = ${name}x + 1 WHERE $which", "DELETE FROM $name WHERE $which AND ${name}id % 10 = 3", "VACUUM $name",
		"UPDATE $name SET ${name}s = NULL, ${name}r = ${name}r + 1 WHERE $which");
}

# Rows that the role of Hidden sees, by table.
sub visible_rows { return map { [ "e$_", "e${_}id % 3 > 0" ] } 1 .. 2; }

# Returns whether the next query is a join. It has random numbers of its own, so that other queries stay the same.
sub is_due
{
	my ($tables) = @_;

	return !$tables->{wild} && chance($share);
}

# ---- queries ------------------------------------------------------------------

# A condition of a dimension's rows, or of both sides of a join, that cannot fail.
sub beyond
{
	my ($of_both, $d, @columns) = @_;
	my $name = $d->{name};

	return pick("${name}x <> aj", "${name}x % 3 < aj % 4", "(${name}x > 0 OR aj > 5)", "${name}r IS DISTINCT FROM aj", Special::plain_condition(@columns)) if $of_both;
	return pick("${name}x > 0", "${name}s <> 's1'", "${name}x IN (1, 2, 5)", "${name}s IS NOT NULL", Special::plain_condition(@{ $d->{columns} }));
}

# A subquery of a dimension that is executed at another time, or not as a lookup: it could raise an error, or calls a volatile function.
# It does neither raise one nor change the rows.
sub noticed
{
	my ($d) = @_;
	my $name = $d->{name};

	Tally::draw('dimensions that may be noticed');
	return "(SELECT * FROM $name WHERE " . pick("100 / (abs(${name}x) + 1) >= 0", "100 / (abs(${name}x) + 1) < 40", "length(${name}s) > 0", 'random() >= 0') . pick('', ' OFFSET 0') . ") $name";
}

# A dimension's table, or a subquery of it.
sub side
{
	my ($d) = @_;
	my $name = $d->{name};
	my $condition = beyond(0, $d);

	return $name if chance($plain ? 0.85 : 0.6);
	Tally::draw('subqueries as dimensions');
	return noticed($d) if chance(0.25);
	return pick("(SELECT * FROM $name WHERE $condition) $name", "(SELECT * FROM $name OFFSET 0) $name", "(SELECT * FROM $name WHERE $condition OFFSET 0) $name",
		"(SELECT * FROM $name UNION ALL SELECT * FROM $name WHERE false) $name", "(TABLE $name) $name");
}

# The equalities that join a dimension.
sub equalities
{
	my ($d) = @_;

	return map { my ($a, $b) = ($d->{keys}[$_]{name}, $d->{of}[$_]); chance(0.5) ? "$a = $b" : "$b = $a" } 0 .. $#{ $d->{of} };
}

# A condition that a SEMI or ANTI join fulfils.
sub subquery_condition
{
	my ($d, @columns) = @_;
	my $name = $d->{name};
	my $where = join(' AND ', chance(0.4) ? beyond(0, $d) : ());
	my $equal = join(' AND ', equalities($d), $where || (), chance(0.2) ? beyond(1, $d, @columns) : ());
	my $list = sub { my @c = @_; @c > 1 ? '(' . join(', ', @c) . ')' : $c[0] };
	my $subquery = '(SELECT ' . join(', ', map { $_->{name} } @{ $d->{keys} }) . " FROM $name" . ($where ? " WHERE $where" : '') . ')';
	my $kind = pick('IN', 'IN', 'EXISTS', 'EXISTS', 'NOT EXISTS', 'NOT EXISTS', $d->{rows} <= 300 ? ('NOT IN') x 2 : ());

	Tally::draw($kind =~ /NOT/ ? 'anti joins' : 'semi joins');
	return $list->(@{ $d->{of} }) . " $kind $subquery" if $kind =~ /IN/;
	return "$kind (SELECT FROM $name WHERE $equal)";
}

# A condition of the fact table with a subquery that is no join: hashed, run once, or run for each row.
sub fact_condition
{
	my ($d, $int) = @_;
	my $name = $d->{name};
	my $where = beyond(0, $d);

	Tally::draw('subqueries in conditions');
	return "$int NOT IN (SELECT ${name}x FROM $name WHERE $where)" if chance(0.5);
	return "($int IN (SELECT ${name}r FROM $name) OR aj < 9)" if chance(0.3);
	return "$int >= (SELECT min(${name}x) FROM $name WHERE $where)" if $d->{rows} > 300 || chance(0.6);
	return "aj <> (SELECT count(*) FROM $name WHERE ${name}x = aj)";
}

# Grouped rows of a dimension, which are unique by their grouping: the join and its columns; nothing if equal keys may look different.
sub grouped_dimension
{
	my ($d) = @_;
	my $name = $d->{name};
	my @keys = @{ $d->{keys} };
	my $list = join(', ', map { $_->{name} } @keys);
	my %int8 = (type => 'int8', info => $Types::types{int8});

	return if grep { $_->{info}{loose} } @keys;
	Tally::draw('grouped dimensions');
	return (pick(' JOIN', ' LEFT JOIN') . " (SELECT $list, count(*) AS ${name}gn, max(${name}x) AS ${name}gx FROM $name"
		  . pick('', " WHERE ${name}x > 0") . " GROUP BY $list) $name ON " . join(' AND ', equalities($d)),
		@keys, { name => "${name}gn", %int8 }, { name => "${name}gx", type => 'int4', info => $Types::types{int4} });
}

# Returns another dimension with one key of integers, which column "r" of $d may refer to, or undef.
sub next_dimension
{
	my ($d, $used, @dimensions) = @_;
	my @next = grep { !$used->{ $_->{name} } && $_->{kind} =~ /small|id/ && $_->{rows} <= 3000 } @dimensions;
	my $next = @next ? pick(@next) : return;

	$used->{ $next->{name} } = 1;
	return { %$next, of => ["$d->{name}r"] };
}

# Joins a dimension: returns the SQL that follows the tables before it, conditions for WHERE, and its columns.
sub join_dimension
{
	my ($d, $used, $tables, @columns) = @_;
	my $name = $d->{name};
	my @dimensions = @{ $tables->{dimensions} };
	my $kind = pick(('inner') x 6, ('left') x 4, 'comma', 'semi', 'semi', 'semi', 'grouped',
		$plain ? () : ('right', 'full', $d->{rows} <= 30 ? ('lateral', 'unequal') : ()));
	my @of = @{ $d->{columns} };
	my $on = join(' AND ', equalities($d));

	Tally::draw('keys of other types') if $d->{other_types};
	Tally::draw($d->{unique} eq 'many' ? 'joins that multiply rows' : "dimensions: $d->{unique}") if $kind ne 'semi';
	if ($kind eq 'semi')
	{
		return ('', subquery_condition($d, @columns));
	}
	if ($kind eq 'grouped')
	{
		my ($sql, @grouped) = grouped_dimension($d);
		return ($sql, '', @grouped) if $sql;
		$kind = 'inner';
	}
	if ($kind eq 'unequal')
	{
		Tally::draw('joins without equality');
		return (pick(' JOIN', ' LEFT JOIN') . " $name ON aj BETWEEN ${name}x AND ${name}x + 2 AND ${name}id < 7", '', @of);
	}
	if ($kind eq 'lateral')
	{
		Tally::draw('lateral joins');
		return (" CROSS JOIN LATERAL (SELECT $name.*, aj + ${name}x AS ${name}z FROM $name WHERE $on" . pick('', ' OFFSET 0') . ") $name",
			'', @of, { name => "${name}z", type => 'int4', info => $Types::types{int4} });
	}
	return (', ' . side($d), $on, @of) if $kind eq 'comma';
	Tally::draw("$kind joins");
	return (' FULL JOIN ' . side($d) . " ON $on", '', @of) if $kind eq 'full';
	if (chance(0.2))
	{
		Tally::draw('conditions of both sides', $kind eq 'left' ? 'ON conditions of left joins' : ());
		$on .= ' AND ' . beyond(1, $d, @columns);
	}
	$on .= ' AND ' . beyond(0, $d) if chance(0.2);
	if ($kind ne 'right' && chance(0.35) && (my $next = next_dimension($d, $used, @dimensions)))
	{
		my $inner = ' ' . side($d) . pick(' JOIN ', ' LEFT JOIN ') . side($next) . ' ON ' . join(' AND ', equalities($next));

		Tally::draw('snowflakes');
		Tally::draw('joins that multiply rows') if $next->{unique} eq 'many';
		return (' ' . uc($kind) . " JOIN ($inner) ON $on", '', @of, @{ $next->{columns} }) if chance(0.5);
		return (' ' . uc($kind) . ' JOIN ' . side($d) . " ON $on" . pick(' JOIN ', ' LEFT JOIN ') . side($next) . ' ON ' . join(' AND ', equalities($next)), '', @of, @{ $next->{columns} });
	}
	return (' ' . uc($kind) . ' JOIN ' . side($d) . " ON $on", '', @of);
}

# Returns a fact table: { sql, columns, and more as in Gen::source; j: what takes the place of "aj" in joins and conditions }. The other
# tables of the generator have no columns of which dimensions have values.
sub fact
{
	my ($t, $simple) = @_;
	my @tc = @{ $t->{columns} };
	my $condition = Special::plain_condition(@tc);
	my @facts = ({ sql => 't' }) x ($plain ? 20 : 6);

	push @facts, ({ sql => 'p t', is => 'partitions' }) x 2, { sql => "(SELECT * FROM t WHERE $condition) t" };
	push @facts, { sql => 'i t' } if $Tables::pages;
	push @facts, { sql => 'v t', view => 'v' . pick('', ' WITH (security_barrier)') . " AS SELECT * FROM t WHERE $condition", is => 'views' } if !$simple;
	push @facts, { sql => 'c t', with => 'WITH c AS ' . pick('', 'MATERIALIZED ', 'NOT MATERIALIZED ') . '(SELECT * FROM t)', is => 'WITH' },
		{ sql => 't TABLESAMPLE SYSTEM (60) REPEATABLE (3)', is => 'TABLESAMPLE' }, pick({ sql => 'w t', columns => [ Tables::wide_columns() ], j => 'wj', is => 'wide values' },
			{ sql => 'o t', columns => [ Tables::odd_columns() ], j => '(t.id % 26)', is => 'odd values' }, { sql => 'm t', columns => [ Tables::number_columns() ], j => 'mj' })
	  if !$simple && !$Tables::pages;
	return { columns => \@tc, %{ pick(@facts) } };
}

# Returns a FROM clause in the form of Gen::source: a fact table with one to four dimensions. "where" has the conditions that belong to it.
# $simple: without a view, and without a WITH clause.
sub star
{
	my ($tables, $simple) = @_;
	my $fact = fact($tables->{t}, $simple);
	my @tc = grep { $_->{type} !~ /wide/ } @{ $fact->{columns} };
	my @join = grep { $_->{name} =~ /j\z/ } @tc;
	my @ints = grep { $_->{info}{int} } @tc;
	my @few = @join ? @join : pick(@ints);
	my @columns = (@few, some(int_between(1, 5), grep { my $c = $_; !grep { $_->{name} eq $c->{name} } @few } @{ $fact->{columns} }));
	my @dimensions = grep { !$fact->{j} || $_->{kind} ne 'values' } @{ $tables->{dimensions} };

	my (%used, @where, @commas, $many);
	my $sql = '';

	# of the dimensions that multiply rows, one is enough
	foreach my $d (some(pick(1, 1, 2, 2, 3, 4), @dimensions))
	{
		next if $used{ $d->{name} }++ || ($d->{unique} eq 'many' && $many);
		my ($join, $condition, @of) = join_dimension($d, \%used, $tables, @tc);

		$many ||= grep { /joins that multiply|without equality/ } Tally::drawn();
		push @columns, @of;
		push @where, $condition if $condition;
		if ($join =~ /^,/) { push @commas, $join }
		else { $sql .= $join }
	}
	if (@join && chance(0.04))
	{
		Tally::draw('joins of no rows');
		push @where, 'aj > 1000000';
	}
	push @where, fact_condition(pick(@dimensions), $few[0]{name}) if $few[0]{info}{int} && chance(0.12);
	Tally::draw('joins');
	Tally::draw('joins of partitions') if $fact->{sql} eq 'p t';
	my ($of, $where) = (join('', $sql, @commas), join(' AND ', @where));
	if ($fact->{j})
	{
		s/\baj\b/$fact->{j}/g foreach $of, $where;
	}
	return { %$fact, sql => "$fact->{sql}$of", columns => \@columns, where => $where };
}

my @forms = qw(plain prepared function sql_function do_block cursor subquery exists with_twice union view made);

# A star that is executed for each row of d: in a subquery or LATERAL, with the row's value in a filter of either side, in both or in none.
sub rescanned
{
	my ($tables) = @_;
	my $from = star($tables, 1);
	my @columns = @{ $from->{columns} };
	my @ints = map { $_->{name} } grep { $_->{type} =~ /^int[248]$/ } @columns;
	my $int = pick(@ints);
	my $agg = Gen::aggregate(0, 0, @columns);
	my $key = pick(@ints);
	my $where = join(' AND ', $from->{where} || (), pick("aj = d.bj", "aj > d.bj", "$int % 5 <> d.bj % 5", "$int <> d.id", "$int IS NOT NULL", "aj < 9 AND $int % 3 = d.id % 3"));
	my ($sql, $float);

	Tally::draw('joins in rescans');
	if (chance(0.5))
	{
		$sql = "SELECT d.id, (SELECT $agg->{sql} FROM $from->{sql} WHERE $where) FROM d WHERE d.id <= 9";
		$float = [ 0, $agg->{float} ];
	}
	else
	{
		$sql = "SELECT d.id, x.* FROM d CROSS JOIN LATERAL (SELECT $key % 7, agg:count(*) + d.bj, $agg->{sql} FROM $from->{sql} WHERE $where GROUP BY 1) x WHERE d.id <= 9";
		$float = [ 0, 0, 0, $agg->{float} ];
	}
	return { sql => $sql, float => $float, serial => chance(0.6), setup => [], teardown => [], only_forms => [qw(plain prepared function do_block cursor made view)] };
}

# Returns a query in the form of Gen::make_query.
sub make_query
{
	my ($tables) = @_;
	my ($from, $query);

	return Sides::make_query('t', pick('aj', 'aj', 'id'), map { { %$_, keys => [ map { $_->{name} } @{ $_->{keys} } ] } } grep { $_->{rows} <= 300 } @{ $tables->{dimensions} })
	  if chance($Sides::share);
	Tally::begin_query();
	$plain = chance($PLAIN_SHARE);
	if (chance(0.12))
	{
		$query = rescanned($tables);
		Forms::reshape($query, $tables);
	}
	else
	{
		$from = star($tables);
		$query = Gen::query_over($from, $tables, \@forms);
	}
	$query->{lookups} = $plain;
	return $query;
}

# The query for the role of Hidden, with a condition on a dimension's rows that reports their values, or undef.
sub as_reader
{
	my ($query) = @_;
	my ($name) = $query->{sql} =~ / (?:FROM|JOIN|,) (e[12])\b(?! [A-Z]* *JOIN)/;
	my $inner;

	return undef if !$name || $query->{form} ne 'plain' || @{ $query->{setup} } || $query->{sql} =~ /LIMIT/;
	$inner = "(SELECT * FROM $name WHERE " . Hidden::reporting_condition("${name}s") . ") $name";
	return { %$query, last => Hidden::role_settings(), sql => $query->{sql} =~ s/ (FROM|JOIN|,) $name\b(?: $name\b)?/ $1 $inner/r, all_rows => "SELECT agg:count(*) FROM $inner" };
}

1;
