# Tables whose pages have a history. Columns are in any order, and are dropped, added and retyped between inserts. Rows are wide or
# narrow, dead, aborted, updated or locked. Values are short, long, compressed or out of line. Types have unusual modifiers.
package Pages;
use strict;
use warnings;
use Types;

BEGIN { *pick = \&Types::pick; *chance = \&Types::chance; *int_between = \&Types::int_between; }

# More types, in the form of %Types::types.
my %odd = (
	'numeric(3,-2)' => { make => sub { sub { int_between(-999, 999) * 100 } }, norm => 'trim_scale(%s)', num => 1, minmax => 1 },
	'numeric(30,28)' => { make => sub { sub { pick(0, 1, '-99.0000000000000000000000000001', '0.5') } }, norm => 'trim_scale(%s)', num => 1, minmax => 1 },
	'numeric(1000,500)' => { make => sub { sub { pick('1e499', '-1e-500', int_between(-9, 9)) } }, norm => 'trim_scale(%s)', num => 2, minmax => 1 },
	'varchar(7)' => { make => sub { sub { substr(pick('', 'a', 'abcdefg', 'JFK'), 0, 7) } }, text => 1 },
	'char(1)' => { make => sub { sub { pick('a', 'b', '') } } },
	'char(200)' => { make => sub { sub { 'c' x int_between(0, 200) } } },
	'timestamp(0)' => { make => sub { sub { '2001-02-0' . int_between(1, 9) . ' 10:20:30.6' } }, minmax => 1 },
	'timestamptz(3)' => { make => sub { sub { '2001-02-0' . int_between(1, 9) . ' 10:20:30.123456+03' } }, minmax => 1 },
	'time(2)' => { make => sub { sub { '10:20:3' . int_between(0, 9) . '.255' } }, minmax => 1 },
	timetz => { make => sub { sub { '10:20:30+0' . int_between(0, 9) } }, norm => '(%s AT TIME ZONE \'UTC\')::text' },
	'interval day to minute' => { make => sub { sub { int_between(0, 50) . ' hours 3 minutes' } }, norm => '(extract(epoch from %s))', num => 2, minmax => 1 },
	'bit(11)' => { make => sub { sub { pick('00000000000', '10101010101') } } },
	macaddr => { make => sub { sub { '08:00:2b:01:02:0' . int_between(0, 5) } } },
	point => { make => sub { sub { '(1,2)' } }, norm => '(%s IS NULL)', nokey => 1 },
	'mood[]' => { make => sub { sub { pick('{sad}', '{ok,happy}', '{}') } } },
	tsvector => { make => sub { sub { pick("'fat' 'cat'", "'rat'") } } },
	'text COLLATE "POSIX"' => { make => sub { Types::text_maker() }, minmax => 1, text => 1 });

# Types to which ALTER TABLE can change a type, with or without a rewrite of the table.
my %wider = (
	int2 => [ 'int4', 'int8' ],
	int4 => ['int8'],
	float4 => ['float8'],
	date => ['timestamp'],
	'numeric(12,2)' => [ 'numeric', 'numeric(14,2)', 'numeric(38,10)' ],
	'numeric(5,0)' => ['numeric(12,2)'],
	'varchar(7)' => [ 'text', 'varchar' ],
	'char(4)' => [ 'text', 'varchar' ],
	'timestamp(0)' => ['timestamp']);

# The number of columns that padding() has created.
my $paddings = 0;

my @kinds = ('', '', '', 'UNLOGGED ', 'TEMP ');

sub add_types
{
	%Types::types = (%Types::types, %odd);
	push @Types::bag, sort keys %odd;
	$Types::long = 1;
	return;
}

sub column
{
	my ($name, $type, $wild) = @_;
	my $info = $Types::types{$type};
	my $make = $info->{make}->($wild);
	my $nulls = pick(0, 0, 0.05, 0.3, 0.9, chance(0.2) ? 1 : 0);

	return { name => $name, type => $type, info => $info, value => sub { chance($nulls) ? undef : $make->($_[0]) } };
}

