# The forms of a query: the statements that contain it, the text of its constants, and its settings.
package Forms;
use strict;
use warnings;
use Tables;
use Tally;
use Types;
use Values;

BEGIN { *pick = \&Types::pick; *chance = \&Types::chance; *int_between = \&Types::int_between; }

# ---- the form of a query ----------------------------------------------------

# Forms with the query inside another one. script() makes the others.
my @around = qw(subquery exists correlated rescan lateral nested with_twice union view made);
my @statement = qw(prepared prepared prepared function function sql_function do_block execute_into cursor cursor cursor);
my @cursors = qw(steps two hold held_at_once scroll changes beside);

# Chooses the form, and replaces the placeholders of constants accordingly.
sub reshape
{
	my ($query, $tables) = @_;
	my $form = chance(0.5) ? 'plain' : chance(0.35) && !$tables->{wild} ? pick(@around) : pick(@statement);

	$form = 'execute_into' if $form eq 'plain' && chance(0.2);
	$form = 'plain' if $query->{within} || ($query->{only_forms} && !grep { $_ eq $form } @{ $query->{only_forms} });
	$form = 'plain' if $form eq 'execute_into' && $query->{sql} =~ / GROUP BY | HAVING |SELECT DISTINCT /;
	$form = 'prepared' if $query->{ordered} && grep { $_ eq $form } @around;
	$query->{form} = $form;
	$query->{choice} = int_between(0, 2);
	around($query, $tables, $form) if grep { $_ eq $form } @around;
	$query->{cursor} = pick(@cursors) if $form eq 'cursor';
	$query->{cursor} = 'steps' if $form eq 'cursor' && $query->{cursor} eq 'changes' && $tables->{wild};
	Tally::draw("form $form", $query->{cursor} ? "cursor $query->{cursor}" : ());
	fill($query, $form);
	# Gather executes the subqueries below it, even if no expression needs them
	$query->{serial} = 1 if grep { $_ eq 'subqueries that are not reached' } Tally::drawn();
	$query->{serial} = 1 if grep { /generate_series\(1, [12]\) i/ } @{ $query->{setup} };
	# core folds constants at planning, and may raise their errors there
	push @{ $query->{settings} }, "plan_cache_mode = '" . pick('auto', 'force_generic_plan', 'force_custom_plan') . "'"
	  if @{ $query->{places} };
	return;
}

