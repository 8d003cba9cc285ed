#!/usr/bin/env perl
# The differential test: random queries over random tables. Each query runs in several variants, whose answers must be the same:
#
#	core	core's aggregates, without the extension; this is the reference
#	plain	gpu_* aggregates in core's executor (gpuagg.require = forbid)
#	scan	gpu_* aggregates in the custom scan (gpuagg.require = require), with
#			random strategy, batch size, memory, feed and parallelism
#	builtin	core's aggregates in the custom scan (gpuagg.replace_builtin)
#
# Floats are compared with a tolerance, everything else as text, errors by SQLSTATE. The seed determines tables and queries. A
# difference is printed with a psql script that reproduces it. --set and --query repeat one query.
#
# --pages tests the heap feed: the pages of the tables have a history (Pages.pm), and queries read only base tables, partitions and
# inheritance children.
#
# The test must not pass without testing anything. So every statement of a set must succeed, and the tables must have the expected
# contents. At the end, enough queries must have returned rows and taken each path of the extension (the floors in Tally.pm). The
# paths are those of the compared executions: auto_explain prints their plans.
#
# --avoid 'PATTERN|PATTERN' skips queries whose SQL, settings or features match. The features are those of the report. --joins runs only
# queries that join tables, and --text draws keys of text more often. --stars runs only joins of a cached fact table with dimensions
# (Stars.pm). Shares are not checked with --avoid, --joins and --text.
#
# The tables change between queries (Changes.pm), so that columns in the cache are warm, partly stale, and cold.
#
# Modules: Types (column types), Values (constants), Tables, Pages (tables with a history), Changes, Expr (expressions), Gen (queries),
# Special (queries for one purpose), Joins (dimensions and joins), Stars (joins for the GPU), Sides (joins whose sides may fail), Forms (statements around a query, settings), Hidden (queries of a
# role from which rows are hidden), Tally (counts), Session (psql).
#
# --gpu allows differences where the GPU engine is more exact than core. The deviation of equal values is 0 on the GPU, and rounding
# noise in core. So corr and regr_* may be NULL in one and a number in the other.
#
# difftest.pl [--seed N] [--queries N] [--pages] [--gpu] [--set N [--query N]] [--scripts DIR]
#	[--avoid PATTERN] [--joins] [--stars] [--text] [--show]
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use Getopt::Long;
use IO::Handle;
use Changes;
use Gen;
use Hidden;
use Joins;
use Session;
use Stars;
use Tables;
use Tally;

my $PER_SET = 25;
my %option = (seed => 1, queries => 2000, scripts => '.', show => 0);
GetOptions(\%option, 'seed=i', 'queries=i', 'set=i', 'query=i', 'scripts=s', 'pages', 'gpu', 'avoid=s', 'joins', 'stars', 'text', 'show')
	or exit 2;
$Joins::share = 1 if $option{joins};
$Gen::texts = $option{text};
$Gen::gpu = $option{gpu};
$Hidden::role = "gpuagg_diff_reader_$option{seed}";
if ($option{pages})
{
	$Tables::pages = 1;
	Pages::add_types();
}
binmode(STDOUT, ':utf8');
STDOUT->autoflush(1);

# The statements that have changed the tables since they were created.
my @history;

my $session = Session->new(log => "$option{scripts}/diff-psql-$option{seed}" . ($option{pages} ? '-pages' : '') . '.log');
my %count = map { $_ => 0 } qw(core plain scan builtin refused unlimited errors avoided constant changes hidden forbidden messages resident other_plans mismatches);
my @builtin = (
	'gpuagg.replace_builtin = on', 'gpuagg.startup_cost = 0', 'gpuagg.row_cost = 0', 'gpuagg.slot_cost = 0');

