# Random tables, and the tables and functions that are the same for all sets.
package Tables;
use strict;
use warnings;
use Pages;
use Types;
use Values;

BEGIN { *pick = \&Types::pick; *chance = \&Types::chance; *int_between = \&Types::int_between; }

# True with --pages: tables whose pages have a history, and queries of base tables only.
our $pages = 0;

my @sizes = (0, 1, 2, 30, 300, 1000, 1000, 3000, 3000, 6000);

# Returns columns { name, type (a key of %Types::types), info }.
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

# Returns a table: { name, columns, statements that create it, checks, key }. Column "<prefix>j" joins the tables of a set, and "id"
# numbers the rows. The checks are queries, each with the value that it must return.
sub make_table
{
	my ($name, $prefix, $nrows, $wild) = @_;
	my @columns = make_columns($prefix, int_between(6, 12));
	my (@makers, @statements, @rows, @checks, $copy, $key);

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
		my @values = map { $_->($row) } @makers;

		$rows[$row] = [ map { defined } @values ];
		$copy .= join("\t", $row, chance(0.5) ? 'gone' : '\N', map { Types::copy_text($_) } @values) . "\n";
	}
	push @statements, $copy . "\\.\n";
	push @statements, "ALTER TABLE $name DROP COLUMN dropped" if chance(0.5);
	my @copied = @columns;
	if (chance(0.4))
	{
		push @statements, "ALTER TABLE $name ADD COLUMN ${prefix}late int DEFAULT 7";
		push @columns, { name => "${prefix}late", type => 'int4', info => $Types::types{int4} };
		push @statements, "UPDATE $name SET ${prefix}late = id % 3 WHERE id % 5 = 0";
	}
	my $deleted = chance(0.4) ? pick(3, 10, 50) : 0;
	push @statements, "DELETE FROM $name WHERE id % $deleted = 1" if $deleted;
	$key = chance(0.4);
	push @statements, "ALTER TABLE $name ADD PRIMARY KEY (id)" if $key;
	push @statements, "CREATE INDEX ON $name (" . pick(grep { !$_->{info}{nokey} } @columns)->{name} . ')' if chance(0.5);
	push @statements, chance(0.5) ? "VACUUM (ANALYZE, FREEZE) $name" : "ANALYZE $name" if chance(0.8);

	my @alive = grep { !$deleted || $_ % $deleted != 1 } 1 .. $nrows;
	push @checks, [ "SELECT count(*) FROM $name", scalar @alive ];
	foreach my $i (0 .. $#copied)
	{
		push @checks, [ "SELECT count($copied[$i]{name}) FROM $name", scalar grep { $rows[$_][$i] } @alive ];
	}
	return { name => $name, columns => \@columns, statements => \@statements, checks => \@checks, key => $key };
}

# Returns a set of tables: t (the fact table), d (small), p (t's rows in partitions).
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
	my @family = $pages ? Pages::family_checks($t) : [ 'SELECT count(*) FROM p', $t->{checks}[0][1] ];

	@p = Pages::families($t) if $pages;
	return {
		wild => $wild,
		t => $t,
		d => $d,
		statements => [ @{ $t->{statements} }, @{ $d->{statements} }, @p ],
		checks => [ @{ $t->{checks} }, @{ $d->{checks} }, @family ]
	};
}

# Table w has wide values: compressed, out of line, some of them equal.
my @wide = (
	'DROP TABLE IF EXISTS w CASCADE',
	'CREATE TABLE w (id int PRIMARY KEY, wj int4, w1 text, w2 text, w3 numeric, w4 bytea)',
	'ALTER TABLE w ALTER w2 SET STORAGE EXTERNAL',
	q{INSERT INTO w SELECT i, i % 10, repeat(md5((i % 50)::text), 1024), nullif(repeat(md5((i % 7)::text), 300), repeat(md5('3'), 300)),
		(10::numeric ^ (i % 9 * 400)) + i % 3, decode(repeat(md5((i % 20)::text), 100 + i % 20), 'hex')
		FROM generate_series(1, 240) i},
	'VACUUM (ANALYZE) w');