# Puts the query inside another one. For correlated subqueries makes a new query instead.
sub around
{
	my ($query, $tables, $form) = @_;
	# the filter may have columns that the outer query does not have
	local $Gen::common_filter = undef;
	my @float = @{ $query->{float} };
	my $names = join(', ', map { "o$_" } 0 .. $#float);
	my ($sql, $with) = ($query->{sql}, '');
	my @tc = @{ $tables->{t}{columns} };

	($with, $sql) = ("$1 ", $2) if $sql =~ /^(WITH .*?\))( SELECT .*)$/;
	if ($form =~ /^(?:correlated|rescan|lateral|nested)$/)
	{
		my $agg = Gen::aggregate(0, 0, @tc);
		Tally::begin_query();
		Tally::draw("form $form");
		my $condition = Gen::condition(@tc);
		my $int = pick(Gen::of_kind('int', @tc))->{name};
		my $join = pick('aj = d.bj', 'aj = d.bj', 'aj < d.bj', "aj % 20 NOT IN (SELECT id FROM d x WHERE x.id > 10 OR x.id = d.bj)");
		my $outer = pick('', '', ' WHERE d.id % 2 = 0', ' ORDER BY d.id LIMIT 5');

		if ($form eq 'correlated')
		{
			$sql = "SELECT d.id, (SELECT $agg->{sql} FROM t WHERE $join AND $condition) FROM d$outer";
			@float = (0, $agg->{float});
		}
		elsif ($form eq 'rescan')
		{
			# the outer row in an argument, in a key and in a filter
			$sql = "SELECT d.id, (SELECT agg:sum(($int % 1000 + d.bj)::int8) FILTER (WHERE aj <> d.bj) FROM t WHERE $condition), "
			  . "(SELECT agg:count(*) FROM (SELECT aj % (1 + d.bj) AS k, agg:max($int) FROM t GROUP BY 1) g) FROM d$outer";
			@float = (0, 0, 0);
		}
		elsif ($form eq 'nested')
		{
			$sql = "SELECT d.id, (SELECT agg:sum((SELECT agg:count(*) FROM t WHERE aj = x.bj AND aj >= d.bj)) FROM d x WHERE x.id <= 6) FROM d WHERE d.id <= 5";
			@float = (0, 0);
		}
		else
		{
			$sql = "SELECT d.id, x.a FROM d CROSS JOIN LATERAL (SELECT $agg->{sql} AS a FROM t WHERE $join AND $condition GROUP BY "
			  . pick('aj', 'aj', 'aj + d.bj') . ") x" . ($outer =~ /LIMIT/ ? '' : $outer);
			@float = (0, $agg->{float});
		}
		@{ $query->{teardown} } = ();
		@{ $query->{setup} } = ();
		$with = '';
		$query->{orderly} = 0;
	}
	elsif ($form eq 'subquery')
	{
		$sql = "SELECT * FROM ($sql) s($names) WHERE o0 IS NOT NULL OR o0 IS NULL";
	}
	elsif ($form eq 'exists')
	{
		$sql = "SELECT d.id, EXISTS ($sql) FROM d";
		@float = (0, 0);
	}
	elsif ($form eq 'with_twice')
	{
		my $how = pick('', 'MATERIALIZED ', 'NOT MATERIALIZED ');

		$with = $with ? "$with, " : 'WITH ';
		$with = "${with}q($names) AS $how($sql) ";
		$sql = "SELECT * FROM q UNION ALL SELECT * FROM q";
	}
	elsif ($form eq 'union')
	{
		$sql = "($sql) UNION ALL ($sql)";
	}
	elsif ($form eq 'view')
	{
		my $barrier = pick('', ' WITH (security_barrier)');

		$query->{view} = "q($names)$barrier AS " . literals("$with$sql");
		$with = '';
		$sql = 'SELECT * FROM q WHERE o0 IS NOT NULL OR o0 IS NULL';
	}
	$query->{sql} = "$with$sql";
	# these checks refer to the columns of the query without the outer one
	$query->{constant} = [] if $form =~ /^(?:correlated|rescan|nested|lateral|exists)$/;
	$query->{float} = \@float;
	return;
}

# The query with literals in place of all placeholders.
sub literals
{
	my ($sql) = @_;

	Tally::draw_from(Values::literals($sql));
	return Values::render(
		$sql,
		sub {
			my ($type, $literal) = @_;

			Tally::draw(Values::is_odd($type, $literal) ? 'odd constants' : 'constants');
			return $literal =~ /^-/ ? "($literal)" : $literal;
		});
}