sub copy
{
	my ($name, $columns, @rows) = @_;
	my $text = "COPY $name (id, " . join(', ', map { $_->{name} } @$columns) . ") FROM STDIN;\n";

	foreach my $row (@rows)
	{
		$text .= join("\t", $row, map { Types::copy_text($_->{value}->($row)) } @$columns) . "\n";
	}
	return "$text\\.\n";
}

# Returns the statements of one step of a table's history. Updates @$columns and the ids of live rows in %$alive.
sub step
{
	my ($name, $prefix, $columns, $alive, $number, $wild) = @_;
	my $column = pick(@$columns);
	my ($divisor, $rest) = (pick(2, 3, 7, 20), int_between(0, 1));
	my $which = "id % $divisor = $rest";
	my $delete = sub {
		my ($other) = @_;
		delete $alive->{$_} foreach grep { $_ % $divisor == $rest && $_ % $other == 0 } keys %$alive;
		return "DELETE FROM $name WHERE $which AND id % $other = 0";
	};
	my %steps = (
		add => sub {
			my $new = column("${prefix}n$number", pick(@Types::bag), $wild);
			my $default = chance(0.6) ? $new->{value}->(1) : undef;
			splice(@$columns, int_between(1, scalar @$columns), 0, $new);
			$default =~ s/'/''/g if defined $default;
			$default =~ s/^\\\\x/\\x/ if defined $default;
			return "ALTER TABLE $name ADD $new->{name} $new->{type}" . (defined $default ? " DEFAULT '$default'" : '');
		},
		junk => sub { "ALTER TABLE $name ADD junk$number " . pick('int DEFAULT 1', 'text DEFAULT \'junk\'', 'bool', 'numeric DEFAULT 1.5') },
		drop => sub {
			(map({ "ALTER TABLE $name DROP IF EXISTS junk$_" } pick(0, 1), int_between(0, $number)),
				map({ "ALTER TABLE $name DROP IF EXISTS pad$_" } int_between(0, $paddings), int_between(0, $paddings)));
		},
		retype => sub {
			my @can = grep { $wider{ $_->{type} } } @$columns;
			@can or return ();
			$column = pick(@can);
			$column->{type} = pick(@{ $wider{ $column->{type} } });
			$column->{info} = $Types::types{ $column->{type} };
			return "ALTER TABLE $name ALTER $column->{name} TYPE $column->{type}";
		},
		storage => sub {
			my @can = grep { $_->{type} =~ /^(?:text|varchar|bytea|numeric$)/ } @$columns;
			return map { "ALTER TABLE $name ALTER $_->{name} SET STORAGE " . ($_->{type} eq 'numeric' ? 'MAIN' : pick(qw(EXTERNAL EXTERNAL MAIN EXTENDED))) } @can;
		},
		update => sub { "UPDATE $name SET $column->{name} = $column->{name} WHERE $which" },
		clear => sub { "UPDATE $name SET $column->{name} = NULL WHERE $which" },
		delete => sub { $delete->(5) },
		aborted => sub {
			('BEGIN', "INSERT INTO $name SELECT * FROM $name", "UPDATE $name SET $column->{name} = NULL WHERE $which", 'ROLLBACK');
		},
		savepoint => sub {
			('BEGIN', "UPDATE $name SET id = id WHERE $which", 'SAVEPOINT s', "DELETE FROM $name WHERE $which",
				'ROLLBACK TO s', $delete->(11), 'COMMIT');
		},
		lock => sub { "DO 'BEGIN PERFORM FROM $name WHERE $which FOR UPDATE; END'" },
		vacuum => sub { pick("VACUUM $name", "VACUUM FREEZE $name", "VACUUM FULL $name") });

	return $steps{ pick(sort keys %steps) }->();
}

