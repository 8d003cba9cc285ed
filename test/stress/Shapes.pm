# The tables of the stress test: their columns, random values for them, and queries for the columns that they have now.
package Shapes;
use strict;
use warnings;

my @all = ([ s => 'smallint' ], [ b => 'bigint' ], [ d => 'numeric(12,2)' ], [ n => 'numeric' ], [ f => 'double precision' ],
	[ r => 'real' ], [ txt => 'text' ], [ words => 'text' ], [ ts => 'timestamp' ], [ da => 'date' ], [ ok => 'boolean' ]);

# Each table also has the columns id and k, with an index on each.
our %shapes = (
	narrow => { rows => 50000, columns => [ [ v => 'integer' ] ] },
	every => { rows => 24000, columns => \@all },
	hot => { rows => 14000, columns => [ [ v => 'integer' ], [ d => 'numeric(12,2)' ], [ txt => 'text' ], [ ok => 'boolean' ] ], with => 'fillfactor = 40' },
	texts => { rows => 8000, columns => [ [ txt => 'text' ], [ words => 'varchar(40)' ], [ long => 'text' ] ] },
	wide => { rows => 8000, columns => [ map { [ "w$_", $_ % 3 ? 'integer' : 'numeric(9,2)' ] } 1 .. 50 ] },
	parted => { rows => 20000, columns => [ [ v => 'integer' ], [ d => 'numeric(12,2)' ], [ txt => 'text' ] ], parts => 4 },
);
our @names = sort keys %shapes;
my $PART_IDS = 10000;
our $MAX_ID = 4 * $PART_IDS;

# Returns true with this probability.
sub chance { return rand() < $_[0] }

# Returns one of the arguments at random.
sub pick { return $_[ rand @_ ] }

# Returns a random integer from 0 to the argument minus 1.
sub upto { return int(rand($_[0])) }

# Returns the least id of a partition.
sub part_start { return $_[0] =~ /(\d+)$/ ? $1 * $PART_IDS : 0 }

# Returns the bounds of a partition, as in FOR VALUES.
sub part_bounds
{
	my $first = part_start(@_);

	return "FROM ($first) TO (" . ($first + $PART_IDS) . ')';
}

