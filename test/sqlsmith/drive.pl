# Runs random aggregates over queries of sqlsmith. test/sqlsmith.sh calls it.
#
#	drive.pl --minutes N --seed N --results DIR
#
#	PGHOST, PGPORT, PGUSER, PGDATABASE		the database
#
# Prints "FAILED" with the statement for each error, and counts as "name: number". The exit status is 1 if there was an error.
#
# sqlsmith alone makes no GROUP BY. Each of its queries that can be planned, and sometimes a table, becomes the input of a few grouped
# queries with aggregates for the types of its columns, each with random settings. A statement with an internal error, or one that runs
# too long, runs again with gpuagg.enabled = off: if that fails as well, the error is PostgreSQL's own.
use strict;
use warnings;
use FindBin;
use Getopt::Long;
use Time::HiRes qw(time);

require "$FindBin::Bin/../diff/Session.pm";

my ($minutes, $seed, $results) = (1, 1, '.');
GetOptions('minutes=f' => \$minutes, 'seed=i' => \$seed, 'results=s' => \$results) or die;
srand($seed);
$| = 1;

my $TIMEOUT = 5;
my $LATE = 20;    # seconds after which a statement has missed its timeout, even on a busy machine
my $QUERIES = 1000;    # queries of one sqlsmith process
my $end = time + 60 * $minutes;
my $session = Session->new(log => "$results/psql$seed.log");
my %figures = map { $_ => 0 } ('statements', 'statements that ran', 'plans', 'plans with a custom scan', 'plans with parallel custom scans',
	'queries of sqlsmith', 'queries of sqlsmith that run', 'crashes', 'internal errors', 'internal errors of core', 'late');
my %states;
my $failed = 0;

sub one_of { return $_[ int(rand(@_)) ]; }
sub chance { return rand() < $_[0]; }

# Type of the first argument -> aggregates as [name, types of the other arguments...].
my %aggregates;
foreach my $row (
	@{
		$session->run(q{
			SELECT p.oid::regproc, array_to_string(p.proargtypes::regtype[], '|') FROM pg_proc p JOIN pg_aggregate a ON a.aggfnoid = p.oid
			WHERE aggkind = 'n' AND pronargs > 0 AND provariadic = 0 AND p.oid::regproc::text !~ 'xmlagg|object_agg'}
		)->{rows}
	})
{
	my ($name, @types) = ($row->[0], split /\|/, $row->[1]);
	my $first = shift @types;

	next if grep { !/^\w+( \w+)*(\[\])?$/ } @types;
	push @{ $aggregates{$first} }, [ $name, @types ];
	# the extension's aggregates and those that they replace are more frequent
	push @{ $aggregates{$first} }, ([ $name, @types ]) x 3 if $name =~ /gpu_|^(sum|avg|min|max|count|stddev|var|bit_|bool_|corr)/;
}
die "no aggregates" if !$aggregates{integer};

my %constants = (
	'integer' => [ 0, 1, 10, 3, 'NULL' ], 'double precision' => [ 0, 1, 100.5, q{'NaN'}, -1 ], 'bigint' => [ 5, 0 ], 'numeric' => [ 1, 2.5 ],
	'text' => [ q{','}, q{''} ], 'boolean' => [ 'true', 'false', 'NULL' ], 'bytea' => [q{'\x00'}],
	'double precision[]' => [ q{'{0,10,100}'}, q{'{1}'} ]);

# Returns a column or a constant of this type.
sub value_of
{
	my ($type, $columns) = @_;
	my @fit = grep { $_->[1] eq $type || $type =~ /^any/ } @$columns;

	return 's.' . one_of(@fit)->[0] if @fit && chance($constants{$type} ? 0.5 : 1);
	return '(' . one_of(@{ $constants{$type} || ['NULL'] }) . ")::" . ($type =~ /^any/ ? 'int' : $type);
}

# Arguments that use no column, such as constants; the extension's column types cannot represent some of them.
my @without_column = (
	[ q{'NaN'::numeric(10,2)}, 'numeric' ], [ '123456789012345678901234567890.12::numeric(40,2)', 'numeric' ], [ '1.5::numeric(6,3)', 'numeric' ],
	[ q{(SELECT 'NaN'::numeric)}, 'numeric' ], [ '(SELECT count(*) FROM few)', 'bigint' ], [ q{'-0'::float8}, 'double precision' ], [ 'NULL::int', 'integer' ],
	[ 'random()', 'double precision' ], [ q{'x'::text}, 'text' ], [ 'now()', 'timestamp with time zone' ], [ '2147483647', 'integer' ],
	[ q{'1 day'::interval}, 'interval' ], [ 'true', 'boolean' ]);