# The declaration of a column that no query reads, and that is NULL in all, some or no rows.
sub padding
{
	my ($type, $value) = @{ pick([ 'bool', 'true' ], [ 'int2', '2' ], [ 'int', '4' ], [ 'float8', '8' ], [ 'numeric', '1.5' ],
			[ 'text', "repeat('p', (random() * 9)::int)" ], [ 'text', "'p'" ], [ 'name', "'n'" ], [ '"char"', "'c'" ]) };
	my $default = pick('', " DEFAULT $value", " DEFAULT CASE WHEN random() < 0.9 THEN $value END");

	return 'pad' . ++$paddings . " $type$default";
}

# Indexes on several columns, partial indexes, and an index on an expression; index_condition() makes conditions for them.
sub more_indexes
{
	my ($name, $join, @short) = @_;

	return map { "CREATE INDEX ON $name $_" } grep { chance(0.4) } "($join" . pick('', ' DESC') . ', ' . pick('id', @short) . ')',
	  "(id) WHERE $join > 3", "($join, id) WHERE id % 2 = 0", "(($join % 5))", "($join) INCLUDE (id)";
}

# A condition that an index on the join column, on "id" or on an expression supports. $has_id: the source has "id".
sub index_condition
{
	my ($join, $has_id) = @_;
	my ($low, $high) = (int_between(-1, 20), int_between(0, 25));
	my $range = pick("$join BETWEEN $low AND $high", "$join >= $low", "$join > 3 AND $join <= $high", "$join = $low",
		"$join IN ($low, $high, 7)", "$join IS NOT NULL AND $join <> $high", "$join % 5 = " . int_between(0, 4));
	my $rows = int_between(0, 3000);

	return $range if !$has_id;
	return pick($range, $range, "id > $rows", "$join > 3 AND id BETWEEN $rows AND $rows + 1500", "$range AND id % 2 = 0", "$range AND id > $rows");
}

# A table, in the form of Tables::make_table.
sub make_table
{
	my ($name, $prefix, $nrows, $wild) = @_;
	my @columns = map { column("$prefix$_", pick(@Types::bag), $wild) } 1 .. int_between(6, 14);
	my ($parts, $first) = (pick(1, 2, 3, 4), 1);
	my $join = column("${prefix}j", 'int4', 0);
	my (@statements, @declared, %alive);

	$join->{value} = sub { int_between(0, 25) };
	splice(@columns, int_between(0, scalar @columns), 0, $join);
	@columns = (grep({ $_ != $join } @columns), $join) if chance(0.2);
	@declared = map { "$_->{name} $_->{type}" } @columns;
	splice(@declared, int_between(0, scalar @declared), 0, "junk$_ " . pick('int', 'text DEFAULT repeat(\'j\', 30)', 'float8 DEFAULT 1', 'bool'))
	  foreach 0 .. 1;
	splice(@declared, int_between(0, scalar @declared), 0, padding()) foreach 1 .. (chance(0.25) ? int_between(30, 110) : 0);
	splice(@declared, int_between(0, scalar @declared), 0, 'id int');
	push @statements, "DROP TABLE IF EXISTS $name CASCADE",
	  'CREATE ' . pick(@kinds) . "TABLE $name (" . join(', ', @declared) . ')' . (chance(0.3) ? ' WITH (fillfactor = 60)' : '');
	push @statements, "CREATE INDEX ON $name (id)" if chance(0.3);
	# indexes for bitmap and index scans
	my @short = map { $_->{name} } grep { $_->{type} =~ /^(?:int[248]|date|float8)$/ } @columns;
	push @statements, "CREATE INDEX ON $name USING " . pick('btree', 'btree', 'brin', 'hash') . " ($_)"
	  foreach grep { chance(0.5) } "${prefix}j", grep { $_ ne "${prefix}j" } @short;
	push @statements, more_indexes($name, "${prefix}j", @short);
	foreach my $part (1 .. $parts)
	{
		my $last = int($nrows * $part / $parts);

		push @statements, copy($name, \@columns, $first .. $last);
		$alive{$_} = 1 foreach $first .. $last;
		$first = $last + 1;
		push @statements, step($name, $prefix, \@columns, \%alive, 10 * $part + $_, $wild) foreach 1 .. int_between(0, 3);
	}
	push @statements, chance(0.6) ? "VACUUM (ANALYZE, FREEZE) $name" : "ANALYZE $name" if chance(0.8);
	return {
		name => $name,
		columns => \@columns,
		statements => \@statements,
		checks => [ [ "SELECT count(*) FROM $name", scalar keys %alive ] ]
	};
}