# Returns statements that make a table without rows.
sub create
{
	my ($name) = @_;
	my $shape = $shapes{$name};
	my $columns = join(', ', 'id integer NOT NULL', 'k integer', map { "$_->[0] $_->[1]" } @{ $shape->{columns} });
	my $with = join(', ', 'autovacuum_enabled = off', $shape->{with} // ());
	my @statements;

	if ($shape->{parts})
	{
		@statements = ("CREATE TABLE $name ($columns) PARTITION BY RANGE (id)",
			map { "CREATE TABLE ${name}_$_ PARTITION OF $name FOR VALUES " . part_bounds($_) . " WITH ($with)" } 0 .. $shape->{parts} - 1);
	}
	else
	{
		@statements = ("CREATE TABLE $name ($columns) WITH ($with)");
	}
	return (@statements, "CREATE INDEX ON $name (id)", "CREATE INDEX ON $name (k)");
}

# Returns an expression of a random value for a column, for each row of generate_series() i.
sub value
{
	my ($name, $type) = @_;
	my %values = (
		integer => '(random() * 1000)::int',
		smallint => '(random() * 100)::int',
		bigint => '(random() * 1e12)::bigint',
		'double precision' => q{CASE WHEN random() < 0.02 THEN (ARRAY['NaN', '-0', 'Infinity', '1e-300'])[1 + i % 4]::float8 ELSE random() END},
		real => 'random()::real',
		timestamp => q{timestamp '2024-01-01' + (random() * 300)::int * interval '7 hours'},
		date => q{date '2024-01-01' + (random() * 60)::int},
		boolean => 'random() < 0.3',
	);
	my $value;

	return 'nullif((random() * 12)::int, 12)' if $name eq 'k';
	$type =~ s/ without time zone//;
	if ($type eq 'numeric')
	{
		$value = 'round((random() * 9000)::numeric, 2)';
		$value = "CASE WHEN random() < 0.01 THEN (ARRAY['NaN', '1e30', '0.000001'])[1 + i % 3]::numeric ELSE $value END" if $name eq 'n';
	}
	elsif ($type =~ /^(?:text|character varying)/)
	{
		$value = $name eq 'txt' ? q{'t' || (random() * 9)::int} : $name eq 'long' ? 'repeat(md5(random()::text), (random() * random() * 100)::int)' : q{'word ' || (random() * 3000)::int};
	}
	else
	{
		$value = $values{$type} // die "no values of type $type";
	}
	return $name =~ /[sv]$/ ? $value : "CASE WHEN random() > 0.05 THEN $value END";
}

# Returns an expression of a random id, within the bounds of a partition.
sub ids
{
	my ($name) = @_;

	return part_start($name) . ' + (random() * ' . ($name =~ /^parted_/ ? $PART_IDS - 1 : $MAX_ID - 1) . ')::int';
}

# Returns a statement that inserts n rows with random values for these columns.
sub insert
{
	my ($name, $columns, $n) = @_;

	my $values = join(', ', map { $_->[0] eq 'id' ? ids($name) : value(@$_) } @$columns);

	return "INSERT INTO $name (" . join(', ', map { $_->[0] } @$columns) . ") SELECT $values FROM generate_series(1, $n) i";
}

# Returns a statement that inserts a share of the table's initial rows.
sub fill
{
	my ($name, $share) = @_;
	my $shape = $shapes{$name};

	return insert($name, [ [ id => 'integer' ], [ k => 'integer' ], map { [ $_->[0], $_->[1] =~ s/\(.*//r =~ s/^varchar$/character varying/r ] } @{ $shape->{columns} } ],
		int($shape->{rows} * ($share // 1)));
}

# Dimensions that are joined with k and id of the other tables: by one key, by two, and with several rows for a key. Only their rows change,
# so that readers need no locks.
our %dimensions = (
	dim => { keys => [qw(dk)], on => 'dk = t.k', columns => [ [ dg => 'text' ], [ dx => 'integer' ] ] },
	pair => { keys => [qw(pk pl)], on => 'pk = t.k AND pl = t.id % 97', columns => [ [ pw => 'bigint' ] ] },
	apart => { keys => [qw(ak)], on => 'ak = t.id * 1000003::bigint', columns => [ [ ax => 'integer' ] ] },
	many => { keys => [], on => 'mk = t.k', columns => [ [ mt => 'text' ], [ mx => 'integer' ] ] });

sub create_dimensions
{
	return ('CREATE TABLE dim (dk integer PRIMARY KEY, dg text, dx integer)', q{INSERT INTO dim SELECT i, 'g' || i % 4, i FROM generate_series(0, 40) i},
		'CREATE TABLE pair (pk integer, pl integer, pw bigint, PRIMARY KEY (pk, pl))', 'INSERT INTO pair SELECT i % 11, i / 11, i FROM generate_series(0, 900) i',
		'CREATE TABLE apart (ak bigint PRIMARY KEY, ax integer)', 'INSERT INTO apart SELECT i * 1000003::bigint, i % 100 FROM generate_series(0, 20000, 3) i',
		'CREATE TABLE many (mk integer, mt text, mx integer)', q{INSERT INTO many SELECT i % 10, 'm' || i % 3, i FROM generate_series(0, 24) i}, 'VACUUM dim, pair, apart, many');
}

# Returns a statement that changes rows of a dimension.
sub change_dimension
{
	return pick('UPDATE dim SET dx = dx + 1 WHERE dk % 4 = ' . upto(4), q{UPDATE dim SET dg = nullif('g' || (random() * 5)::int, 'g5') WHERE dk = } . upto(40),
		'DELETE FROM dim WHERE dk = ' . upto(15), 'INSERT INTO dim SELECT i, NULL, i FROM generate_series(0, 14) i ON CONFLICT DO NOTHING',
		'UPDATE pair SET pw = pw * 2 % 1000 WHERE pk = ' . upto(11), 'DELETE FROM pair WHERE pl = ' . upto(80), 'INSERT INTO pair SELECT i % 11, i / 11, i FROM generate_series(0, 900) i ON CONFLICT DO NOTHING',
		'UPDATE apart SET ax = ax + 1 WHERE ak % 50 = ' . upto(50), 'DELETE FROM many WHERE mx % 10 = ' . upto(10), q{INSERT INTO many SELECT upto, 'm' || upto % 3, (random() * 100)::int FROM generate_series(0, 9) upto WHERE random() < 0.3},
		'UPDATE many SET mk = mk + 1 WHERE mx = ' . upto(25), 'DELETE FROM many WHERE ctid NOT IN (SELECT ctid FROM many LIMIT 40)', ('VACUUM dim', 'VACUUM pair', 'VACUUM apart', 'VACUUM (FREEZE) many'));
}

# Returns a query for the columns that a table has now, with their types.
sub columns_query
{
	my ($name) = @_;

	return "SELECT attname, format_type(atttypid, NULL) FROM pg_attribute WHERE attrelid = to_regclass('$name') AND attnum > 0 AND NOT attisdropped";
}

1;