# Returns an argument and its type: a column, an expression over it, or with a small probability an expression without columns.
sub argument
{
	my ($columns) = @_;

	return one_of(@without_column)->@* if chance(0.08);
	my ($name, $type) = @{ one_of(@$columns) };
	my $sql = "s.$name";

	if ($type =~ /^(integer|bigint|smallint|numeric|double precision|real)$/ && chance(0.4))
	{
		my $other = value_of($type, $columns);

		$sql = one_of("$sql + $other", "$sql - $sql", "$sql * 2", "$sql / nullif($other, 0)", "coalesce($sql, $other)", "CASE WHEN $sql > $other THEN $sql END");
		# an operator's result may have another type, so cast it
		$sql = "($sql)::$type";
	}
	elsif ($type =~ /^timestamp|^date/ && chance(0.4))
	{
		($sql, $type) = one_of([ "extract(year from $sql)", 'numeric' ], [ "date_trunc('month', $sql)", $type eq 'date' ? 'timestamp with time zone' : $type ])->@*;
	}
	elsif ($type eq 'text' && chance(0.3))
	{
		($sql, $type) = one_of([ "length($sql)", 'integer' ], [ "left($sql, 2)", 'text' ])->@*;
	}
	return ($sql, $type);
}

sub aggregate
{
	my ($columns) = @_;
	my ($argument, $type) = argument($columns);
	my @any = @{ $aggregates{any} || [] };
	my @fit = (@{ $aggregates{$type} || [] }, chance(0.3) ? @{ $aggregates{anyelement} || [] } : ());
	my $picked = @fit && chance(0.9) ? one_of(@fit) : undef;
	my ($order, $filter) = ('', '');

	return 'count(*)' if !$picked && chance(0.5);
	$picked = ['count'] if !$picked;
	my ($name, @types) = @$picked;
	my $distinct = chance(0.05) && !@types ? 'DISTINCT ' : '';
	$order = ' ORDER BY s.' . one_of(@$columns)->[0] . one_of('', ' DESC') if !$distinct && ($name =~ /longest|compos|matrix|linear|sub|run/ || chance(0.1));
	$filter = ' FILTER (WHERE s.' . one_of(@$columns)->[0] . ' IS ' . one_of('NULL', 'NOT NULL') . ')' if chance(0.15);
	return "$name($distinct" . join(', ', $argument, map { value_of($_, $columns) } @types) . "$order)$filter";
}

# Returns a grouped query over the table or subquery $from, whose columns are [name, type].
sub grouped
{
	my ($from, $columns) = @_;
	my @keys = chance(0.25) ? () : map { "s." . one_of(@$columns)->[0] } 1 .. 1 + int(rand(2) + rand(2));
	my @aggs = map { aggregate($columns) } 1 .. 1 + int(rand(4));
	my $sql;

	@keys = map { (argument($columns))[0] } @keys if chance(0.2);
	$sql = 'SELECT ' . join(', ', @keys, @aggs) . " FROM $from AS s";
	$sql .= ' WHERE s.' . one_of(@$columns)->[0] . ' IS NOT NULL' if chance(0.3);
	if (chance(0.3))
	{
		my @numbers = grep { $_->[1] =~ /^(integer|bigint|double precision|numeric|smallint)$/ } @$columns;

		$sql .= ($sql =~ / WHERE [^()]*$/ ? ' AND ' : ' WHERE ') . 's.' . one_of(@numbers)->[0] . one_of(' > 10', ' IN (1, 2, 3, 5)', ' <> 0', ' BETWEEN 0 AND 100', ' < random() * 100')
		  if @numbers && ($sql =~ / WHERE [^()]*$/ || $sql !~ / WHERE [^)]*$/);
	}
	$sql .= ' GROUP BY ' . join(', ', @keys) if @keys;
	$sql .= ' HAVING count(*) > ' . int(rand(3)) if chance(0.15);
	$sql .= ' ORDER BY 1' if chance(0.2);
	$sql .= ' LIMIT 3' if chance(0.1);
	return "SELECT o.id, (SELECT count(*) FROM ($sql) q) FROM few o LIMIT 3" if chance(0.05);
	return $sql;
}

sub settings
{
	return join '; ',
	  'SET work_mem = ' . one_of(q{'64kB'}, q{'1MB'}, q{'4MB'}, q{'64MB'}),
	  'SET gpuagg.engine = ' . one_of('auto', 'cpu', 'cpu', 'cuda'),
	  'SET gpuagg.strategy = ' . one_of(qw(auto auto auto hash segmented direct)),
	  'SET gpuagg.batch_rows = ' . one_of(1024, 4096, 65536),
	  'SET max_parallel_workers_per_gather = ' . one_of(0, 2, 2);
}

