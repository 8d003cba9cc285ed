# Hidden rows: rows that a policy or a security_barrier view hides, that are deleted, or that fail an earlier condition. Functions that
# can reveal their arguments must be called for no more values than core calls them for. The output of EXPLAIN ANALYZE and of the views
# must not depend on hidden rows. The attacker is role mallory. The reference is core, and a twin of each table with the same visible
# rows and other hidden rows.
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

# Mallory owns every fourth row. Table "two" is the twin of table "one": its hidden rows have other values of the same lengths. The
# function told() reports its argument in a notice.
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

# Returns the output and the messages of a query of Mallory.
sub run_as_mallory
{
	my ($settings, $query) = @_;
	my ($out, $err);

	$node->psql('postgres', "$settings SET ROLE mallory; $query", stdout => \$out, stderr => \$err);
	$err =~ s/^psql:.*?: //mg;
	return ($out, $err);
}

# Returns the output of a query of Mallory, and the set of its messages.
sub answer_and_messages
{
	my ($settings, $query) = @_;
	my ($out, $err) = run_as_mallory($settings, $query);
	my %messages = map { $_ => 1 } ($err =~ /^((?:NOTICE|WARNING|ERROR|INFO|LOG(?!:  statement:)|DEBUG).*)/mg);

	return ($out, \%messages);
}

# Tests that a query gives core's answer, and no message that core does not give. It runs twice, because the first execution may only
# upload columns to the device.
sub check_messages
{
	my ($query) = @_;
	my $plain = $query =~ s/gpu_(?=\w+\()//gr;
	my ($expected, $allowed) = answer_and_messages($core, $plain);

	foreach my $way (sort keys %ways)
	{
		foreach my $time (1, 2)
		{
			my ($got, $messages) = answer_and_messages($ways{$way}, $query);

			is($got, $expected, "$way, execution $time: the answer is core's: $query");
			is(join("\n", grep { !$allowed->{$_} } sort keys %$messages), '', '... and it gives no more messages than core');
		}
	}
}

# Fills the dictionaries of the GPU server.
$node->safe_psql('postgres', "SELECT gpuagg_cache_prewarm('$_')") foreach @tables;
$node->safe_psql('postgres', "SET gpuagg.engine = 'cuda'; SELECT word, owner, bits, s, gpu_count(*) FROM $_ GROUP BY 1, 2, 3, 4") foreach grep { !/dead/ } @tables;
$node->safe_psql('postgres', "SET gpuagg.engine = 'cuda'; SELECT word, gpu_count(*) FROM dead GROUP BY 1");
$node->safe_psql('postgres', "DELETE FROM dead WHERE word LIKE 'dead%'; VACUUM (FREEZE) dead");
$node->safe_psql('postgres', "SELECT gpuagg_cache_prewarm('dead')");

# to_tsquery() of only blanks and tabs gives a notice that contains its argument. Blanks and tabs encode the bits of the word.
my $encoded = "to_tsquery('simple', translate(rpad('x' || encode(convert_to(word, 'UTF8'), 'hex'), 9, '0')::bit(32)::text, '01', E' \\t'))";

foreach my $table (qw(one one_view))
{
	check_messages("SELECT k, gpu_count(*) FROM $table WHERE $encoded IS NOT NULL GROUP BY k ORDER BY k");
	check_messages("SELECT k, gpu_count(*) FROM $table WHERE length(to_json(s)::text) > 0 GROUP BY k ORDER BY k");
	check_messages("SELECT ${encoded}::text, gpu_count(*) FROM $table GROUP BY 1 ORDER BY 1");
	check_messages("SELECT k, gpu_count($encoded) FROM $table WHERE word = 'm4' GROUP BY k ORDER BY k");
	check_messages("SELECT k, gpu_count(*) FILTER (WHERE $encoded IS NOT NULL) FROM $table WHERE word LIKE '%4' GROUP BY k ORDER BY k");
	check_messages("SELECT k, gpu_count(*) FROM $table WHERE told(word) GROUP BY k ORDER BY k");
	check_messages("SELECT k, gpu_count(*) FROM $table WHERE told(word) AND word LIKE 'm%2' AND told(owner) GROUP BY k ORDER BY k");
	check_messages("SELECT k, gpu_count(*) FROM $table WHERE amount > 500 AND told(amount::text) GROUP BY k ORDER BY k");
	check_messages("SELECT k, gpu_count(*) FROM $table WHERE i < 10 AND (i > 100 OR told(bits)) GROUP BY k ORDER BY k");
	check_messages("SELECT told(word), gpu_sum(i), gpu_count(told(owner)) FILTER (WHERE word = 'm4') FROM $table GROUP BY 1 ORDER BY 1");
	check_messages("SELECT k, gpu_sum(length(word)) FROM $table GROUP BY k HAVING told(gpu_min(word)) ORDER BY k");
	check_messages("SELECT k, gpu_sum(bits::int) FROM $table GROUP BY k ORDER BY k");
	check_messages("SELECT s, gpu_count(*) FROM $table GROUP BY s ORDER BY s");
}
# A time zone whose name leads below another zone's file is logged. Here the message depends on the word.
foreach my $value ("timezone(CASE WHEN word LIKE '%1' THEN 'UTC/x' ELSE 'UTC' END, timestamp '2020-01-01')",
	"(CASE WHEN word LIKE '%1' THEN '2020-01-01 00:00 UTC/x' ELSE '2020-01-01' END)::timestamptz")
{
	check_messages("SET client_min_messages = log; SELECT k, gpu_count(*) FROM $_ WHERE word LIKE '%2' AND $value IS NOT NULL GROUP BY k ORDER BY k")
		foreach qw(one one_view);
}
check_messages("SELECT k, gpu_count(*) FROM dead WHERE $encoded IS NOT NULL GROUP BY k ORDER BY k");
check_messages("SELECT k, gpu_count(*) FROM dead WHERE word = 'none' AND told(word) GROUP BY k ORDER BY k");

# ---- functions that cannot reveal their arguments run on the device; for others EXPLAIN shows the reason ----

sub explain_on_gpu
{
	my ($query) = @_;
	my ($out, $err);

	$node->psql('postgres', "$ways{'GPU memory'} EXPLAIN (ANALYZE, VERBOSE, COSTS OFF, TIMING OFF, SUMMARY OFF) $query", stdout => \$out, stderr => \$err);
	return $out;
}
like(explain_on_gpu("SELECT word, gpu_count(*), gpu_sum(length(owner)) FROM one WHERE word LIKE '%1' AND upper(owner) <> 'X' AND bits = '1' GROUP BY word"),
	qr/Resident Rows: $rows/, 'functions that reveal nothing run on the device');
like(explain_on_gpu("SELECT k, gpu_count(*) FROM one WHERE $encoded IS NOT NULL GROUP BY k"),
	qr/Resident Rows: none: a function might reveal values that are hidden from the query/, 'EXPLAIN shows that a function might reveal values');
like(explain_on_gpu("SELECT s, gpu_count(*) FROM one GROUP BY s"),
	qr/Resident Rows: none: comparing keys might reveal values that are hidden from the query/, 'EXPLAIN shows that a comparison of keys might reveal values');

# ---- twins: EXPLAIN ANALYZE prints the same ----

# Returns Mallory's EXPLAIN ANALYZE of a query over $table, without the table's name. The twins have different numbers of pages, so
# buffers, which EXPLAIN ANALYZE prints by default since release 18, are left out.
sub explain_as_mallory
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
				my $first = explain_as_mallory($ways{$way}, $query, "one$suffix", $form);

				is($first, explain_as_mallory($ways{$way}, $query, "two$suffix", $form), "$way: EXPLAIN prints the same for both twins: $query$form");
				like($first, qr/GpuAgg/, '... with the custom scan');
			}
		}
	}
	my ($plan) = run_as_mallory($ways{'column cache'}, "EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF) SELECT gpu_count(*) FROM one$suffix WHERE amount > 1500");

	unlike($plan, qr/skipped=/, 'EXPLAIN does not print how many blocks were skipped');
	like($plan, qr/Counts: not told, as rows may be hidden/, '... and says so');
}
like($node->safe_psql('postgres', "$ways{'column cache'} EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF) SELECT gpu_count(*) FROM one WHERE amount > 5000"), qr/skipped=[1-9]/, 'EXPLAIN prints it for a role that sees all rows');