# Replaces the placeholders. The query's "places" lists its parameters and variables, each with its type and a value for each execution.
sub fill
{
	my ($query, $form) = @_;
	my $variables = $form =~ /^(?:prepared|function|sql_function|do_block|execute_into)$/;
	my $times = $form eq 'prepared' ? pick(1, 2, 7) : $form =~ /function/ ? pick(1, 2) : 1;
	my @constant = grep { $_ } @{ $query->{constant} // [] };
	my @places;
	my @texts;

	Tally::draw_from(Values::literals($query->{sql}));
	# the checks for constant columns have the same placeholders as their aggregates
	@texts = split /\x04/, Values::render(
		join("\x04", $query->{sql}, map { @$_ } @constant),
		sub {
			my ($type, $literal) = @_;

			Tally::draw(Values::is_odd($type, $literal) ? 'odd constants' : 'constants');
			if ($variables && chance(0.7))
			{
				my @values = ($literal, map { $type =~ /\[\]$/ || chance(0.5) ? $literal : Values::literal($type) } 2 .. $times);

				push @places, { type => $type, values => \@values };
				Tally::draw($form eq 'prepared' ? 'parameters' : 'variables');
				return $form eq 'prepared' ? '$' . scalar(@places) : 'pv_' . scalar(@places);
			}
			if (chance(0.15))
			{
				my $subquery = Values::subquery($type, $literal);

				# to core, the subqueries of a key and of its copy in the target list differ; where a set lacks the key, it shows the
				# value of any row
				if ($query->{sql} !~ /\b(?:ROLLUP|CUBE|GROUPING SETS)\b/)
				{
					Tally::draw('subqueries as constants');
					return $subquery;
				}
			}
			return Values::literals("\x01$type\x02$literal\x03");
		});
	$query->{sql} = shift @texts;
	@$_ = splice(@texts, 0, 2) foreach @constant;
	$query->{places} = \@places;
	$query->{times} = $times;
	return;
}

# ---- a query's statements ---------------------------------------------------

sub arguments
{
	my ($query, $time) = @_;
	my @values = map { $_->{values}[$time] } @{ $query->{places} };

	return @values ? '(' . join(', ', @values) . ')' : '';
}

# A function that returns the query's rows as arrays of text.
sub function
{
	my ($query, $sql) = @_;
	my @places = @{ $query->{places} };
	my $last = $#{ $query->{float} };
	my $names = join(', ', map { "o$_" } 0 .. $last);
	my $texts = join(', ', map { "o$_\::text" } 0 .. $last);
	my $parameters = join(', ', map { "pv_$_ $places[$_ - 1]{type}" } 1 .. @places);
	my $rows = "SELECT ARRAY[$texts] FROM ($sql) q($names)";
	my $drop = 'DROP FUNCTION pg_temp.f';
	my @calls = map {
		'SELECT ' . join(', ', map { 'r[' . ($_ + 1) . ']' } 0 .. $last) . ' FROM pg_temp.f' . (arguments($query, $_) || '()') . ' AS r'
	} 0 .. $query->{times} - 1;
	my ($head, $body);

	if ($query->{form} eq 'sql_function')
	{
		$head = 'LANGUAGE sql STABLE';
		$body = $rows;
	}
	else
	{
		my $using = @places ? ' USING ' . join(', ', map { "pv_$_" } 1 .. @places) : '';
		my $dynamic = $rows =~ s/\bpv_(\d+)\b/\$$1/gr;

		$head = 'LANGUAGE plpgsql';
		$body = 'DECLARE r text[]; BEGIN '
		  . ("RETURN QUERY $rows;", "RETURN QUERY EXECUTE \$dynamic\$$dynamic\$dynamic\$$using;",
			"FOR r IN $rows LOOP RETURN NEXT r; END LOOP;")[ $query->{choice} ] . ' END';
	}
	return (
		[ must => "CREATE FUNCTION pg_temp.f($parameters) RETURNS SETOF text[] $head AS \$body\$$body\$body\$" ],
		map({ [ rows => $_ ] } @calls),
		[ after => $drop ]);
}

# A DO block that stores the answer in a table, or its only row in variables.
sub block
{
	my ($query, $sql) = @_;
	my @places = @{ $query->{places} };
	my $last = $#{ $query->{float} };
	my $declared = join(' ', map { "pv_$_ $places[$_ - 1]{type} := $places[$_ - 1]{values}[0];" } 1 .. @places);
	my $into = "CREATE TEMP TABLE made AS SELECT * FROM ($sql) q(" . join(', ', map { "o$_" } 0 .. $last) . ');';

	if ($query->{form} eq 'execute_into')
	{
		my $using = @places ? ' USING ' . join(', ', map { "pv_$_" } 1 .. @places) : '';
		my $dynamic = $sql =~ s/\bpv_(\d+)\b/\$$1/gr;
		my $columns = join(', ', map { "o$_ text" } 0 .. $last);

		$declared .= ' ' . join(' ', map { "r$_ text;" } 0 .. $last);
		$into = "EXECUTE \$dynamic\$$dynamic\$dynamic\$ INTO " . join(', ', map { "r$_" } 0 .. $last) . "$using; "
		  . "CREATE TEMP TABLE made ($columns); INSERT INTO made VALUES (" . join(', ', map { "r$_" } 0 .. $last) . ');';
	}
	return (
		[ must => 'DROP TABLE IF EXISTS made' ],
		[ query => "DO \$body\$DECLARE $declared BEGIN $into END\$body\$" ],
		[ rows => 'SELECT * FROM made' ]);
}

my %cursor = (
	steps => sub {
		my ($sql) = @_;
		return ([ query => "DECLARE c CURSOR FOR $sql" ], map({ [ rows => "FETCH $_ FROM c" ] } 1, 3, 100, 'ALL'), [ after => 'COMMIT' ]);
	},
	two => sub {
		my ($sql) = @_;
		return (
			map({ [ query => "DECLARE $_ CURSOR FOR $sql" ] } qw(c1 c2 c3)),
			[ query => 'FETCH 1 FROM c3' ],
			map({ [ rows => "FETCH $_" ] } '2 FROM c1', '5 FROM c2', '100 FROM c1', 'ALL FROM c2', 'ALL FROM c1'),
			[ after => 'COMMIT' ]);
	},
	hold => sub {
		my ($sql) = @_;
		return ([ query => "DECLARE c CURSOR WITH HOLD FOR $sql" ], [ rows => 'FETCH 2 FROM c' ], [ query => 'COMMIT' ], [ rows => 'FETCH ALL FROM c' ], [ after => 'ROLLBACK' ], [ after => 'CLOSE ALL' ]);
	},
	held_at_once => sub {
		my ($sql) = @_;
		return ([ query => "DECLARE c CURSOR WITH HOLD FOR $sql" ], [ query => 'COMMIT' ], map({ [ rows => "FETCH $_ FROM c" ] } 10, 'ALL'), [ after => 'ROLLBACK' ], [ after => 'CLOSE ALL' ]);
	},
	scroll => sub {
		my ($sql) = @_;
		return ([ query => "DECLARE c SCROLL CURSOR FOR $sql" ], [ query => 'FETCH 5 FROM c' ], [ query => 'MOVE BACKWARD ALL FROM c' ], [ rows => 'FETCH ALL FROM c' ], [ rows => 'FETCH BACKWARD ALL FROM c' ],
			[ after => 'COMMIT' ]);
	},
	# the cursor must not see changes after its DECLARE
	changes => sub {
		my ($sql) = @_;
		return (
			[ query => "DECLARE c CURSOR FOR $sql" ],
			[ rows => 'FETCH 2 FROM c' ],
			map({ [ must => $_ ] } 'DELETE FROM t WHERE id % 2 = 0', 'UPDATE t SET aj = aj + 1'),
			[ rows => 'FETCH ALL FROM c' ],
			[ after => 'ROLLBACK' ]);
	},
	beside => sub {
		my ($sql) = @_;
		return ([ query => "DECLARE c CURSOR FOR $sql" ], [ rows => 'FETCH 2 FROM c' ], [ rows => $sql ], [ rows => 'FETCH ALL FROM c' ], [ after => 'COMMIT' ]);
	});

# Returns the statements of a query in order, as [role, SQL]. Roles:
#	must	the statement must succeed
#	query	an error is the query's answer
#	rows	the same, and the rows are part of the answer
#	after	cleans up; runs after an error too
sub script
{
	my ($query, $sql, $view) = @_;
	my $form = $query->{form};
	my @before = map { [ must => $_ ] } @{ $query->{reset} // [] };
	my @also = map { [ rows => $_ ] } @{ $query->{also} // [] };

	if ($query->{within})
	{
		return (map({ [ must => $_ ] } @{ $query->{within} }), [ rows => $sql ], [ after => 'ROLLBACK' ]);
	}
	if ($form eq 'prepared')
	{
		my $types = join(', ', map { $_->{type} } @{ $query->{places} });

		return (
			@before,
			[ query => 'PREPARE q' . ($types ? "($types)" : '') . " AS $sql" ],
			map({ [ rows => 'EXECUTE q' . arguments($query, $_) ] } 0 .. $query->{times} - 1),
			@also, [ after => 'DEALLOCATE ALL' ]);
	}
	return (@before, function($query, $sql), @also) if $form =~ /function/;
	return (@before, block($query, $sql), @also) if $form =~ /do_block|execute_into/;
	return (@before, [ must => 'BEGIN' ], $cursor{ $query->{cursor} }->($sql), @also) if $form eq 'cursor';
	if ($form eq 'view')
	{
		return (@before, [ must => "CREATE TEMP VIEW $view" ], [ rows => $sql ], [ after => 'DROP VIEW q' ], @also);
	}
	if ($form eq 'made')
	{
		my $names = join(', ', map { "o$_" } 0 .. $#{ $query->{float} });

		return (@before, [ must => 'DROP TABLE IF EXISTS made' ], [ query => "CREATE TEMP TABLE made ($names) AS $sql" ], [ rows => 'SELECT * FROM made' ], @also);
	}
	# the first execution caches the columns, the second one uploads them, and the third one reads them from the device
	return (@before, map({ [ rows => $sql ] } 1 .. ($query->{cached} ? 3 : 1)), @also);
}

# ---- settings ---------------------------------------------------------------

# The name of the setting that runs serial plans in a worker, which depends on the release.
our $in_worker;

# True if the planner may aggregate a table in part before it joins it.
our $eager;

my @strategies = qw(auto auto auto single segmented direct hash sort);

# Random settings for the variants with the custom scan.
sub scan_settings
{
	my ($query) = @_;
	my $pages = $Tables::pages;
	my $cached = $query->{cached} && chance(0.8);
	my $strategy = pick($cached ? qw(auto auto auto direct hash) : @strategies);
	my @settings = (
		"gpuagg.strategy = '$strategy'",
		"gpuagg.feed = '" . ($pages ? 'heap' : $cached ? 'auto' : pick('auto', 'heap', 'tuples')) . "'",
		'gpuagg.batch_rows = '
		  . ($query->{small_batches} ? pick(64, 64, 128, 1000) : pick(64, 64, 128, 1000, 4096, 65536, chance(0.1) ? 1048576 : 4096)),
		"work_mem = '" . ($query->{merged} ? '64kB' : pick('64kB', '64kB', '64kB', '256kB', '4MB', '64MB', pick('64kB', '1GB', '16GB', '200GB', '2147483647kB'))) . "'",
		'hash_mem_multiplier = ' . ($query->{merged} ? 1 : pick(1, 2, chance(0.1) ? 1000 : 1)),
		# sometimes the default of the cluster
		map({ "gpuagg.cache = $_" } $cached ? 'eager' : $query->{merged} ? 'off' : pick(qw(off on eager eager), '') || ()),
		$cached ? 'enable_sort = off' : (),
		# with these strategies the planner must still choose sorted input, which cheap comparisons achieve
		$strategy =~ /^(?:single|segmented)$/ ? 'cpu_operator_cost = 1e-9' : (),
		'enable_hashagg = ' . pick('on', 'on', $cached ? 'on' : 'off'));

	foreach my $extreme ('batch_rows = 64', 'batch_rows = 1048576', q{work_mem = '64kB'}, q{GB'}, q{work_mem = '2147483647kB'})
	{
		Tally::draw("setting $extreme") if grep { /\Q$extreme\E$/ } @settings;
	}
	Tally::draw('parallel') if !$query->{serial};
	push @settings, 'enable_sort = off' if $query->{orderly} || $pages;
	# an index scan changes the order of rows
	my $scan = $query->{indexed} ? 'indexscan' : $pages ? pick('seqscan', 'seqscan', 'seqscan', 'bitmapscan', 'bitmapscan', $query->{orderly} ? 'seqscan' : 'indexscan') : '';

	push @settings, map { "enable_$_ = off" } grep { $_ ne $scan } qw(indexscan indexonlyscan bitmapscan) if $pages;
	push @settings, 'enable_seqscan = ' . ($pages ? ($scan ne 'seqscan' ? 'off' : 'on') : pick('on', 'off')), 'enable_hashjoin = ' . pick('on', 'off')
	  if !$query->{orderly};
	# combining the states of these aggregates changes the answer, in core too
	my $combines = $query->{sql} !~ /\b(?:lossy|null|unsafe)_sum\(/;

	push @settings, 'enable_partitionwise_aggregate = on' if $combines && chance(0.2);
	push @settings, $combines && !$query->{orderly} ? 'min_eager_agg_group_size = ' . pick(0, 0, 2, 8) : 'enable_eager_aggregate = off' if $eager;
	# joins that cost more are worth more partial aggregates below them
	push @settings, 'cpu_tuple_cost = 1' if $query->{joins} && chance(0.8);
	# joins that the feed may execute
	push @settings, "gpuagg.feed = '" . pick('auto', 'heap') . "'", 'enable_seqscan = on', 'enable_hashjoin = on', map { "enable_$_ = off" } qw(sort mergejoin nestloop)
	  if $query->{lookups} && chance(0.85);
	push @settings, 'geqo_threshold = 2', 'geqo_seed = ' . pick(0, 0.3, 0.7) if $query->{lookups} && chance(0.15);
	push @settings, "$in_worker = on" if $in_worker && !$query->{serial} && chance(0.1);
	push @settings, @{ parallel_settings($query) };
	return \@settings;
}

# The settings of a parallel plan, or of none. If groups are to be merged in partitions, processes begin at about the same time, and each has
# more groups than its memory holds: one process would read all cached rows of a small table.
sub parallel_settings
{
	my ($query) = @_;
	my $merged = $query->{merged};

	return ['max_parallel_workers_per_gather = 0'] if $query->{serial};
	return [
		'max_parallel_workers_per_gather = ' . ($merged ? pick(2, 3, 4) : pick(1, 2, 3, 3, 5, 8)),
		'max_parallel_workers = ' . ($merged ? 8 : pick(8, 8, 8, 0)),
		'parallel_leader_participation = ' . ($merged ? pick('on', 'off', 'off', 'off') : pick('on', 'on', 'off')),
		# workers that cost something are fewer where columns are cached
		'parallel_setup_cost = ' . pick(0, 0, 0, 0.1),
		'parallel_tuple_cost = ' . ($Tables::pages ? 0.1 : 0),
		'min_parallel_table_scan_size = 0',
		'min_parallel_index_scan_size = 0'
	];
}

# Settings of the reference. If the order of rows matters, the plan reads them in heap order.
sub core_settings
{
	my ($query) = @_;

	my @eager = $eager ? 'enable_eager_aggregate = off' : ();

	return [ 'max_parallel_workers_per_gather = 0', "work_mem = '64MB'", @eager ] if !$query->{orderly};
	return [
		'max_parallel_workers_per_gather = 0', "work_mem = '64MB'", @eager,
		'enable_sort = off', 'enable_indexscan = off',
		'enable_bitmapscan = off', 'enable_indexonlyscan = off'
	];
}

1;