# Prints a failed statement and appends it to a file of the results.
sub fail
{
	my ($what, $message, $settings, $sql) = @_;

	$failed = 1;
	print "FAILED   $what: $message\n$settings;\n$sql;\n\n";
	open(my $f, '>>', "$results/failed$seed.sql") or die $!;
	print $f "-- $what: $message\n$settings;\n$sql;\n\n";
	close($f);
	return;
}

# Runs a statement, counts the outcome, and reports an error.
sub try_statement
{
	my ($settings, $sql) = @_;
	my $since = time;
	my $r = $session->run($sql);
	my $took = time - $since;

	$figures{statements}++;
	$states{ $r->{state} }++;
	$figures{'statements that ran'}++ if $r->{state} eq '00000';
	if ($r->{state} eq 'LOST')
	{
		# a crash of another session ends this one, too; the log shows which one crashed
		$figures{crashes}++;
		fail('crash', 'connection lost', $settings, $sql);
		$session->reconnect;
		return;
	}
	return if $r->{state} !~ /^XX/ && $took < $LATE;

	$session->run('ROLLBACK; SET gpuagg.enabled = off');
	$since = time;
	my $core = $session->run($sql);
	my $core_took = time - $since;
	$session->run('ROLLBACK; RESET gpuagg.enabled');
	if ($r->{state} =~ /^XX/)
	{
		my $own = $core->{state} eq $r->{state};

		$figures{ $own ? 'internal errors of core' : 'internal errors' }++;
		fail('internal error', "$r->{state} $r->{message}; without the custom scan $core->{state}", $settings, $sql) if !$own;
	}
	elsif ($core_took < $LATE / 2)
	{
		$figures{late}++;
		fail('late', sprintf('%.1f s, without the custom scan %.1f s', $took, $core_took), $settings, $sql);
	}
	return;
}

# Returns the columns of a query as [name, type], or undef if it cannot be planned.
sub columns_of
{
	my ($from) = @_;
	my $r = $session->run("BEGIN; CREATE TEMP TABLE described AS SELECT * FROM $from AS s WITH NO DATA");
	my $columns = $r->{state} eq '00000' ? $session->run(
		q{SELECT quote_ident(attname), atttypid::regtype FROM pg_attribute WHERE attrelid = 'described'::regclass AND attnum > 0 AND NOT attisdropped}
	)->{rows} : [];

	$session->run('ROLLBACK');
	return @$columns ? $columns : undef;
}

# Runs $n aggregate queries over the table or subquery $from. Returns 0 if it cannot be planned.
sub aggregate_over
{
	my ($from, $n) = @_;
	my $columns = columns_of($from) or return 0;

	foreach my $i (1 .. $n)
	{
		my $settings = settings();
		my $sql = grouped($from, $columns);

		return 1 if time > $end;
		$session->run($settings);
		my $plan = $session->run("EXPLAIN (COSTS OFF) $sql");
		if ($plan->{state} eq '00000')
		{
			my $text = join "\n", map { join ' ', @$_ } @{ $plan->{rows} };

			$figures{plans}++;
			$figures{'plans with a custom scan'}++ if $text =~ /GpuAgg/;
			$figures{'plans with parallel custom scans'}++ if $text =~ /Gather.*GpuAgg/s;
		}
		try_statement($settings, $sql);
	}
	return 1;
}

# Starts sqlsmith, and returns a handle from which to read its queries.
sub start_sqlsmith
{
	my ($seed) = @_;

	open(my $f, '-|', "PGOPTIONS='-c gpuagg.enabled=off -c max_parallel_workers_per_gather=0' sqlsmith --target='host=$ENV{PGHOST} port=$ENV{PGPORT} user=$ENV{PGUSER} dbname=$ENV{PGDATABASE}' "
		  . "--dry-run --exclude-catalog --max-queries=$QUERIES --seed=$seed 2>>$results/smith.err") or die $!;
	return $f;
}

my @tables = qw(many many many narrow few none parts parent grouped);
for (my $round = 0; time < $end; $round++)
{
	my $queries = start_sqlsmith(($seed * 100_000 + $round) % 2**31);
	my $n = 0;

	while (time < $end)
	{
		my $query = do { local $/ = ";\n"; <$queries> };

		last if !defined $query;
		$query =~ s/;\s*\z//;
		next if $query !~ /^\s*select/i;
		$n++;
		aggregate_over(one_of(@tables), 2);
		$figures{'queries of sqlsmith'}++;
		$session->run(settings());
		try_statement('', $query);
		$figures{'queries of sqlsmith that run'}++ if aggregate_over("($query)", 3);
	}
	close($queries) if time < $end;
	if ($n == 0 && time < $end)
	{
		fail('sqlsmith', 'it printed no query', '', '');
		last;
	}
}
print "$_: $figures{$_}\n" foreach sort keys %figures;
print "# $_ $states{$_}\n" foreach sort { $states{$b} <=> $states{$a} } keys %states;
exit $failed;
