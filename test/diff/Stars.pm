# Stars: a fact table with dimensions, for joins of rows that are cached on the GPU. Keys of dimensions are integers and dates, dense or not,
# one or several; a key may be missing, NULL, or have several rows. All columns are of types that the GPU can have.
package Stars;
use strict;
use warnings;
use Sides;
use Tally;
use Types;

BEGIN { *pick = \&Types::pick; *chance = \&Types::chance; *int_between = \&Types::int_between; *some = \&Special::some; }

# The kinds of keys: columns with types, the keys of row i, and the fact's columns that are compared with them.
my %kinds = (
	dense => sub { my $n = pick(20, 300, 2000); return ([ [ 'k', pick(qw(int2 int4 int4 int8)) ] ], ['i'], ["i * 7919 % $n - 5"], $n) },
	dates => sub { return ([ [ 'k', 'date' ] ], ["date '2020-01-01' + i"], ["date '2020-01-01' + i * 31 % 400"], 380) },
	sparse => sub {
		my ($n, $step) = (pick(20, 1000), pick(13, 100, 10007, 1000003));
		return ([ [ 'k', $step < 100000 ? pick(qw(int4 int8)) : 'int8' ] ], ["(i - $n / 2)::int8 * $step"], ["(i * 7919 % ($n + 9) - $n / 2)::int8 * $step"], $n);
	},
	ends => sub {
		my $type = pick(qw(int4 int8));
		my $most = $type eq 'int4' ? 2147483647 : 9223372036854775807;
		my $key = "CASE i % 30 WHEN 0 THEN $most WHEN 1 THEN -$most - 1 ELSE (i % 30)::$type * " . pick(1, 7, 1000) . ' END';
		return ([ [ 'k', $type ] ], [$key], [$key], 29);
	},
	pair => sub {
		my $of = pick(1, 1, 70000);
		return ([ [ 'k', pick(qw(int4 int4 int8)) ], [ 'l', pick(qw(int2 int4 date)) ] ], [ "(i / 20 - 3) * $of", 'i % 20' ], [ "(i * 7919 % 50 - 3) * $of", 'i * 31 % 22' ], 900);
	},
	triple => sub {
		return ([ [ 'k', 'int8' ], [ 'l', pick(qw(int4 int2)) ], [ 'm', 'int4' ] ], [ '(i / 50) * 10000000000', 'i / 10 % 5', '(i % 10) * ' . pick(1, 1000) ],
			[ '(i * 7919 % 20) * 10000000000', 'i * 31 % 6', '(i * 17 % 10) * ' . pick(1, 1000) ], 900);
	});

my %attributes = (
	s => [ 'text', "'s' || i % 7" ], t => [ 'text', "'long name ' || i % 60" ], x => [ 'int4', 'i % 12 - 3' ], y => [ 'int8', '(i % 50)::int8 * 10000000000' ],
	n => [ 'numeric(10,2)', '(i % 90) / 4.0' ], f => [ 'float8', '(i % 33) / 8.0' ], d => [ 'date', "date '2001-01-01' + i % 25" ], b => [ 'bool', 'i % 3 = 0' ]);

# The value of a date or integer column.
sub typed { my ($type, $value) = @_; return $type eq 'date' && $value !~ /date/ ? "date '2020-01-01' + ($value)::int" : "($value)::$type"; }