my $group_rows = 12000;
our @fixture_checks = (
	[ 'SELECT count(*) FROM w', 240 ],
	[ 'SELECT sum(length(w1)) FROM w', 240 * 32768 ],
	[ 'SELECT count(w2) FROM w', 206 ],
	[ 'SELECT count(DISTINCT w4) FROM w', 20 ],
	[ 'SELECT count(*) FROM o', 150 ],
	[ 'SELECT count(*) FROM g', $group_rows ],
	[ 'SELECT count(*) FILTER (WHERE m30 > 0 AND m31 < 0) FROM m', 4000 ],
	[ "SELECT count(*) FROM pg_aggregate WHERE aggtransfn::regproc::text IN ('lossy_add', 'plain_add', 'bag_add')", 4 ]);

sub wide_columns
{
	return map { { name => $_->[0], type => $_->[1], info => $Types::types{ $_->[1] } // $Types::wide } }
	  [ 'wj', 'int4' ], [ 'w1', 'wide text' ], [ 'w2', 'wide text' ], [ 'w3', 'numeric' ], [ 'w4', 'wide bytea' ];
}

# Table o has odd values: a column of each type with all values of Values.pm.
my @odd_types = grep { $Types::types{$_} } sort keys %{ { Values::all_values() } };
my $odd_rows = 150;

sub odd_table
{
	my %values = Values::all_values();
	my $n = 0;
	my @columns = map { my $type = $_; ('o' . ++$n) . ' ' . $type } @odd_types;
	my @rows = map {
		my $row = $_;
		"($row, " . join(', ', map { my @v = @{ $values{ $odd_types[$_] } }; $row % 11 == $_ % 11 ? 'NULL' : $v[ ($row + $_) % @v ] } 0 .. $#odd_types) . ')'
	} 1 .. $odd_rows;

	return ('DROP TABLE IF EXISTS o CASCADE', 'CREATE TABLE o (id int, ' . join(', ', @columns) . ')', 'INSERT INTO o VALUES ' . join(', ', @rows), 'VACUUM (ANALYZE) o');
}

sub odd_columns
{
	my $n = 0;

	return map { { name => 'o' . ++$n, type => $_, info => $Types::types{$_} } } @odd_types;
}

# Table m has numbers: for each numeric type of the device a positive column, a negative one, and one with both signs and NULLs.
my @number_types = (qw(int2 int4 int8 float4 float8), 'numeric(12,2)');
my $number_rows = 4000;

sub number_table
{
	my @values = ('i * 37 % 199 + 1', '-1 - i * 53 % 211', 'nullif(i * 37 % 199, 77) - 99');
	my @columns = map { my $n = $_; map { ["m$n$_", $number_types[$n]] } 0 .. 2 } 0 .. $#number_types;
	my @terms = map { my $type = $_; map { $type =~ /int/ ? "($_)::$type" : "(($_) / 8.0)::$type" } @values } @number_types;

	return (
		'DROP TABLE IF EXISTS m CASCADE',
		'CREATE TABLE m (id int, mj int4, mb bool, md date, ' . join(', ', map { "$_->[0] $_->[1]" } @columns) . ')',
		"INSERT INTO m SELECT i, i * 7 % 26, nullif(i % 5, 3) > 1, date '2001-01-01' + i % 400, " . join(', ', @terms) . " FROM generate_series(1, $number_rows) i",
		'VACUUM (ANALYZE) m');
}

sub number_columns
{
	return map { { name => $_->[0], type => $_->[1], info => $Types::types{ $_->[1] } } } [ 'mj', 'int4' ], [ 'mb', 'bool' ], [ 'md', 'date' ],
	  map { my $n = $_; map { ["m$n$_", $number_types[$n]] } 0 .. 2 } 0 .. $#number_types;
}

# Table g has many different keys: an integer, a text, a decimal whose equal values look different, a text of an insensitive collation,
# a few groups, an integer that is 1 in most rows, one that is always NULL, a text that is always the same, dates and booleans; and values.
sub group_table
{
	return (
		'DROP TABLE IF EXISTS g CASCADE',
		'CREATE TABLE g (id int, gi int4, gs text, gn numeric, gc text COLLATE nocase, gf int4, gk int4, gz int4, go text, gd date, gb bool, vf float8, vi int4, vt text, vn numeric)',
		q{INSERT INTO g SELECT i, nullif(i * 7919::int8 % 6007, 5), 'key ' || i * 31 % 5000, round((i % 3000)::numeric / 4, 2 + i % 2),
			CASE WHEN i % 2 = 0 THEN 'Key ' ELSE 'kEY ' END || i % 2001, nullif(i % 13, 3),
			CASE WHEN i % 50 = 0 THEN i ELSE 1 END, NULL, 'the only one', date '2001-01-01' + i % 400, nullif(i % 5, 3) > 1, (i * 37 % 10009) / 8.0, nullif(i * 13 % 1009, 77),
			'value ' || i * 11 % 3001, (i * 17 % 4000)::numeric / 16 FROM generate_series(1, } . "$group_rows) i",
		'VACUUM (ANALYZE) g');
}

# Aggregates of a user. Their answers do not depend on the order of rows if only their own functions are called. "lossy_sum" is NULL if
# any row is 7 modulo 100.
my @aggregates = (
	q{CREATE OR REPLACE FUNCTION lossy_add(int8, int4) RETURNS int8 STRICT LANGUAGE plpgsql AS
		'BEGIN RETURN CASE WHEN $2 % 100 <> 7 THEN $1 + $2 END; END'},
	q{CREATE OR REPLACE FUNCTION plain_add(int8, int4) RETURNS int8 PARALLEL SAFE LANGUAGE plpgsql AS
		'BEGIN RETURN $1 + coalesce($2, 1); END'},
	q{CREATE OR REPLACE AGGREGATE lossy_sum(int4) (sfunc = lossy_add, stype = int8, initcond = '0', combinefunc = int8pl)},
	q{CREATE OR REPLACE AGGREGATE null_sum(int4) (sfunc = plain_add, stype = int8, initcond = '0', combinefunc = int8pl, parallel = safe)},
	q{CREATE OR REPLACE AGGREGATE unsafe_sum(int4) (sfunc = plain_add, stype = int8, initcond = '0', combinefunc = int8pl)},
	q{CREATE OR REPLACE AGGREGATE strict_max(text) (sfunc = text_larger, stype = text, combinefunc = text_larger, parallel = safe)},
	q{CREATE OR REPLACE AGGREGATE wide_avg(int8) (sfunc = int8_avg_accum, stype = internal, finalfunc = numeric_poly_avg,
		combinefunc = int8_avg_combine, serialfunc = int8_avg_serialize, deserialfunc = int8_avg_deserialize, parallel = safe)},
	q{CREATE OR REPLACE FUNCTION bag_add(text[], int4) RETURNS text[] LANGUAGE sql AS 'SELECT $1 || repeat(''b'', $2)'},
	q{CREATE OR REPLACE FUNCTION bag_size(text[]) RETURNS int LANGUAGE sql AS 'SELECT length(array_to_string($1, '''')) + 1000 * cardinality($1)'},
	q{CREATE OR REPLACE AGGREGATE bag(int4) (sfunc = bag_add, stype = text[], initcond = '{}', finalfunc = bag_size)});

# Statements that create the objects of all sets.
sub fixtures
{
	return (
		'SET client_min_messages = warning',
		'DROP TABLE IF EXISTS t, d, p CASCADE',
		'DROP TYPE IF EXISTS mood, pair CASCADE',
		'DROP DOMAIN IF EXISTS small CASCADE',
		"CREATE TYPE mood AS ENUM ('sad', 'ok', 'happy')",
		'CREATE TYPE pair AS (a int, n numeric)',
		'CREATE DOMAIN small AS int4 CHECK (VALUE > -100000)',
		"CREATE COLLATION IF NOT EXISTS nocase (provider = icu, locale = 'und-u-ks-level2', deterministic = false)",
		'CREATE SEQUENCE IF NOT EXISTS sq',
		q{CREATE OR REPLACE FUNCTION bump(int8) RETURNS int8 VOLATILE LANGUAGE plpgsql AS
			'BEGIN PERFORM nextval(''sq''); RETURN $1; END'},
		@aggregates,
		@wide,
		odd_table(), number_table(), group_table());
}

1;