sub shuffled
{
	my @list = @_;
	my @out;

	push @out, splice(@list, int_between(0, $#list), 1) while @list;
	return @out;
}

# Checks that the families have t's rows.
sub family_checks
{
	my ($t) = @_;

	return map { [ "SELECT count(*) FROM $_", $t->{checks}[0][1] ] } qw(p i);
}

# Statements that copy t's rows into partitions (p) and into inheritance children (i), whose columns have other orders.
sub families
{
	my ($t) = @_;
	my @declared = map { "$_->{name} $_->{type}" } @{ $t->{columns} };
	my $names = join(', ', 'id', map { $_->{name} } @{ $t->{columns} });
	my $other = sub { my @c = shuffled('id int', @declared, 'extra text'); join(', ', @c) };
	my $plain = join(', ', 'id int', @declared);

	return (
		'DROP TABLE IF EXISTS p, i CASCADE',
		"CREATE TABLE p ($plain) PARTITION BY RANGE (id)",
		'CREATE TABLE p1 PARTITION OF p FOR VALUES FROM (MINVALUE) TO (100)',
		'CREATE TABLE p2 (' . $other->() . ')',
		'ALTER TABLE p2 DROP extra',
		'ALTER TABLE p ATTACH PARTITION p2 FOR VALUES FROM (100) TO (1000)',
		'CREATE TABLE p3 PARTITION OF p DEFAULT PARTITION BY LIST (aj)',
		'CREATE TABLE p31 PARTITION OF p3 FOR VALUES IN (1, 2, 3)',
		'CREATE UNLOGGED TABLE p32 (' . $other->() . ')',
		'ALTER TABLE p32 DROP extra',
		'ALTER TABLE p3 ATTACH PARTITION p32 DEFAULT',
		"INSERT INTO p ($names) SELECT $names FROM t",
		"CREATE TABLE i ($plain)",
		'CREATE TABLE i1 (' . $other->() . ')',
		'ALTER TABLE i1 INHERIT i',
		'CREATE TABLE i2 (more int) INHERITS (i)',
		map({ chance(0.5) ? "CREATE INDEX ON $_ (aj)" : () } qw(p p i i1 i2)),
		map({ "INSERT INTO $_->[0] ($names) SELECT $names FROM t WHERE id % 3 = $_->[1]" } [ 'i', 0 ], [ 'i1', 1 ], [ 'i2', 2 ]),
		chance(0.5) ? 'VACUUM (ANALYZE) p, i, i1, i2' : 'ANALYZE p');
}

# Changes by the query's own transaction, which the query sees, and which are rolled back.
sub own_changes
{
	my $which = 'id % ' . pick(2, 3, 7) . ' = 1';

	return pick(
		[ 'BEGIN', "DELETE FROM t WHERE $which" ],
		[ 'BEGIN', "UPDATE t SET aj = aj + 1 WHERE $which" ],
		[ 'BEGIN', 'SAVEPOINT a', "DELETE FROM t WHERE $which", 'ROLLBACK TO a', 'SAVEPOINT b', "UPDATE t SET aj = 3 WHERE $which" ],
		[ 'BEGIN ISOLATION LEVEL SERIALIZABLE', 'INSERT INTO t SELECT * FROM t WHERE id < 50' ],
		[ 'BEGIN ISOLATION LEVEL REPEATABLE READ', "DO 'BEGIN PERFORM FROM t WHERE $which FOR UPDATE; END'" ]);
}

1;