# A dictionary value for which an expression fails ends a subtransaction. Debug messages must not reveal that.
my %subtransactions;
foreach my $table (qw(one two))
{
	my (undef, $messages) = run_as_mallory("$ways{'GPU memory'} SET client_min_messages = debug5;", "SELECT k, gpu_sum(bits::int) FROM $table GROUP BY k");

	$subtransactions{$table} = () = $messages =~ /StartSubTransaction/g;
}
is($subtransactions{two}, $subtransactions{one}, 'debug messages do not reveal the number of values that fail');

# The GPU engine fails if a visible key equals a hidden key that prints differently. In the other table no keys are equal. Mallory must
# see no difference.
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
	is($out, join("\n", '00:00:00|4000', '1 day|4000', map { "$_ days|4000" } 2 .. 4), "$table keys: the answer prints the keys of the visible rows");
	unlike($err, qr/failed/, '... and no message mentions a failure');
	is($node->safe_psql('postgres', "SELECT engine FROM gpuagg_stats WHERE event = 'taken'"), 'cuda', '... and gpuagg_stats has the engine of the plan');
}

# ---- the views ----
is((run_as_mallory('', "SELECT count(*) FROM gpuagg_cache WHERE relation IN ('one'::regclass, 'two')"))[0], '0', 'gpuagg_cache does not show a table with hidden rows');
isnt((run_as_mallory('', "SELECT count(*) FROM gpuagg_cache WHERE relation = 'dead'::regclass"))[0], '0', '... but other tables');
$node->safe_psql('postgres', 'SELECT gpuagg_stats_reset()');
explain_as_mallory($ways{$_}, "SELECT k, gpu_count(*) FROM %s WHERE i > 1500000 GROUP BY k", 'one', '') foreach sort keys %ways;
is($node->safe_psql('postgres', "SELECT count(*) FROM gpuagg_stats WHERE event = 'taken' AND (rows <> 0 OR strategy <> '')"), '0', 'gpuagg_stats does not show the strategy and the rows');

$node->stop;
done_testing();
