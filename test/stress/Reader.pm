# Readers of the stress test. In transactions they run random queries with the column cache and without the extension, and compare.
package Reader;
use strict;
use warnings;
use Time::HiRes qw(sleep time);
use Shapes;

*chance = \&Shapes::chance;
*pick = \&Shapes::pick;
*upto = \&Shapes::upto;

# Settings for queries without the extension, and with it, except for the engine.
my $plain_settings = 'SET LOCAL gpuagg.enabled = off \; SET LOCAL max_parallel_workers_per_gather = 0';
my $scan_settings = join(' \; ', map { "SET LOCAL $_" } 'gpuagg.enabled = on', "gpuagg.require = 'require'",
	'gpuagg.replace_builtin = on', 'gpuagg.startup_cost = 0', 'gpuagg.row_cost = 0', 'gpuagg.slot_cost = 0');

sub new
{
	my ($class, %self) = @_;

	return bless { count => {}, %self }, $class;
}

# Adds 1, or the given number, to a count that is printed at the end.
sub count { $_[0]{count}{ $_[1] } += $_[2] // 1; return }

# ---- queries ---------------------------------------------------------------------

# Returns a random condition on a column.
sub condition
{
	my ($name, $type) = @_;
	my $n = upto(1000);

	return pick("$name IS NULL", "$name IS NOT NULL") if chance(0.1);
	return pick("$name = 't" . upto(10) . "'", "$name IN ('t1', 't3', 't7')", "$name > 't4'", "$name LIKE '%5'") if $name eq 'txt';
	return pick("$name = 'word $n'", "$name LIKE 'word 1%'", "$name < 'word 2'", "length($name) > 300", "$name <> ''") if $type =~ /text|char/;
	return pick($name, "NOT $name") if $type eq 'boolean';
	return time_condition($name, "2024-0" . (1 + upto(3)) . '-11') if $type =~ /date|time/;
	return "$name > " . pick(0, 0, -1, 1) if $name eq 'id' && chance(0.3);
	return "$name BETWEEN " . ($n * 40) . ' AND ' . (($n + pick(1, 100, 500)) * 40) if $name eq 'id';
	return "$name " . pick('=', '<>', '<') . ' ' . upto(13) if $name eq 'k';
	return "$name " . pick('<', '>', '<>') . ' ' . ($type =~ /numeric/ ? upto(9000) . '.5' : $type eq 'bigint' ? $n * 1e9 : $type eq 'smallint' ? upto(100) : $n);
}

# Returns a condition on a date or time, some with operands of other types, casts, or the time of the query.
sub time_condition
{
	my ($name, $day) = @_;
	my $way = pick('<', '>=');

	return pick("$name $way '$day'", "$name $way '$day'", "$name $way '$day 07:00'::timestamptz", "$name $way '$day'::date", "${name}::date $way '$day'", "${name}::timestamptz $way '$day 12:00'",
		"$name $way now() - interval '1 year'", "$name > '2020-01-01'::timestamptz");
}

# Returns a random aggregate of a column, whose result does not depend on the order of rows.
sub aggregate
{
	my ($name, $type) = @_;

	return pick("count($name)", "count(*) FILTER (WHERE $name IS NULL)") if $type eq 'boolean' || chance(0.2);
	return pick("max(upper($name))", "sum(length($name))", "count(nullif($name, 't1'))") if $type =~ /text|char/ && chance(0.4);
	return pick("min($name)", "max($name)", "count($name)") if $type =~ /text|char|date|time|double|real/;
	return pick("sum($name)", "sum($name)", "min($name)", "max($name)", $type =~ /numeric/ ? "avg($name)" : "sum(${name}::bigint)");
}

# Returns a grouping key: the column or an expression of it.
sub key
{
	my ($name, $type) = @_;

	return pick('id % 7', 'id / 1000') if $name eq 'id';
	return "date_trunc('week', $name)" if $type =~ /time/ && chance(0.5);
	return pick("lower($name)", "left($name, 2)", "length($name)", "coalesce($name, 'none')", "CASE WHEN id % 3 = 0 THEN $name ELSE 't1' END") if $type =~ /text|char/ && chance(0.6);
	return $name;
}

# Returns a condition that is a join of the table with itself: other tables are not locked, and may be truncated between two queries.
sub join_condition
{
	my ($table) = @_;

	return pick('', 'NOT ') . "EXISTS (SELECT FROM $table i WHERE i.id = t.id AND i.k <> " . upto(13) . ')' if chance(0.5);
	return "id IN (SELECT i.id FROM $table i WHERE i.k < " . upto(13) . ')';
}

# Joins some dimensions: returns the SQL that follows the table, conditions for WHERE, and the columns of the dimensions.
sub dimensions
{
	my ($sql, @conditions, @columns) = ('');

	foreach my $name (grep { chance(0.4) } sort keys %Shapes::dimensions)
	{
		my $dimension = $Shapes::dimensions{$name};
		my $kind = pick('', '', 'LEFT', 'SEMI', 'ANTI');
		my $where = chance(0.4) ? condition(@{ pick(@{ $dimension->{columns} }) }) : undef;

		if ($kind =~ /SEMI|ANTI/)
		{
			push @conditions, ($kind eq 'ANTI' ? 'NOT ' : '') . "EXISTS (SELECT FROM $name WHERE " . join(' AND ', $dimension->{on}, $where // ()) . ')';
			next;
		}
		$sql .= " $kind JOIN $name ON $dimension->{on}";
		push @conditions, $where if $where;
		push @columns, @{ $dimension->{columns} };
	}
	return ($sql, \@conditions, \@columns);
}

# Returns a random query over some of the columns.
sub query
{
	my ($table, $columns) = @_;
	my ($joins, $of_joins, $more) = chance(0.35) && grep({ $_->[0] eq 'k' && $_->[1] eq 'integer' } @$columns) ? dimensions() : ('', [], []);
	my @some = map { pick(@$columns, @$more, @$more) } 1 .. 1 + upto(4);
	my @keys = map { key(@$_) } grep { chance(0.6) } @some[ 0 .. upto(2) % @some ];
	my @aggregates = ('count(*)', map { aggregate(@$_) } @some);
	my @conditions = map { condition(@$_) } grep { chance(0.4) } map { pick(@$columns) } 1 .. 2;
	push @conditions, join_condition($table) if chance(0.2);
	push @conditions, @$of_joins;
	my $from = "$table t$joins" . (@conditions ? ' WHERE ' . join(' AND ', @conditions) : '');
	my $sql = 'SELECT ' . join(', ', @keys, @aggregates) . " FROM $from" . (@keys ? ' GROUP BY ' . join(', ', 1 .. @keys) : '');

	$sql = 'SELECT ' . join(', ', 'count(*)', map {; "min($_->[0])", "max($_->[0])" } grep { $_->[1] !~ /bool/ } @some) . " FROM $from" if chance(0.15);
	$sql = "SELECT * FROM (VALUES (1), (2)) x, LATERAL ($sql LIMIT 100000) y" if chance(0.03) && !grep { /date_trunc/ } @keys;
	return $sql;
}

# ---- answers ----------------------------------------------------------------------

# Runs a statement, and returns its rows. Dies with the SQLSTATE of an error, or with LOST.
sub run
{
	my ($self, $sql) = @_;
	my $result = $self->{session}->run($sql);

	die "$result->{state}\n" if $result->{state} eq 'LOST';
	die "$result->{state} $result->{message} [$sql]\n" if $result->{state} ne '00000';
	return $result->{rows};
}

# Returns rows as sorted lines.
sub lines { return join("\n", sort map { join('|', @$_) } @{ $_[0] }) }

# Returns random settings for a query with the cache.
sub draw_settings
{
	my ($self) = @_;

	return join(' \; ', $scan_settings, map { "SET LOCAL $_" }
		  'gpuagg.engine = ' . ($self->{engine} eq 'cpu' ? 'cpu' : pick('cuda', 'cuda', 'auto')),
		'gpuagg.cache = ' . (chance(0.7) ? 'eager' : 'on'),
		'max_parallel_workers_per_gather = ' . (chance(0.25) ? 2 : 0),
		'parallel_setup_cost = 0', 'parallel_tuple_cost = 0', 'min_parallel_table_scan_size = 0',
		'enable_indexscan = off', 'enable_indexonlyscan = off', 'enable_bitmapscan = off', 'enable_mergejoin = off', 'enable_nestloop = off',
		'gpuagg.batch_rows = ' . pick(1024, 65536, 262144));
}

# Returns PostgreSQL's own answer.
sub plain_answer
{
	my ($self, $sql) = @_;

	$self->run($plain_settings);
	return lines($self->run($sql));
}

# Returns the answer with the cache. Sometimes uses a cursor, and fetches most of the rows later.
sub cached_answer
{
	my ($self, $sql, $settings) = @_;
	my $rows;

	$self->run($settings);
	if (chance(0.05))
	{
		$self->run("DECLARE c CURSOR FOR $sql");
		$rows = $self->run('FETCH 1 FROM c');
		sleep(rand(0.3));
		push @$rows, @{ $self->run('FETCH ALL FROM c') };
		$self->run('CLOSE c');
		return lines($rows);
	}
	return lines($self->run($sql));
}

# Runs EXPLAIN ANALYZE, and counts the blocks that the query read from the cache. Returns the plan.
sub explain
{
	my ($self, $sql, $settings) = @_;
	my $text = join("\n", map { $_->[0] } @{ $self->run("$settings \\; EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) $sql") });

	$self->count('explained');
	$self->count('at the GPU server') if $text =~ /^ *Engine: cuda/m;
	$self->count('GPU memory', $1) while $text =~ /GPU memory \((\d+) of \d+ blocks\)/g;
	$self->count('lookups') while $text =~ /Lookup: /g;
	$self->count('joins on the GPU') while $text =~ /Lookup: .* GPU cells/g;
	$self->count('kept lookups') while $text =~ /Lookup: .* kept /g;
	while ($text =~ /column cache \((\d+) of (\d+) blocks\)/g)
	{
		$self->count('blocks', $2);
		$self->count('cached', $1);
	}
	while ($text =~ /^ *Cached Blocks: (.*)/mg)
	{
		my $proofs = $1;

		$self->count($1, $2) while $proofs =~ /([a-z][a-z ]*)=(\d+)/g;
	}
	return $text;
}

# Prints what differs between two answers, and what both give now.
sub report
{
	my ($self, $sql, $settings, $expected, $answer) = @_;
	my (%expected, %answer);
	my $again = eval { $self->cached_answer($sql, $settings) } // $@;
	my $heap = eval { $self->cached_answer($sql, "$settings \\; SET LOCAL gpuagg.cache = off") } // $@;
	my $now = eval { $self->plain_answer($sql) } // $@;
	my $plan = eval { $self->explain($sql, $settings) } // $@;

	@expected{ split /\n/, $expected } = ();
	@answer{ split /\n/, $answer } = ();
	$self->count('differences');
	print "not ok $self->{what}: answers are equal; seed $self->{seed}\n# $sql\n# $settings\n",
	  map({ "#   core $_\n" } (grep { !exists $answer{$_} } sort keys %expected)[ 0 .. 4 ]),
	  map({ "#   cache $_\n" } (grep { !exists $expected{$_} } sort keys %answer)[ 0 .. 4 ]),
	  '# transaction: ', join('; ', @{ $self->{done} }), "\n",
	  '# now: core ', ($now eq $expected ? 'the same' : 'another answer'), ', cache ',
	  ($again eq $expected ? 'right' : 'wrong'), ', without the cache ', ($heap eq $expected ? 'right' : 'wrong'), "\n",
	  map({ "#   $_\n" } split /\n/, $plan);
	return;
}

# Returns the partitions that a query reads. A partition that is attached is visible at once, even to older snapshots.
sub partitions
{
	my ($self, $sql) = @_;

	return '' if $sql !~ /\bparted\b/;
	return $self->run(q{SELECT string_agg(relid::oid::text, ' ' ORDER BY relid) FROM pg_partition_tree('parted')})->[0][0];
}

# Runs a query with the cache and without the extension, and compares. Returns the query, PostgreSQL's answer and the partitions, as
# arguments for another comparison in this transaction; or nothing if partitions were attached or detached meanwhile.
sub compare
{
	my ($self, $sql, $expected, $partitions) = @_;
	my $settings = $self->draw_settings;
	my $cached;

	$partitions //= $self->partitions($sql);
	$cached = $self->cached_answer($sql, $settings) if chance(0.5);
	$expected //= $self->plain_answer($sql);
	$cached //= $self->cached_answer($sql, $settings);
	$self->count('queries');
	if ($self->partitions($sql) ne $partitions)
	{
		$self->count('partitions changed');
		return;
	}
	if ($cached ne $expected)
	{
		$self->report($sql, $settings, $expected, $cached);
	}
	elsif (chance(0.2))
	{
		$self->explain($sql, $settings);
	}
	return [ $sql, $expected, $partitions ];
}

# ---- transactions -------------------------------------------------------------------

# Changes rows in this transaction, and sometimes rolls back to a savepoint.
sub change
{
	my ($self, $table) = @_;
	my $from = upto($Shapes::MAX_ID);
	my $range = "WHERE id BETWEEN $from AND " . ($from + pick(5, 50, 500));
	my $sql = pick("UPDATE $table SET k = k $range", "DELETE FROM $table $range", "INSERT INTO $table (id, k) SELECT i, i FROM generate_series(1, 100) i",
		"SELECT count(*) FROM (SELECT FROM $table $range FOR UPDATE) x", grep({ !/VACUUM/ } Shapes::change_dimension()));
	my $back = chance(0.3);

	$self->run('SAVEPOINT s') if $back;
	$self->run($sql);
	push @{ $self->{done} }, $sql, $back ? 'rolled back' : ();
	$self->run('ROLLBACK TO s') if $back;
	$self->count('own changes');
	return;
}

# Locks a table and runs some queries. Queries and answers are appended to @$done.
sub query_table
{
	my ($self, $table, $done, $changes) = @_;
	my @columns;

	$self->run("LOCK TABLE $table IN ACCESS SHARE MODE");
	@columns = @{ $self->run(Shapes::columns_query($table)) };
	return $self->count('no table') if !@columns;
	foreach my $n (1 .. 1 + upto(4))
	{
		my $sql = query($table, \@columns);

		push @$done, $self->compare($sql);
		next if $self->{standby} || !chance($changes);
		@$done = ();
		$self->change($table);
	}
	return;
}

# Runs a transaction. With a probability of 15 %, it keeps its snapshot for a long time.
sub transaction
{
	my ($self) = @_;
	my @tables = (pick(@Shapes::names, chance(0.2) ? 'parted_' . upto(4) : ()));
	my $level = $self->{standby} || chance(0.8) ? 'REPEATABLE READ' : 'SERIALIZABLE';
	my $old = chance(0.15);
	my $end = time() + ($old ? rand($self->{patience}) : 0);
	my @queries;

	$self->{done} = [];
	$self->run("BEGIN ISOLATION LEVEL $level");
	# take the snapshot some time before the first query
	if ($old || chance(0.2))
	{
		$self->run('SELECT 1');
		sleep(rand($old ? $self->{patience} / 2 : 0.3));
	}
	while (1)
	{
		$self->query_table($tables[-1], \@queries, $old ? 0.02 : 0.04);
		last if time() >= $end;
		sleep(rand(0.4));
		foreach my $query (@queries)
		{
			next if !chance(0.5);
			$self->count('old snapshots');
			$self->compare(@$query);
		}
		splice(@queries, 0, -6) if @queries > 6;
		push @tables, pick(@Shapes::names);
	}
	$self->run(chance(0.8) ? 'COMMIT' : 'ROLLBACK');
	return;
}

# Errors that concurrent changes of tables cause. For example, a column may have another type now than the query's constant. The
# connection is lost in a crash.
my $expected_errors = qr/^(?:22007|22P02|40|23514|42P01|42703|42804|42846|42883|55P03|57014|57P|25006|XX000 cache lookup failed|LOST|0A000 cannot access temporary or unlogged)/;

# Runs one transaction, and counts or reports its error.
sub step
{
	my ($self) = @_;

	return if eval { $self->transaction; $self->count('transactions'); 1 };
	my $error = $@;
	chomp $error;
	if ($error =~ /^LOST/ || ($self->{session}->run('ROLLBACK')->{state} eq 'LOST'))
	{
		$self->count('lost');
		$self->reconnect;
		return;
	}
	# a parallel scan cannot read its rows again if the GPU server is lost
	if ($error =~ /^0A000.*(?:gpuagg|custom scan|engine "cuda" is not available)|^38000 engine "cuda" failed: the GPU server (?:ended|did not answer)/i)
	{
		$self->count('refused');
	}
	elsif ($error =~ $expected_errors)
	{
		$self->count('errors ' . substr($error, 0, 5));
		print "# $self->{what}: $error\n" if $ENV{STRESS_VERBOSE};
	}
	else
	{
		$self->count('unexpected errors');
		print "not ok $self->{what}: $error\n";
	}
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

# Sets the settings of a new session.
sub prepare_session
{
	my ($self) = @_;

	$self->run('SET client_min_messages = error \; SET statement_timeout = 120000 \; SET lock_timeout = 2000');
	return;
}

1;