# Returns { name, kind, keys, of, columns, many, statements, facts: columns of the fact table }.
sub dimension
{
	my ($name, $kind) = @_;
	my ($keys, $values, $compared, $rows) = $kinds{$kind}->();
	my @keys = map { "$name$_->[0]" } @$keys;
	my @of = map { "f$_" } @keys;
	my @attributes = some(int_between(3, 6), sort keys %attributes);
	my $many = pick((0) x 7, 2, 2, 3, 40);
	my @columns = map { { name => "$name$_", type => $attributes{$_}[0] } } @attributes;
	my $row = join(', ', (map { typed($keys->[$_][1], $values->[$_]) } 0 .. $#keys),
		map { my $value = $attributes{$_}[1]; chance(0.3) ? 'CASE WHEN i % ' . pick(5, 11) . " > 0 THEN $value END" : $value } @attributes);
	my @statements = (
		"DROP TABLE IF EXISTS $name CASCADE",
		"CREATE TABLE $name (" . join(', ', (map { "$keys[$_] $keys->[$_][1]" } 0 .. $#keys), map { "$_->{name} $_->{type}" } @columns) . ')',
		"INSERT INTO $name SELECT $row FROM generate_series(0, $rows) i" . pick('', ' WHERE i % 7 <> 3', ' WHERE i % 2 = 1'));

	push @statements, $many ? "INSERT INTO $name SELECT $row FROM generate_series(0, $rows) i, generate_series(2, $many) WHERE i % " . pick(1, 3, 5) . ' = 0' : ();
	push @statements, "INSERT INTO $name DEFAULT VALUES" if $many;
	push @statements, 'ALTER TABLE ' . $name . ' ADD PRIMARY KEY (' . join(', ', @keys) . ')' if !$many;
	push @statements, "VACUUM (FREEZE, ANALYZE) $name";
	return { name => $name, kind => $kind, keys => \@keys, of => \@of, columns => \@columns, many => $many, statements => \@statements,
		facts => [ map { my $type = $keys->[$_][1]; $type = 'int8' if $type =~ /int[24]/ && chance(0.2);
			{ name => $of[$_], type => $type, value => 'CASE WHEN i % ' . pick(17, 1000) . ' > 0 THEN ' . typed($type, $compared->[$_]) . ' END' } } 0 .. $#keys ] };
}

sub make_tables
{
	my @dimensions = map { dimension("e$_", pick(sort keys %kinds)) } 1 .. 6;
	my $rows = pick(3000, 9000, 20000);
	my @columns = ({ name => 'id', type => 'int4', value => 'i' }, { name => 'v', type => 'int4', value => 'CASE WHEN i % 41 > 0 THEN i % 1000 - 300 END' },
		{ name => 'w', type => 'int8', value => '(i % 700)::int8 * 3000000000' }, { name => 'n', type => 'numeric(12,2)', value => '(i % 5000 - 2500) / 100.0' },
		{ name => 'f', type => 'float8', value => '(i % 977) / 8.0' }, { name => 's', type => 'text', value => "'t' || i % 9" }, map { @{ $_->{facts} } } @dimensions);
	my @statements = ((map { @{ $_->{statements} } } @dimensions), 'DROP TABLE IF EXISTS sf CASCADE', 'CREATE TABLE sf (' . join(', ', map { "$_->{name} $_->{type}" } @columns) . ')',
		'INSERT INTO sf SELECT ' . join(', ', map { $_->{value} } @columns) . " FROM generate_series(1, $rows) i", 'VACUUM (FREEZE, ANALYZE) sf', "SELECT gpuagg_cache_prewarm('sf')");

	return { statements => \@statements, checks => [ [ 'SELECT count(*) FROM sf', $rows ] ], dimensions => \@dimensions };
}

# Statements that change the tables before a query; usually none.
sub changes
{
	my ($tables) = @_;
	my $d = pick(@{ $tables->{dimensions} });
	my $x = pick(@{ $d->{columns} })->{name};
	my $where = "hashtext($d->{keys}[0]::text) % " . pick(3, 20) . ' = 0';

	return () if !chance(0.2);
	return pick("UPDATE $d->{name} SET $x = NULL WHERE $where", "DELETE FROM $d->{name} WHERE $where AND hashtext($d->{keys}[0]::text) % 7 = 2", "UPDATE sf SET v = v + 1 WHERE id % 500 = 7",
		"DELETE FROM sf WHERE id % 400 = 9", "UPDATE sf SET $d->{of}[0] = NULL WHERE id % 300 = 11", 'VACUUM (FREEZE, ANALYZE) sf', "VACUUM FREEZE $d->{name}");
}

sub settings
{
	return [ 'gpuagg.feed = auto', 'gpuagg.gpu_startup_cost = 0', "work_mem = '" . pick('8MB', '64MB') . "'", 'max_parallel_workers_per_gather = 0',
		'enable_nestloop = off', 'enable_mergejoin = off', "gpuagg.strategy = '" . pick('auto', 'auto', 'direct', 'hash') . "'" ];
}

my %conditions = (
	text => sub { return pick("$_[0] <> 's1'", "$_[0] LIKE '%3'", "$_[0] IN ('s2', 's5', 'long name 7', 't3')", "$_[0] IS NOT NULL", "$_[0] < 's4'") },
	bool => sub { return pick($_[0], "NOT $_[0]", "$_[0] IS NOT TRUE") },
	date => sub { return pick("$_[0] > date '2001-01-09'", "extract(dow FROM $_[0]) < 4", "$_[0] IS NULL") });

sub condition
{
	my ($column) = @_;
	my $name = $column->{name};

	return $conditions{ $column->{type} }->($name) if $conditions{ $column->{type} };
	return pick("$name > 2", "$name <> 7", "$name BETWEEN 1 AND 20", "$name IN (1, 2, 5, 20000000000)", "$name IS NOT NULL", "$name % 3 <> 1") if $column->{type} ne 'float8';
	return pick("$name > 1.5", "$name <= 3");
}

# An aggregate, and whether it is of a float.
sub aggregate
{
	my (@columns) = @_;
	my $column = pick(@columns);
	my ($name, $type) = @$column{qw(name type)};
	my $float = $type eq 'float8' ? 1 : 0;

	return ('count(*)', 0) if chance(0.2);
	return ("count($name)", 0) if $type eq 'bool' || chance(0.1);
	return ("count(DISTINCT $name)", 0) if chance(0.08);
	return (pick("min($name)", "max($name)"), 0) if $type =~ /text|date/;
	return ("sum(1000 / $name)", 0) if $type eq 'int4' && chance(0.05);
	return ("percentile_disc(0.5) WITHIN GROUP (ORDER BY $name)", 0) if chance(0.04);
	return pick([ "sum($name)", $float ], [ "sum($name)", $float ], [ "avg($name)", $float ], [ "min($name)", 0 ], [ "max($name)", 0 ], [ "sum($name + 1)", $float ],
		[ "sum(CASE WHEN $name > 2 THEN v ELSE 0 END)", 0 ], [ "sum($name) FILTER (WHERE v > 0)", $float ]);
}

# Returns a query in the form of Gen::make_query.
sub make_query
{
	my ($tables) = @_;
	my @facts = map { { name => $_->[0], type => $_->[1] } } [ v => 'int4' ], [ w => 'int8' ], [ n => 'numeric' ], [ f => 'float8' ], [ s => 'text' ];
	my ($from, @columns, @where, @keys, @list, @float, $group) = ('sf', @facts);

	my @sides = grep { grep { /x\z/ } map { $_->{name} } @{ $_->{columns} } } @{ $tables->{dimensions} };
	return Sides::make_query('sf', pick('v', 'id'), @sides) if @sides && chance($Sides::share);
	Tally::begin_query();
	foreach my $d (some(pick(1, 1, 2, 2, 3, 4), @{ $tables->{dimensions} }))
	{
		my $kind = pick(('inner') x 5, ('left') x 3, 'semi', 'anti');
		my $on = join(' AND ', map { "$d->{of}[$_] = $d->{keys}[$_]" } 0 .. $#{ $d->{keys} });
		my $condition = chance(0.4) ? condition(pick(@{ $d->{columns} })) : undef;

		Tally::draw("$kind joins", "keys: $d->{kind}", $d->{many} && $kind =~ /inner|left/ ? 'several matches' : ());
		if ($kind =~ /semi|anti/)
		{
			push @where, ($kind eq 'anti' ? 'NOT ' : '') . "EXISTS (SELECT FROM $d->{name} WHERE " . join(' AND ', $on, $condition || ()) . ')';
			next;
		}
		$from .= ($kind eq 'left' ? ' LEFT' : '') . ($condition && chance(0.3) ? " JOIN (SELECT * FROM $d->{name} WHERE $condition) $d->{name} ON $on" : " JOIN $d->{name} ON $on");
		push @where, $condition if $condition && chance(0.8);
		push @columns, @{ $d->{columns} };
	}
	push @where, condition(pick(@facts)) if chance(0.4);
	@keys = some(pick(0, 1, 1, 2, 2, 3), grep { $_->{type} !~ /float8/ } @columns[ 1 .. $#columns ], { name => 'v % 5', type => 'int4' }, { name => 'id % 1000', type => 'int4' });
	foreach (1 .. int_between(1, 4))
	{
		my @of = aggregate(@columns);
		@of = @{ $of[0] } if ref $of[0];
		push @list, $of[0];
		push @float, $of[1];
	}
	$group = join(', ', 1 .. @keys);
	Tally::draw('GROUP BY ' . ('nothing', 'one key', 'several keys', 'several keys')[ scalar @keys ]);
	return { sql => 'SELECT ' . join(', ', (map { $_->{name} } @keys), @list) . " FROM $from" . (@where ? ' WHERE ' . join(' AND ', @where) : '')
		  . (@keys ? " GROUP BY $group" . pick('', '', '', ' HAVING count(*) > 3') . pick('', '', '', " ORDER BY $group LIMIT 10") : ''),
		float => [ (0) x @keys, @float ], form => 'plain', serial => 1, setup => [], teardown => [] };
}

1;
