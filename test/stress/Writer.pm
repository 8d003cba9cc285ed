# Writers of the stress test. They make random changes of the tables and of their definitions.
package Writer;
use strict;
use warnings;
use Time::HiRes qw(sleep time);
use Shapes;

*chance = \&Shapes::chance;
*pick = \&Shapes::pick;
*upto = \&Shapes::upto;

sub new
{
	my ($class, %self) = @_;

	return bless { count => {}, gid => 0, %self }, $class;
}

# Adds 1, or the given number, to a count that is printed at the end.
sub count { $_[0]{count}{ $_[1] } += $_[2] // 1; return }

# Runs statements up to the first that fails. Returns whether all succeeded.
sub run
{
	my ($self, @statements) = @_;

	foreach my $sql (@statements)
	{
		my $result = $self->{session}->run($sql);

		die "LOST\n" if $result->{state} eq 'LOST';
		$self->{rows} = $result->{rows};
		next if $result->{state} eq '00000';
		$self->failed($sql, $result);
		return 0;
	}
	return 1;
}

# Errors that other writers cause.
my $expected_errors = qr/^(?:40|42|55|57|25|2BP01|0A000|22|23|26|XX000 (?:cache lookup failed|tuple concurrently|could not open relation|relation \d+ deleted))/;

# Counts a failed statement; fails the test unless other writers may have caused the error.
sub failed
{
	my ($self, $sql, $result) = @_;

	$self->count("errors $result->{state}");
	print "not ok $self->{what}: $result->{state} $result->{message} [$sql]\n" if "$result->{state} $result->{message}" !~ $expected_errors;
	print "# $self->{what}: $result->{state} $result->{message} [" . substr($sql, 0, 200) . "]\n" if $ENV{STRESS_VERBOSE};
	return;
}

# Runs statements in a transaction and ends it with COMMIT or ROLLBACK. Pauses, so that others run while it is in progress.
sub in_transaction
{
	my ($self, $end, @statements) = @_;
	my $ok = $self->run('BEGIN');

	foreach my $sql (@statements)
	{
		$ok &&= $self->run($sql);
		sleep(rand(0.1)) if chance(0.5);
	}
	return $self->run($ok ? $end : 'ROLLBACK') && $ok;
}

# Returns a condition for a short range of ids or of blocks.
sub some_rows
{
	my ($self) = @_;
	my $id = upto($Shapes::MAX_ID);
	my $block = upto($self->{blocks} || 1);

	return "id BETWEEN $id AND " . ($id + pick(0, 5, 40)) if chance(0.3);
	return "ctid >= '($block,0)' AND ctid < '(" . ($block + pick(1, 3, 20)) . ",0)'" . (chance(0.5) ? ' AND id % 5 = 0' : '');
}

# Returns an assignment of UPDATE: a random value for a random column. $hot: for a column without an index.
sub set_column
{
	my ($self, $hot) = @_;
	my $column = pick(grep { $_->[0] ne 'id' && ($hot ? $_->[0] ne 'k' : 1) } @{ $self->{columns} });

	return "$column->[0] = $column->[0]" if chance(0.2);
	return "$column->[0] = (SELECT " . Shapes::value(@$column) . ' FROM (SELECT upto AS i FROM generate_series(1, 1) upto) x)';
}

# Returns a random UPDATE, DELETE or INSERT.
sub dml
{
	my ($self) = @_;
	my $t = $self->{table};
	my $where = $self->some_rows;

	return pick(
		"UPDATE $t SET " . $self->set_column(1) . " WHERE $where",
		"UPDATE $t SET " . $self->set_column(1) . " WHERE $where",
		"UPDATE $t SET k = k + 1 WHERE $where",
		"DELETE FROM $t WHERE $where AND id % 3 = " . upto(3),
		Shapes::insert($t, $self->{columns}, pick(1, 1, 20, 200)));
}

# Returns an INSERT that fills an empty table.
sub refill
{
	my ($self) = @_;

	return Shapes::insert($self->{table}, $self->{columns}, int(($self->{shape}{rows} // 5000) * (0.2 + rand(0.8))));
}

# Returns the name of a random partition.
sub partition { return 'parted_' . upto(4) }

# ---- operations -------------------------------------------------------------------------

# name => [ weight, function ]
my %operations = (
	change => [ 30, sub { my $self = shift; $self->run($self->dml) } ],
	dimension => [ 25, sub { my $self = shift; $self->run(Shapes::change_dimension()) } ],
	transaction => [ 15, sub { my $self = shift; $self->in_transaction(chance(0.7) ? 'COMMIT' : 'ROLLBACK', map { $self->dml } 1 .. 1 + upto(4)) } ],
	savepoints => [ 8, sub {
		my $self = shift;
		$self->in_transaction(chance(0.8) ? 'COMMIT' : 'ROLLBACK', $self->dml, 'SAVEPOINT a', $self->dml, chance(0.5) ? 'ROLLBACK TO a' : 'RELEASE a', 'SAVEPOINT b', $self->dml,
			chance(0.5) ? ('ROLLBACK TO b') : (), chance(0.5) ? $self->dml : ());
	} ],
	lock => [ 8, sub {
		my $self = shift;
		my $lock = "SELECT count(*) FROM (SELECT FROM $self->{table} WHERE " . $self->some_rows . ' FOR ' . pick('UPDATE', 'NO KEY UPDATE', 'SHARE', 'KEY SHARE') . ') x';
		$self->in_transaction(pick('COMMIT', 'ROLLBACK'), $lock, chance(0.3) ? $self->dml : ());
	} ],
	insert => [ 4, sub { my $self = shift; $self->run(Shapes::insert($self->{table}, $self->{columns}, 2000)) } ],
	copy => [ 4, sub { my $self = shift; $self->copy_out && $self->run($self->copy_in('')) } ],
	copy_freeze => [ 4, sub {
		my $self = shift;
		$self->copy_out && $self->in_transaction(chance(0.8) ? 'COMMIT' : 'ROLLBACK', "TRUNCATE $self->{table}", $self->copy_in(', FREEZE'), chance(0.3) ? $self->dml : ());
	} ],
	truncate => [ 2, sub { my $self = shift; $self->in_transaction(chance(0.6) ? 'COMMIT' : 'ROLLBACK', "TRUNCATE $self->{table}", $self->refill, chance(0.5) ? $self->dml : ()) } ],
	truncate_alone => [ 1, sub { my $self = shift; $self->run("TRUNCATE $self->{table}", $self->refill) } ],
	vacuum => [ 24, sub { my $self = shift; $self->run("VACUUM $self->{table}") } ],
	vacuum_freeze => [ 5, sub { my $self = shift; $self->run("VACUUM (FREEZE) $self->{table}") } ],
	vacuum_all => [ 2, sub { my $self = shift; $self->run("VACUUM (DISABLE_PAGE_SKIPPING, INDEX_CLEANUP " . pick('on', 'off') . ") $self->{table}") } ],
	vacuum_full => [ 2, sub { my $self = shift; $self->run("VACUUM FULL $self->{table}") } ],
	shorten => [ 5, sub {
		my $self = shift;
		my $from = int(($self->{blocks} || 1) * (0.5 + rand(0.5)));
		$self->run("DELETE FROM $self->{table} WHERE ctid >= '($from,0)'") && $self->run("VACUUM (TRUNCATE) $self->{table}") && chance(0.8) && $self->run(Shapes::insert($self->{table}, $self->{columns}, 3000));
	} ],
	truncate_map => [ 2, sub { my $self = shift; $self->run("SELECT pg_truncate_visibility_map('$self->{table}')") if $self->{table} ne 'parted' } ],
	# evicted chunks are built again by the next reader
	evict => [ 10, sub { my $self = shift; $self->run("SELECT gpuagg_cache_evict('$self->{table}')") if $self->{table} ne 'parted' } ],
	prewarm => [ 4, sub { my $self = shift; $self->run("SELECT gpuagg_cache_prewarm('$self->{table}')") if $self->{table} ne 'parted' } ],
	cluster => [ 1, sub { my $self = shift; $self->run("CLUSTER $self->{table} USING $self->{table}_id_idx") } ],
	reindex => [ 1, sub { my $self = shift; $self->run("REINDEX TABLE $self->{table}") } ],
	analyze => [ 1, sub { my $self = shift; $self->run("ANALYZE $self->{table}") } ],
	add_column => [ 3, sub { my $self = shift; $self->run("ALTER TABLE $self->{root} ADD COLUMN x" . upto(5) . ' ' . default_of()) } ],
	add_twice => [ 4, sub {
		my $self = shift;
		my $x = 'y' . upto(5);
		my ($one, $two) = (default_of($x), default_of($x));
		# the cache keeps the column that was rolled back, and the next column gets the same attribute number
		$self->in_transaction('ROLLBACK', "ALTER TABLE $self->{root} ADD COLUMN $x $one", $self->cached("SELECT count($x), min($x) FROM $self->{root}"));
		$self->run("ALTER TABLE $self->{root} ADD COLUMN $x $two");
	} ],
	drop_column => [ 4, sub { my $self = shift; my $column = pick(grep { $_->[0] =~ /^[xy]\d/ } @{ $self->{columns} }) or return; $self->run("ALTER TABLE $self->{root} DROP COLUMN $column->[0]") } ],
	alter_type => [ 3, sub {
		my $self = shift;
		my $column = pick(grep { $_->[1] =~ /numeric|char|text|integer/ && $_->[0] ne 'id' } @{ $self->{columns} }) or return;
		my $type = $column->[1] =~ /numeric/ ? pick('numeric', 'numeric(14,2)', 'numeric(16,2)', 'numeric(16,3)') : $column->[1] =~ /char|text/ ? pick('text', 'varchar(4000)', 'varchar(5000)') : pick('integer', 'bigint');
		$self->in_transaction(chance(0.7) ? 'COMMIT' : 'ROLLBACK', "ALTER TABLE $self->{root} ALTER COLUMN $column->[0] TYPE $type", chance(0.5) ? $self->cached("SELECT count($column->[0]), min($column->[0]) FROM $self->{root}") : ());
	} ],
	tablespace => [ 2, sub { my $self = shift; $self->run("ALTER TABLE $self->{table} SET TABLESPACE " . pick('pg_default', 'other')) if $self->{table} ne 'parted' } ],
	unlogged => [ 1, sub {
		my $self = shift;
		return if $self->{table} eq 'parted';
		$self->run("ALTER TABLE $self->{table} SET UNLOGGED");
		$self->run($self->dml);
		$self->run("ALTER TABLE $self->{table} SET LOGGED");
	} ],
	detach => [ 2, sub {
		my $self = shift;
		my $part = partition();
		$self->run("ALTER TABLE parted DETACH PARTITION $part") && chance(0.7) && $self->attach($part);
	} ],
	attach => [ 3, sub { my $self = shift; $self->attach(partition()) } ],
	drop => [ 2, sub {
		my $self = shift;
		my $name = $self->{root};
		my @statements = ("DROP TABLE IF EXISTS $name", Shapes::create($name), Shapes::fill($name, rand()));
		unshift @statements, map { "DROP TABLE IF EXISTS ${name}_$_" } 0 .. 3 if $name eq 'parted';
		chance(0.7) ? $self->in_transaction(chance(0.8) ? 'COMMIT' : 'ROLLBACK', @statements) : $self->run(@statements);
	} ],
	prepared => [ 4, sub {
		my $self = shift;
		my $gid = "$self->{name} " . $self->{gid}++;
		$self->in_transaction("PREPARE TRANSACTION '$gid'", map { $self->dml } 1 .. 2) or return;
		sleep(rand(0.5));
		$self->run(pick('COMMIT', 'ROLLBACK') . " PREPARED '$gid'");
	} ],
	pause => [ 10, sub { sleep(rand(0.3)); 1 } ],
);

# Returns the type and default of a new column. $x: its name, if it is added twice.
sub default_of
{
	my ($x) = @_;

	# a name always has the same type, so that two columns differ only in their defaults
	return "integer DEFAULT " . upto(1000) if defined $x && $x =~ /[02]/;
	return "text DEFAULT 'd" . upto(1000) . "'" if defined $x;
	return pick('integer', 'integer DEFAULT ' . upto(1000), 'numeric(12,2) DEFAULT 1.5', "text DEFAULT 'some text'", 'boolean DEFAULT true', 'bigint DEFAULT (random() * 10)::bigint');
}

# Returns a query that fills the cache.
sub cached
{
	my ($self, $sql) = @_;

	return join(' \; ', "SET LOCAL gpuagg.require = 'require'", 'SET LOCAL gpuagg.cache = eager', 'SET LOCAL gpuagg.replace_builtin = on',
		'SET LOCAL gpuagg.startup_cost = 0', 'SET LOCAL gpuagg.row_cost = 0', 'SET LOCAL gpuagg.slot_cost = 0', $sql);
}

# Attaches a partition that was detached. If that fails, sometimes replaces it by a new partition with some rows.
sub attach
{
	my ($self, $part) = @_;

	return 1 if $self->run("ALTER TABLE parted ATTACH PARTITION $part FOR VALUES " . Shapes::part_bounds($part));
	return 0 if chance(0.5);
	return $self->in_transaction('COMMIT', "DROP TABLE IF EXISTS $part", "CREATE TABLE $part PARTITION OF parted FOR VALUES " . Shapes::part_bounds($part) . ' WITH (autovacuum_enabled = off)',
		(map { "INSERT INTO $part (id, k, v) SELECT id, 1, 1 FROM generate_series(" . Shapes::part_start($part) . ', ' . (Shapes::part_start($part) + 3000) . ') id' } 1));
}

sub copy_file { return "$_[0]{directory}/copy-$_[0]{name}" }
sub copy_columns { return join(', ', map { $_->[0] } @{ $_[0]{columns} }) }

# Copies some rows of the table to this writer's file.
sub copy_out
{
	my ($self) = @_;

	return $self->run("COPY (SELECT " . $self->copy_columns . " FROM $self->{table} LIMIT " . pick(100, 3000, 20000) . ") TO '" . $self->copy_file . "'");
}

# Returns a COPY of that file into the table.
sub copy_in
{
	my ($self, $option) = @_;

	return "COPY $self->{table} (" . $self->copy_columns . ") FROM '" . $self->copy_file . "' WITH (FORMAT text$option)";
}

my @weighted = map { my $name = $_; map { $name } 1 .. $operations{$name}[0] } sort keys %operations;

# Runs a random operation on a random table. Tables that have become too large are emptied, and those that are missing are made.
sub operation
{
	my ($self) = @_;
	my $name = pick(@weighted);
	my $limit = 12 << 20;

	$self->{root} = pick(@Shapes::names);
	$self->{shape} = $Shapes::shapes{ $self->{root} };
	$self->{table} = $self->{root} eq 'parted' && chance(0.7) ? partition() : $self->{root};
	$self->run(Shapes::columns_query($self->{table})) or return;
	$self->{columns} = [ @{ $self->{rows} } ];
	if (!@{ $self->{columns} })
	{
		return $self->run(Shapes::create($self->{root}), Shapes::fill($self->{root})) if $self->{table} eq $self->{root};
		return;
	}
	$self->run("SELECT coalesce(pg_relation_size(to_regclass('$self->{table}')) / 8192, 0), coalesce(pg_total_relation_size(to_regclass('$self->{table}')), 0)") or return;
	$self->{blocks} = $self->{rows}[0][0];
	$name = pick('truncate', 'copy_freeze', 'drop') if $self->{rows}[0][1] > $limit;
	$name = 'insert' if $self->{blocks} < 20 && $self->{table} ne 'parted' && chance(0.5);
	$self->count($name);
	$self->count("$name done") if $operations{$name}[1]->($self);
	return;
}

sub step
{
	my ($self) = @_;

	return if eval { $self->operation; 1 };
	die $@ if $@ ne "LOST\n";
	$self->count('lost');
	$self->reconnect;
	return;
}

# Connects again. The server may crash again meanwhile.
sub reconnect
{
	my ($self) = @_;

	do
	{
		$self->{session}->reconnect;
	} until (eval { $self->prepare_session; 1 } || time() > $self->{until} + 30);
	return;
}

# Sets the settings of a new session, and ends prepared transactions that this writer began before a crash.
sub prepare_session
{
	my ($self) = @_;

	$self->run('SET client_min_messages = error \; SET statement_timeout = 120000 \; SET lock_timeout = 1000');
	$self->run("SELECT gid FROM pg_prepared_xacts WHERE gid LIKE '$self->{name} %'");
	$self->run(map { pick('COMMIT', 'ROLLBACK') . " PREPARED '$_->[0]'" } @{ $self->{rows} });
	return;
}

1;