# Settings with which auto_explain sends the plans as messages. Their level keeps them out of the server's log, unless the caller has
# set auto_explain and reads the log.
my @watch = (
	'auto_explain.log_min_duration = 0', 'auto_explain.log_analyze = on', 'auto_explain.log_timing = off',
	'auto_explain.log_nested_statements = on',
	($ENV{PGOPTIONS} // '') =~ /auto_explain/ ? 'client_min_messages = log' : 'auto_explain.log_level = notice');

# Seeds rand() with a hash of several numbers.
sub reseed
{
	my $n = 2166136261;

	foreach my $part (@_)
	{
		$n = (($n ^ $part) * 16777619) & 0xffffffff;
		$n ^= $n >> 15;
	}
	srand($n);
	rand() for 1 .. 3;
	return;
}

# The SQL of a variant: agg:name and gpu:name become names of aggregates. Exact sums of floats are not core's, and are compared with those of
# the extension's aggregates in core's executor.
sub variant_sql
{
	my ($sql, $variant, $query) = @_;

	$sql =~ s/\bgpu:/gpu_/g;
	if (($variant eq 'core' && !$query->{exact}) || $variant eq 'builtin')
	{
		$sql =~ s/\bagg://g;
	}
	else
	{
		$sql =~ s/\bagg:/gpu_/g;
	}
	return $sql;
}

sub variant_settings
{
	my ($variant, $query, $scan) = @_;
	my @common = ('statement_timeout = 600000', @{ $query->{settings} // [] });
	my @last = @{ $query->{last} // [] };

	return [ @common, 'gpuagg.enabled = off', @{ Forms::core_settings($query) }, @last ] if $variant eq 'core';
	return [ @common, "gpuagg.require = 'forbid'", @{ Forms::core_settings($query) }, @last ] if $variant eq 'plain';
	return [ @common, "gpuagg.require = 'require'", ($variant eq 'builtin' ? @builtin : ()), @$scan, @last ];
}

# The statements of a variant with their roles, from Forms::script.
sub variant_script
{
	my ($variant, $query, $scan) = @_;

	return Forms::script($query, variant_sql($query->{sql}, $variant, $query), variant_sql($query->{view} // '', $variant, $query));
}

# Runs a statement that must succeed. Dies if it fails, with "LOST" if the connection breaks.
sub must
{
	my ($sql) = @_;
	my $result = $session->run($sql);

	die "LOST\n" if $result->{state} eq 'LOST';
	die 'cannot run: ' . substr($sql, 0, 2000) . "\n$result->{state} $result->{message}\n" if $result->{state} ne '00000';
	return $result;
}

# Calls a function, and again if the connection is lost, because another test's query may have crashed the server.
sub with_retries
{
	my ($function) = @_;

	foreach my $try (1 .. 5)
	{
		return if eval { $function->(); 1 };
		die $@ if $@ ne "LOST\n";
		$session->reconnect;
	}
	die "the server crashes\n";
}

# Runs a variant and returns its answer. If $watched, records the paths that it took.
sub run_variant
{
	my ($variant, $query, $scan, $watched) = @_;
	my $answer = eval { run_script($variant, $query, $scan, $watched) };

	return $answer if $answer;
	die $@ if $@ ne "LOST\n";
	return { state => 'LOST', message => '', rows => [] };
}

sub run_script
{
	my ($variant, $query, $scan, $watched) = @_;
	my @settings = (@{ variant_settings($variant, $query, $scan) }, $watched ? @watch : ());
	my ($failed, @rows);

	must(join(' \\; ', 'RESET ALL', map { "SET $_" } @settings));
	$session->messages;
	foreach my $step (variant_script($variant, $query, $scan))
	{
		my ($role, $sql) = @$step;
		my $result;

		next if $failed && $role ne 'after';
		$result = $role eq 'must' ? must($sql) : $session->run($sql);
		die "LOST\n" if $result->{state} eq 'LOST';
		push @rows, @{ $result->{rows} } if $role eq 'rows';
		$failed = $result if $role =~ /query|rows/ && $result->{state} ne '00000';
	}
	Tally::watch($session->messages) if $watched && !$failed;
	return $failed ? { state => $failed->{state}, message => $failed->{message}, rows => [] } : { state => '00000', message => '', rows => \@rows };
}

sub same_number
{
	my ($a, $b, $single) = @_;
	my ($difference, $scale);

	return 0 if $a !~ /^-?[\d.]+(?:e[-+]?\d+)?$/i || $b !~ /^-?[\d.]+(?:e[-+]?\d+)?$/i;
	$difference = abs($a - $b);
	$scale = abs($a) > abs($b) ? abs($a) : abs($b);
	# sums of float4 are rounded to 24 bits at each of some thousand rows
	return $difference <= ($single ? 1e-4 : 1e-9) * $scale || $difference <= 1e-9;
}

# Sorts rows by their exact fields, and then by all fields. 0 and -0 count as equal, because sum(DISTINCT f) may be either.
sub in_order
{
	my ($exact, $rows) = @_;

	return map { $_->[1] }
	  sort { $a->[0] cmp $b->[0] }
	  map { my $row = $_; [ join("\x00", (map { $row->[$_] // '' } @$exact), map { s/\A-0\z/0/r } @$row), $row ] } @$rows;
}

# The exact fields of a row as one string, which identifies its group.
sub exact_fields
{
	my ($query, $row) = @_;

	return join("\x00", map { $row->[$_] // '' } grep { !$query->{float}[$_] } 0 .. $#{ $query->{float} });
}

# Returns whether a field that differs is a regression over a column whose values in the group are all equal.
sub is_of_constant_column
{
	my ($query, $scan, $field, $row) = @_;
	my ($sql, $constant) = @{ $query->{constant}[$field] // return 0 };
	my %changed = (%$query, sql => $query->{sql} =~ s/\Q$sql\E/$constant/gr);
	my @same = grep { exact_fields($query, $_) eq exact_fields($query, $row) } @{ run_variant('core', \%changed, $scan)->{rows} };

	$count{constant}++;
	return scalar grep { ($_->[$field] // '') eq 't' } @same;
}

# Returns whether the result is an error of a value. Core reports a cast of infinity or NaN to an integer as an unsupported feature.
sub is_value_error
{
	my ($result) = @_;

	return $result->{state} =~ /^2[12]/ || ($result->{state} eq '0A000' && $result->{message} =~ /cannot convert (?:infinity|NaN) to /);
}

# Compares two results. Returns a description of the first difference, or undef.
sub difference
{
	my ($query, $reference, $result, $scan) = @_;
	my $float = $query->{float};
	my @exact = grep { !$float->[$_] } 0 .. $#$float;
	my (@a, @b);

	# several rows may have errors, and the variants may find different ones first
	return undef if is_value_error($reference) && is_value_error($result);
	if ($reference->{state} ne $result->{state})
	{
		return "$reference->{state} $reference->{message} | $result->{state} $result->{message}";
	}
	@a = in_order(\@exact, $reference->{rows});
	@b = in_order(\@exact, $result->{rows});
	return scalar(@a) . ' rows | ' . scalar(@b) . ' rows' if @a != @b;
	foreach my $row (0 .. $#a)
	{
		foreach my $field (0 .. $#{ $a[$row] })
		{
			my ($x, $y) = ($a[$row][$field], $b[$row][$field]);

			next if defined $y && $x eq $y;
			next if $float->[$field] && same_number($x, $y, $float->[$field] == 2);
			next if $option{gpu} && is_of_constant_column($query, $scan, $field, $a[$row]);
			return join(' ; ', @{ $a[$row] }) . "\n#   | " . join(' ; ', @{ $b[$row] });
		}
	}
	return undef;
}

# Returns the query without the clauses that let it stop before its last group, or undef if it has none.
sub without_limit
{
	my ($query) = @_;
	my %whole = %$query;

	foreach (@whole{ grep { defined $whole{$_} } qw(sql view) })
	{
		s/( ORDER BY 1\b[0-9A-Z, ]*) LIMIT \d+/$1/g;
		s/ ORDER BY d\.id LIMIT \d+//;
		s/ EXISTS \((.*)\) FROM d\z/ cardinality(array(SELECT x::text FROM ($1) x)) > 0 FROM d/s;
	}
	return $whole{sql} eq $query->{sql} && ($whole{view} // '') eq ($query->{view} // '') ? undef : \%whole;
}

# Compares the variants of a query without its LIMIT. With LIMIT over sorted groups, and in EXISTS, a variant may stop before the row
# that raises an error. Without it both must reach that row, or agree on all groups.
sub difference_without_limit
{
	my ($whole, $variant, $scan) = @_;

	$count{unlimited}++;
	return difference($whole, run_variant('core', $whole, $scan), run_variant($variant, $whole, $scan), $scan);
}

# Returns the joins and scans of a query's plan.
sub joins_and_scans
{
	my ($variant, $query, $scan) = @_;
	my $plan;

	must(join(' \\; ', 'RESET ALL', map { "SET $_" } @{ variant_settings($variant, $query, $scan) }));
	$plan = must('EXPLAIN (COSTS OFF) ' . variant_sql($query->{sql}, $variant, $query));
	return join("\n", map { $_->[0] =~ s/\A[ >-]+//r } grep { $_->[0] =~ /Join|Nested Loop|Scan|Hash Cond/ && $_->[0] !~ /Custom Scan/ } @{ $plan->{rows} });
}

# Returns whether an error that only one of the variants raises says nothing, because their plans differ.
sub has_other_plan
{
	my ($variant, $query, $scan) = @_;
	my $other = $query->{same_plan} && joins_and_scans('core', $query, $scan) ne joins_and_scans($variant, $query, $scan);

	$count{other_plans} += $other ? 1 : 0;
	return $other;
}

sub write_script
{
	my ($file, $tables, $query, $scan, @variants) = @_;
	my @options = ($ENV{PGOPTIONS} // '') =~ /-c\s*([\w.]+=\S+)/g;

	open(my $out, '>:utf8', $file) or die "$file: $!";
	print $out map { "CREATE EXTENSION IF NOT EXISTS $_;\n" } "gpuagg", $Types::types{citext} ? "citext" : ();
	print $out map { "SET $_;\n" } @options;
	print $out "$_", (/\\\.\n\z/ ? '' : ';'), "\n" foreach Tables::fixtures(), @{ $tables->{statements} }, Hidden::statements(Joins::visible_rows()), @history, @{ $query->{setup} // [] };
	foreach my $variant (@variants)
	{
		print $out "\n\\echo $variant\nRESET ROLE;\nRESET ALL;\n", map({ "SET $_;\n" } @options, @{ variant_settings($variant, $query, $scan) }),
		  map { "$_->[1];\n" } (variant_script($variant, $query, $scan)) x ($query->{last} ? 3 : 1);
	}
	close($out);
	return;
}

# Prints a difference, and writes a script that reproduces it.
sub report_difference
{
	my ($difference, $variant, $set, $number, $tables, $query, $scan) = @_;
	my $file = "$option{scripts}/diff-$option{seed}-$set-$number.sql";
	my $mode = ($option{pages} ? ' --pages' : '') . ($option{gpu} ? ' --gpu' : '') . ($option{stars} ? ' --stars' : '');

	$count{mismatches}++;
	write_script($file, $tables, $query, $scan, 'core', $variant);
	print "not ok query $set.$number: $variant differs from core\n",
	  '# ' . substr(($query->{view} ? "$query->{view} ; " : '') . $query->{sql}, 0, 3000) . "\n# ", join('; ', @$scan) . "\n#     $difference\n",
	  '# features: ' . join(', ', Tally::drawn()) . "\n",
	  "# to repeat: test/diff/run.sh$mode --seed $option{seed} --set $set --query $number\n# script: $file\n";
	return;
}

# Reconnects after a crash, and creates the tables and the query's own setup again.
sub recover
{
	my ($tables, $query) = @_;

	$session->reconnect;
	with_retries(sub { start(); load($tables); must($_) foreach @history, @{ $query->{setup} } });
	return;
}

# Runs a variant, and once more if the connection is lost, because another test's query may have crashed the server. Both cases are
# reported.
sub run_with_retry
{
	my ($variant, $query, $scan, $tables) = @_;
	my $watched = $variant =~ /scan|builtin/ && Types::chance(0.6);
	my $result = run_variant($variant, $query, $scan, $watched);

	if ($result->{state} eq 'LOST')
	{
		recover($tables, $query);
		$result = run_variant($variant, $query, $scan, 0);
		recover($tables, $query) if $result->{state} eq 'LOST';
		$result->{lost} = $result->{state} eq 'LOST' ? 'the server crashes' : 'the connection was lost, but not when the query ran again';
	}
	return $result;
}

# Changes the tables before a query.
sub change_tables
{
	my ($set, $number, $tables) = @_;
	my @changes;

	reseed($option{seed}, $set, $number + 1, 1);
	return apply_changes(Stars::changes($tables)) if $option{stars};
	@changes = (Changes::changes($tables), Hidden::changes());
	reseed($option{seed}, $set, $number + 1, 3);
	return apply_changes(@changes, Joins::changes($tables));
}

sub apply_changes
{
	my (@changes) = @_;

	return if !@changes;
	with_retries(sub { must('RESET ALL'); must($_) foreach @changes });
	push @history, @changes;
	$count{changes}++;
	return;
}

# ---- hidden rows --------------------------------------------------------------

# Runs a query as the role with hidden rows. Returns its result, and the set of its messages.
sub run_as_reader
{
	my ($variant, $query, $scan) = @_;
	my ($result, %messages);

	must(join(' \\; ', 'RESET ALL', map { "SET $_" } @{ variant_settings($variant, $query, $scan) }));
	$session->messages;
	$result = $session->run(variant_sql($query->{sql}, $variant, $query));
	die "LOST\n" if $result->{state} eq 'LOST';
	$messages{$_} = 1 foreach $session->messages =~ /(?:NOTICE|INFO):\s+(.*)/g;
	must('RESET ROLE');
	return ($result, \%messages);
}

# Runs a query of Hidden three times, because the first execution may only upload columns to the device. The custom scan must give
# core's answer, and no message that core does not give.
sub run_hidden
{
	my ($set, $number, $tables, $query, $scan) = @_;
	my $variant = $query->{sql} =~ /gpu:/ ? 'scan' : Types::pick('scan', 'scan', 'builtin');

	must($_) foreach @{ $query->{setup} // [] };
	my ($expected, $allowed) = run_as_reader('core', $query, $scan);
	foreach my $time ($expected->{state} =~ /^(?:00000|42501)/ ? 1 .. 3 : ())
	{
		my ($result, $messages) = run_as_reader($variant, $query, $scan);
		my @more = grep { !$allowed->{$_} } sort keys %$messages;

		# core's plan may stop at the first row, for min() of a constant. Then messages for all rows that pass the conditions are allowed.
		if (@more && $query->{all_rows})
		{
			my (undef, $all) = run_as_reader('core', { %$query, sql => $query->{all_rows} }, $scan);
			@more = grep { !$all->{$_} } @more;
		}
		my $difference = @more ? 'more messages: ' . join(', ', @more) : difference($query, $expected, $result, $scan);

		last if $result->{state} eq '0A000';
		$count{hidden}++;
		$count{forbidden}++ if $result->{state} eq '42501';
		$count{messages} += keys %$messages;
		next if !$difference;
		report_difference("as a role with hidden rows, execution $time: $difference", $variant, $set, $number, $tables, $query, $scan);
		last;
	}
	must($_) foreach @{ $query->{teardown} // [] };
	return;
}

# Returns whether such queries read rows from the device. The first of two executions uploads the columns.
sub reads_from_device
{
	my $plan;

	must(join(' \\; ', 'RESET ALL', map { "SET $_" } @{ Hidden::scan_settings() }));
	$plan = must("EXPLAIN (ANALYZE, COSTS OFF) $Hidden::reading") foreach 1 .. 2;
	return scalar grep { $_->[0] =~ /Resident Rows: \d/ } @{ $plan->{rows} };
}

# Returns whether the query can run as the role with hidden rows: it reads one table whole, and needs no setup.
sub can_run_as_reader
{
	my ($query) = @_;
	my @from = $query->{sql} =~ /\bFROM\b/g;

	return $query->{form} eq 'plain' && @from == 1 && $query->{sql} =~ / FROM t\b/ && $query->{sql} !~ /LIMIT|JOIN|TABLESAMPLE|ctid|xmin|bump|random|, ?[dwomp] |wholerow/i &&
	  !@{ $query->{setup} // [] } && !$query->{within} && !$query->{view} && !grep { /^search_path|^ROLE/i } @{ $query->{settings} // [] };
}

sub run_query
{
	my ($set, $number, $tables) = @_;
	my ($query, $scan, @variants, $reference, $is_join);

	# joins take the place of some queries, and all others stay what they are without joins
	reseed($option{seed}, $set, $number + 1, 2);
	if ($option{stars})
	{
		$query = Stars::make_query($tables);
	}
	elsif ($is_join = Joins::is_due($tables))
	{
		$query = Joins::make_query($tables);
	}
	elsif ($option{joins})
	{
		return;
	}
	else
	{
		reseed($option{seed}, $set, $number + 1);
		$query = Gen::make_query($tables);
	}
	$scan = $option{stars} ? Stars::settings() : Forms::scan_settings($query);
	@variants = $option{stars} ? 'builtin' : ('scan', Types::chance(0.4) ? 'plain' : (), Types::chance(0.4) ? 'builtin' : ());
	if (defined $option{avoid} && grep { /$option{avoid}/ } Tally::drawn(), @$scan, $query->{sql}, $query->{view} // "")
	{
		$count{avoided}++;
		return;
	}
	print "-- $set.$number: $query->{sql}\n" if $option{show};
	with_retries(sub { must($_) foreach @{ $query->{setup} } });
	$reference = run_with_retry('core', $query, $scan, $tables);
	$count{core}++;
	$count{errors}++ if $reference->{state} ne '00000';
	die "query $set.$number is wrong: $query->{sql}\n$reference->{state} $reference->{message}\n"
	  if $reference->{state} =~ /^42(?!P22)|^26|^34|^25/;
	report_difference($reference->{lost}, 'core', $set, $number, $tables, $query, $scan) if $reference->{lost};
	foreach my $variant (@variants)
	{
		my $result = run_with_retry($variant, $query, $scan, $tables);
		my $difference = $result->{lost};

		die "query $set.$number is wrong for $variant: $query->{sql}\n$result->{message}\n" if $result->{state} eq '42883';
		if ($variant ne 'plain' && $result->{state} eq '0A000' && $result->{message} =~ /gpuagg|custom scan/i)
		{
			$count{refused}++;
			next;
		}
		$count{$variant}++;
		Tally::answered(scalar @{ $result->{rows} }) if $variant ne 'plain' && $result->{state} eq '00000';
		$difference //= difference($query, $reference, $result, $scan);
		if ($difference && $reference->{state} ne $result->{state} && (my $whole = without_limit($query)))
		{
			$difference = difference_without_limit($whole, $variant, $scan);
		}
		undef $difference if $difference && !$result->{lost} && $reference->{state} ne $result->{state} && has_other_plan($variant, $query, $scan);
		report_difference($difference, $variant, $set, $number, $tables, $query, $scan) if $difference;
	}
	return if $option{stars};
	run_hidden($set, $number, $tables, Hidden::over_t($query, @{ $tables->{t}{columns} }), $scan) if $reference->{state} eq '00000' && can_run_as_reader($query) && Types::chance(0.3);
	run_hidden($set, $number, $tables, Hidden::over_h(), Hidden::scan_settings()) if Types::chance(0.2);
	if ($is_join && $reference->{state} eq '00000' && Types::chance(0.3) && (my $reader = Joins::as_reader($query)))
	{
		run_hidden($set, $number, $tables, $reader, $scan);
	}
	with_retries(sub { must($_) foreach @{ $query->{teardown} } });
	return;
}

# Runs statements that must succeed, and queries that must return the given value.
sub build
{
	my ($statements, $checks) = @_;

	must($_) foreach @$statements;
	foreach my $check (@$checks)
	{
		my $value = must($check->[0])->{rows}[0][0] // '';

		die "the table has wrong contents: $check->[0] is $value, not $check->[1]\n" if $value ne $check->[1];
	}
	return;
}

sub load
{
	my ($tables) = @_;

	must('SET client_min_messages = warning');
	build([ @{ $tables->{statements} }, $option{stars} ? () : Hidden::statements(Joins::visible_rows()) ], $tables->{checks});
	return;
}

# Loads what a session needs.
sub start
{
	must($_) foreach 'SET client_min_messages = warning', 'CREATE EXTENSION IF NOT EXISTS gpuagg', "LOAD 'auto_explain'", "LOAD 'gpuagg'";
	return;
}

# Creates the objects that all sets share.
sub prepare
{
	start();
	if (@{ must("SELECT 1 FROM pg_available_extensions WHERE name = 'citext'")->{rows} })
	{
		must('CREATE EXTENSION IF NOT EXISTS citext');
		Types::add_citext() if !$Types::types{citext};
	}
	$Forms::in_worker = must(q{SELECT name FROM pg_settings WHERE name IN ('force_parallel_mode', 'debug_parallel_query')})->{rows}[0][0];
	$Forms::eager = @{ must(q{SELECT 1 FROM pg_settings WHERE name = 'enable_eager_aggregate'})->{rows} } > 0;
	build([ Tables::fixtures() ], \@Tables::fixture_checks);
	return;
}

my $sets = int(($option{queries} + $PER_SET - 1) / $PER_SET);
with_retries(\&prepare);
foreach my $set (defined $option{set} ? $option{set} : 0 .. $sets - 1)
{
	my $tables;

	reseed($option{seed}, $set, 0);
	$tables = $option{stars} ? Stars::make_tables() : Tables::make_tables();
	reseed($option{seed}, $set, 0, 2);
	Joins::add_dimensions($tables) if !$option{stars};
	with_retries(sub { start(); must('RESET ALL'); load($tables) });
	@history = ();
	foreach my $number (0 .. ($option{query} // $PER_SET - 1))
	{
		change_tables($set, $number, $tables);
		run_query($set, $number, $tables) if !defined $option{query} || $number == $option{query};
	}
	with_retries(sub { $count{resident} += reads_from_device() }) if $option{gpu} && !$option{stars} && !defined $option{query};
}
print "# $count{core} queries ($count{errors} raise errors): $count{scan} by the custom scan, $count{plain} plain,",
  " $count{builtin} with replace_builtin; $count{refused} not taken;",
  " $count{unlimited} compared again without LIMIT; tables changed $count{changes} times; $count{avoided} avoided;",
  " $count{hidden} with hidden rows, which gave $count{messages} messages, and $count{forbidden} without privilege;",
  " $count{other_plans} errors of other plans",
  ($option{gpu} ? "; $count{constant} checked for constant columns" : ''), "\n";
if (!defined $option{query})
{
	my $enough = $count{scan} + $count{builtin} > 4 * $count{refused} && $count{errors} < 0.1 * $count{core} + 3;
	my @low;

	Tally::expect_stars() if $option{stars};
	Tally::expect($option{pages}, $Forms::eager)
		if !defined $option{avoid} && !$option{joins} && !$option{stars} && !$option{text};
	@low = Tally::report();
	print $enough ? 'ok ' : 'not ok ', "the custom scan takes most queries, and few queries fail\n";
	# in few sets the rows of h may have been changed each time
	if ($option{gpu} && $sets > 3 && !$option{stars})
	{
		print $count{resident} ? 'ok ' : 'not ok ', "queries with hidden rows read rows from the device\n";
		$count{mismatches} += !$count{resident};
	}
	print @low ? 'not ok ' : 'ok ', 'the queries have all features and paths often enough' . (@low ? ': too few of ' . join(', ', @low) : '') . "\n";
	$count{mismatches} += !$enough + @low;
}
print $count{mismatches} ? 'not ok ' : 'ok ', "$count{core} queries, seed $option{seed}\n";
exit($count{mismatches} ? 1 : 0);
