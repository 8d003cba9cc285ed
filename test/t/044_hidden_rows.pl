# Rows that a policy or a security_barrier view hides, that are deleted, or that fail an earlier condition: functions that
# tell of their argument are called for no more values than core calls them for, and what EXPLAIN ANALYZE and the
# views say does not depend on hidden rows.
use strict;
use warnings;
use GpuaggNode;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = GpuaggNode->start_new('main', server => 1, conf => <<CONF);
gpuagg.require = 'require'
gpuagg.cache_memory = '64MB'
gpuagg.cache_renew = 0
autovacuum = off
max_parallel_workers_per_gather = 0
CONF
my $rows = 20000;

# Each of four rows is Mallory's.  In the twin the others' values are different ones of the same lengths.
$node->safe_psql('postgres', <<SQL);
CREATE ROLE mallory;
GRANT CREATE ON SCHEMA public TO mallory;
SET ROLE mallory;
CREATE TYPE span AS RANGE (subtype = int4);
CREATE FUNCTION told(text) RETURNS boolean LANGUAGE plpgsql IMMUTABLE COST 1 AS 'BEGIN RAISE NOTICE ''told %'', \$1; RETURN true; END';
CREATE FUNCTION span_json(span) RETURNS json LANGUAGE plpgsql IMMUTABLE AS 'BEGIN RAISE NOTICE ''cast %'', \$1; RETURN ''1''; END';
CREATE CAST (span AS json) WITH FUNCTION span_json(span);
RESET ROLE;
CREATE FUNCTION fill(name text, shift int) RETURNS void LANGUAGE plpgsql AS '
BEGIN
	EXECUTE format(''CREATE TABLE %I (id int, k int, owner text, word text, bits text, amount numeric(12,2), price numeric, i int, d date, f float8, s span)'', name);
	EXECUTE format(\$q\$INSERT INTO %I
		SELECT n, CASE WHEN mine THEN n %% 10 ELSE n %% 10 + 1000 * \$1 END, CASE WHEN mine THEN ''mallory'' ELSE ''another'' END, CASE WHEN mine THEN ''m'' ELSE chr(96 + \$1) END || n %% 50,
			CASE WHEN mine THEN ''1'' WHEN \$1 = 1 THEN ''2'' ELSE ''x'' END, CASE WHEN mine THEN 0 ELSE \$1 END * 1000 + n %% 1000, CASE WHEN mine THEN n %% 7 WHEN \$1 = 1 THEN ''NaN''::numeric ELSE 1.5 END,
			CASE WHEN mine THEN n %% 100 ELSE \$1 * 1000000 + n END, date ''2020-01-01'' + CASE WHEN mine THEN n %% 50 ELSE \$1 * 5000 END, CASE WHEN mine THEN n %% 9 WHEN \$1 = 1 THEN ''Infinity''::float8 ELSE 1 END,
			span(n %% 20, n %% 20 + CASE WHEN mine THEN 1 ELSE 1 + \$1 END)
		FROM (SELECT n, n %% 4 = 0 AS mine FROM generate_series(1, $rows) n) x ORDER BY n\$q\$, name) USING shift;
	EXECUTE format(''ALTER TABLE %I ENABLE ROW LEVEL SECURITY'', name);
	EXECUTE format(''CREATE POLICY own ON %I USING (owner = current_user)'', name);
	EXECUTE format(''GRANT SELECT ON %I TO mallory'', name);
	EXECUTE format(''CREATE TABLE %I_behind AS SELECT * FROM %I'', name, name);
	EXECUTE format(''CREATE VIEW %I_view WITH (security_barrier) AS SELECT * FROM %I_behind WHERE owner = ''''mallory'''''', name, name);
	EXECUTE format(''GRANT SELECT ON %I_view TO mallory'', name);
END';
SELECT fill('one', 1), fill('two', 2);
CREATE TABLE dead (k int, word text);
INSERT INTO dead SELECT n % 5, CASE WHEN n % 2 = 0 THEN 'kept' ELSE 'dead' || n % 30 END FROM generate_series(1, $rows) n;
GRANT SELECT ON dead TO mallory;
VACUUM (FREEZE, ANALYZE);
SQL
ok($node->wait_until_ready, 'the server starts');

my @tables = qw(one two one_behind two_behind dead);
my %ways = (
	'pages' => "SET gpuagg.engine = 'cpu'; SET gpuagg.cache = off;",
	'column cache' => "SET gpuagg.engine = 'cpu'; SET gpuagg.cache = eager;",
	'GPU memory' => "SET gpuagg.engine = 'cuda'; SET gpuagg.cache = eager;");
my $core = "SET gpuagg.enabled = off; SET gpuagg.require = allow;";

# What a query prints, and what is told meanwhile.
sub run_as_mallory
{
	my ($settings, $query) = @_;
	my ($out, $err);

	$node->psql('postgres', "$settings SET ROLE mallory; $query", stdout => \$out, stderr => \$err);
	$err =~ s/^psql:.*?: //mg;
	return ($out, $err);
}

sub told_of
{
	my ($settings, $query) = @_;
	my ($out, $err) = run_as_mallory($settings, $query);
	my %told = map { $_ => 1 } ($err =~ /^((?:NOTICE|WARNING|ERROR|INFO|LOG(?!:  statement:)|DEBUG).*)/mg);

	return ($out, \%told);
}

# Asked twice: the first query may be what brings columns into the GPU's memory.
sub tells_no_more
{
	my ($query) = @_;
	my $plain = $query =~ s/gpu_(?=\w+\()//gr;
	my ($expected, $allowed) = told_of($core, $plain);

	foreach my $way (sort keys %ways)
	{
		foreach my $time (1, 2)
		{
			my ($got, $told) = told_of($ways{$way}, $query);

			is($got, $expected, "$way, $time: $query");
			is(join("\n", grep { !$allowed->{$_} } sort keys %$told), '', '... tells of no more than core');
		}
	}
}

# For the GPU's dictionaries.
$node->safe_psql('postgres', "SELECT gpuagg_cache_prewarm('$_')") foreach @tables;
$node->safe_psql('postgres', "SET gpuagg.engine = 'cuda'; SELECT word, owner, bits, s, gpu_count(*) FROM $_ GROUP BY 1, 2, 3, 4") foreach grep { !/dead/ } @tables;
$node->safe_psql('postgres', "SET gpuagg.engine = 'cuda'; SELECT word, gpu_count(*) FROM dead GROUP BY 1");
$node->safe_psql('postgres', "DELETE FROM dead WHERE word LIKE 'dead%'; VACUUM (FREEZE) dead");
$node->safe_psql('postgres', "SELECT gpuagg_cache_prewarm('dead')");

# to_tsquery() says that a query without lexemes is none; blanks and tabs spell the word.
my $spelt = "to_tsquery('simple', translate(rpad('x' || encode(convert_to(word, 'UTF8'), 'hex'), 9, '0')::bit(32)::text, '01', E' \\t'))";

foreach my $table (qw(one one_view))
{
	tells_no_more("SELECT k, gpu_count(*) FROM $table WHERE $spelt IS NOT NULL GROUP BY k ORDER BY k");
	tells_no_more("SELECT k, gpu_count(*) FROM $table WHERE length(to_json(s)::text) > 0 GROUP BY k ORDER BY k");
	tells_no_more("SELECT ${spelt}::text, gpu_count(*) FROM $table GROUP BY 1 ORDER BY 1");
	tells_no_more("SELECT k, gpu_count($spelt) FROM $table WHERE word = 'm4' GROUP BY k ORDER BY k");
	tells_no_more("SELECT k, gpu_count(*) FILTER (WHERE $spelt IS NOT NULL) FROM $table WHERE word LIKE '%4' GROUP BY k ORDER BY k");
	tells_no_more("SELECT k, gpu_count(*) FROM $table WHERE told(word) GROUP BY k ORDER BY k");
	tells_no_more("SELECT k, gpu_count(*) FROM $table WHERE told(word) AND word LIKE 'm%2' AND told(owner) GROUP BY k ORDER BY k");
	tells_no_more("SELECT k, gpu_count(*) FROM $table WHERE amount > 500 AND told(amount::text) GROUP BY k ORDER BY k");
	tells_no_more("SELECT k, gpu_count(*) FROM $table WHERE i < 10 AND (i > 100 OR told(bits)) GROUP BY k ORDER BY k");
	tells_no_more("SELECT told(word), gpu_sum(i), gpu_count(told(owner)) FILTER (WHERE word = 'm4') FROM $table GROUP BY 1 ORDER BY 1");
	tells_no_more("SELECT k, gpu_sum(length(word)) FROM $table GROUP BY k HAVING told(gpu_min(word)) ORDER BY k");
	tells_no_more("SELECT k, gpu_sum(bits::int) FROM $table GROUP BY k ORDER BY k");
	tells_no_more("SELECT s, gpu_count(*) FROM $table GROUP BY s ORDER BY s");
}
# A name that leads below a time zone's file is logged; whether it does so here tells a word.
foreach my $value ("timezone(CASE WHEN word LIKE '%1' THEN 'UTC/x' ELSE 'UTC' END, timestamp '2020-01-01')",
	"(CASE WHEN word LIKE '%1' THEN '2020-01-01 00:00 UTC/x' ELSE '2020-01-01' END)::timestamptz")
{
	tells_no_more("SET client_min_messages = log; SELECT k, gpu_count(*) FROM $_ WHERE word LIKE '%2' AND $value IS NOT NULL GROUP BY k ORDER BY k")
		foreach qw(one one_view);
}
tells_no_more("SELECT k, gpu_count(*) FROM dead WHERE $spelt IS NOT NULL GROUP BY k ORDER BY k");
tells_no_more("SELECT k, gpu_count(*) FROM dead WHERE word = 'none' AND told(word) GROUP BY k ORDER BY k");

# What is harmless stays on the GPU, and the reason for the others is there.
sub seen
{
	my ($query) = @_;
	my ($out, $err);

	$node->psql('postgres', "$ways{'GPU memory'} EXPLAIN (ANALYZE, VERBOSE, COSTS OFF, TIMING OFF, SUMMARY OFF) $query", stdout => \$out, stderr => \$err);
	return $out;
}
like(seen("SELECT word, gpu_count(*), gpu_sum(length(owner)) FROM one WHERE word LIKE '%1' AND upper(owner) <> 'X' AND bits = '1' GROUP BY word"),
	qr/Resident Rows: $rows/, 'harmless functions on the GPU');
like(seen("SELECT k, gpu_count(*) FROM one WHERE $spelt IS NOT NULL GROUP BY k"),
	qr/Resident Rows: none: a function might reveal values that are hidden from the query/, 'the reason for others');
like(seen("SELECT s, gpu_count(*) FROM one GROUP BY s"),
	qr/Resident Rows: none: comparing keys might reveal values that are hidden from the query/, 'keys of a type that is not plain');

# Twins: the same visible rows, other hidden ones.  Their tables have different numbers of pages, so buffers, which EXPLAIN ANALYZE
# shows by default since 18, are left out.
sub explained
{
	my ($settings, $query, $table, $form) = @_;
	my ($out, $err) = run_as_mallory($settings, sprintf("EXPLAIN (ANALYZE, VERBOSE, COSTS OFF, TIMING OFF, SUMMARY OFF, BUFFERS OFF$form) $query", $table));

	$out =~ s/\b(?:one|two)(_\w+)?\b/TABLE/g;
	return "$out\n$err";
}

foreach my $suffix ('', '_view')
{
	foreach my $query ("SELECT k, gpu_count(*) FROM %s GROUP BY k", "SELECT k, gpu_count(*) FROM %s WHERE amount > 1500 GROUP BY k", "SELECT gpu_max(i), gpu_sum(amount) FROM %s WHERE i > 1500000",
		"SELECT k, gpu_sum(price) FROM %s WHERE i > 3000000 AND amount < 2000 GROUP BY k", "SELECT gpu_count(*) FROM %s WHERE d > '2040-01-01'", "SELECT word, gpu_count(*), gpu_sum(f) FROM %s GROUP BY word",
		"SELECT k, gpu_sum(bits::int) FROM %s GROUP BY k", "SELECT i, gpu_min(d), gpu_count(word) FROM %s GROUP BY i", "SELECT gpu_min(i), gpu_max(i) FROM %s", "SELECT price, gpu_count(*) FROM %s GROUP BY price",
		"SELECT k, word, gpu_count(*) FROM %s WHERE f < 100 GROUP BY ROLLUP (k, word)", "SELECT k, gpu_count(DISTINCT word) FROM %s WHERE price < 3 GROUP BY k")
	{
		foreach my $way (sort keys %ways)
		{
			foreach my $form ('', ', FORMAT JSON')
			{
				my $first = explained($ways{$way}, $query, "one$suffix", $form);

				is($first, explained($ways{$way}, $query, "two$suffix", $form), "$way: EXPLAIN of twins: $query$form");
				like($first, qr/GpuAgg/, '... by the custom scan');
			}
		}
	}
	my ($plan) = run_as_mallory($ways{'column cache'}, "EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF) SELECT gpu_count(*) FROM one$suffix WHERE amount > 1500");

	unlike($plan, qr/skipped=/, 'what is skipped is not told');
	like($plan, qr/Counts: not told, as rows may be hidden/, 'and that is said');
}
like($node->safe_psql('postgres', "$ways{'column cache'} EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF) SELECT gpu_count(*) FROM one WHERE amount > 5000"), qr/skipped=[1-9]/, 'who sees all rows is told');

# A value that fails in a dictionary ends a subtransaction, of which the client is not told either.
my %subtransactions;
foreach my $table (qw(one two))
{
	my (undef, $messages) = run_as_mallory("$ways{'GPU memory'} SET client_min_messages = debug5;", "SELECT k, gpu_sum(bits::int) FROM $table GROUP BY k");

	$subtransactions{$table} = () = $messages =~ /StartSubTransaction/g;
}
is($subtransactions{two}, $subtransactions{one}, 'messages for debugging do not count values that fail');

# Where a visible key equals one of a hidden row, and looks different, the GPU gives up; in the other table none does.
foreach my $hidden ([ 'equal', 'hours => 24 * (n % 5)' ], [ 'unequal', 'years => 1 + n % 5' ])
{
	my ($table, $interval) = @$hidden;
	my ($out, $err);

	$node->safe_psql('postgres', <<KEYS);
SET gpuagg.engine = 'cuda'; SET gpuagg.require = allow;
CREATE TABLE $table AS SELECT 'another' AS owner, make_interval($interval) AS t FROM generate_series(1, 40000) n;
ALTER TABLE $table ENABLE ROW LEVEL SECURITY;
CREATE POLICY own ON $table USING (owner = current_user);
GRANT SELECT ON $table TO mallory;
VACUUM (FREEZE, ANALYZE) $table;
SELECT gpuagg_cache_prewarm('$table');
SELECT owner, t, gpu_count(*) FROM $table GROUP BY 1, 2;
INSERT INTO $table SELECT 'mallory', make_interval(days => n % 5) FROM generate_series(1, 20000) n;
SELECT gpuagg_stats_reset();
KEYS
	($out, $err) = run_as_mallory("SET gpuagg.engine = 'cuda'; SET client_min_messages = debug1;", "SELECT t, gpu_count(*) FROM $table GROUP BY t ORDER BY t");
	is($out, join("\n", '00:00:00|4000', '1 day|4000', map { "$_ days|4000" } 2 .. 4), "$table keys: as the visible rows have them");
	unlike($err, qr/failed/, '... and no message of a failure');
	is($node->safe_psql('postgres', "SELECT engine FROM gpuagg_stats WHERE event = 'taken'"), 'cuda', '... and gpuagg_stats has the engine that was chosen');
}

# The views.
is((run_as_mallory('', "SELECT count(*) FROM gpuagg_cache WHERE relation IN ('one'::regclass, 'two')"))[0], '0', 'gpuagg_cache does not tell of a table with hidden rows');
isnt((run_as_mallory('', "SELECT count(*) FROM gpuagg_cache WHERE relation = 'dead'::regclass"))[0], '0', '... but of others');
$node->safe_psql('postgres', 'SELECT gpuagg_stats_reset()');
explained($ways{$_}, "SELECT k, gpu_count(*) FROM %s WHERE i > 1500000 GROUP BY k", 'one', '') foreach sort keys %ways;
is($node->safe_psql('postgres', "SELECT count(*) FROM gpuagg_stats WHERE event = 'taken' AND (rows <> 0 OR strategy <> '')"), '0', 'gpuagg_stats does not tell of strategy and rows');

$node->stop;
done_testing();
