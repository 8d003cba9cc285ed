# Random queries over rows that are cached on the device. The reference is core's answer. RESIDENT_QUERIES is the number of queries,
# RESIDENT_SEED the seed.
use strict;
use warnings;
use GpuaggNode;
use PostgreSQL::Test::Utils;
use Test::More;

my $n = $ENV{RESIDENT_QUERIES} // 250;
my $seed = $ENV{RESIDENT_SEED} // 1;
my $node = GpuaggNode->start_new('main', server => 1, conf => <<CONF);
gpuagg.engine = 'cuda'
gpuagg.cache = 'eager'
gpuagg.cache_memory = '64MB'
gpuagg.cache_renew = 0
autovacuum = off
timezone = 'UTC'
CONF

srand($seed);
sub one_of { return $_[rand @_] }
sub int_in { my ($lo, $hi) = @_; return $lo + int(rand($hi - $lo + 1)) }

# Leaves of expressions, by type.
my %leaves = (
	int => sub { one_of(qw(i2 i4 i4 k k2 z v), int_in(-3, 9), int_in(-40000, 40000)) },
	big => sub { one_of('i8', 'i8', 'v::bigint', int_in(-1_000_000, 1_000_000) . '::bigint') },
	num => sub { one_of(qw(n n n0), int_in(-99, 99) . '.' . int_in(0, 9), int_in(-99, 99) . '.' . int_in(100, 999)) },
	float => sub { one_of('f8', 'f8', 'f4::float8', 'i4::float8', sprintf('%.3f::float8', rand(20) - 10)) },
	single => sub { one_of('f4', 'f4', 'i2::float4', sprintf('%.2f::float4', rand(20) - 10)) },
	bool => sub { one_of(qw(b b true false NULL::bool), 'i4 IS NULL', "c <> 'D'", "o > 3000000000", 'k2 IN (1, 3, 6)', 'k2 NOT IN (2, NULL)') },
	date => sub { one_of('d', 'd', sprintf("date '200%d-%02d-%02d'", int_in(0, 3), int_in(1, 12), int_in(1, 28))) },
	text => sub { one_of('C', 'C', 'C', "'value 12'", "'t'", "''", 'NULL::text') },
	time => sub { one_of('ts', 'ts', sprintf("timestamp '200%d-%02d-%02d %02d:13'", int_in(0, 1), int_in(1, 12), int_in(1, 28), int_in(0, 23))) });
my %nodes;

# Returns an expression of the type with at most $depth levels.
sub expr
{
	my ($kind, $depth) = @_;

	return $leaves{$kind}->() if $depth <= 0 || rand() < 0.15;
	return one_of(@{ $nodes{$kind} })->($depth - 1);
}
sub comparison { return one_of('=', '<>', '<', '<=', '>', '>=') }

# Replaces C in an expression by a random text column.
sub with_text_column
{
	my ($e) = @_;
	my $column = one_of('txt', 'txt', 'vc', 'ch', 'nm::text', 'u::text', 'num');

	$e =~ s/\bC\b(?!")/$column/g;
	return $e;
}

# Generators of conditional expressions, for every type.
sub conditionals
{
	my ($kind) = @_;

	return (
		sub { my $d = shift; 'CASE WHEN ' . expr('bool', $d) . ' THEN ' . expr($kind, $d) . one_of('', ' ELSE ' . expr($kind, $d)) . ' END' },
		sub { my $d = shift; 'coalesce(' . expr($kind, $d) . ', ' . expr($kind, $d) . ')' },
		sub { my $d = shift; 'nullif(' . expr($kind, $d) . ', ' . expr($kind, 0) . ')' });
}
sub binary
{
	my ($kind, @operators) = @_;

	return sub { my $d = shift; '(' . expr($kind, $d) . ' ' . one_of(@operators) . ' ' . expr($kind, $d) . ')' };
}
sub extremes
{
	my ($kind) = @_;

	return sub { my $d = shift; one_of('greatest', 'least') . '(' . expr($kind, $d) . ', ' . expr($kind, $d) . ')' };
}

%nodes = (
	int => [
		conditionals('int'), extremes('int'), binary('int', '+', '-', '&', '|', '#'), binary('int', '+', '-'),
		sub { my $d = shift; '(' . expr('int', $d) . ' ' . one_of('*', '/', '%') . ' ' . int_in(1, 9) . ')' },
		sub { my $d = shift; 'abs(' . expr('int', $d) . ')' }, sub { my $d = shift; '(-' . expr('int', $d) . ')' },
		sub { my $d = shift; '(' . expr('date', $d) . ' - ' . expr('date', $d) . ')' },
		sub { my $d = shift; '(' . expr('bool', $d) . ')::int' },
		sub { my $d = shift; 'width_bucket(' . expr('float', $d) . ', 0, 100, 8)' },
		sub { my $d = shift; with_text_column(one_of('length', 'octet_length', 'ascii') . '(' . expr('text', $d) . ')') },
		sub { my $d = shift; with_text_column("position('1' in " . expr('text', $d) . ')') },
		sub { with_text_column("CASE WHEN C ~ '^[0-9]+\$' THEN C::int ELSE -1 END") },
		sub { my $e = expr('int', shift); "CASE WHEN $e <> 0 THEN v / $e END" } ],
	text => [
		sub { my $d = shift; one_of('upper', 'lower', 'reverse', 'md5') . '(' . expr('text', $d) . ')' },
		sub { my $d = shift; '(' . expr('text', $d) . " || '" . one_of('', 'x', ' ') . "')" },
		sub { my $d = shift; 'substr(' . expr('text', $d) . ', ' . int_in(-1, 5) . one_of('', ', ' . int_in(0, 6)) . ')' },
		sub { my $d = shift; 'replace(' . expr('text', $d) . ", '1', '" . one_of('', 'one') . "')" } ],
	big => [
		conditionals('big'), extremes('big'), binary('big', '+', '-', '&', '|'),
		sub { my $d = shift; '(' . expr('big', $d) . ' ' . one_of('*', '/', '%') . ' ' . int_in(1, 9) . ')' },
		sub { my $d = shift; 'coalesce((' . expr('big', $d) . ')::int, 7)' },
		sub { my $d = shift; '(' . expr('int', $d) . '::bigint * ' . expr('int', $d) . ')' },
		sub { my $d = shift; '(' . expr('big', $d) . ' - ' . expr('int', $d) . ')' } ],
	num => [
		conditionals('num'), binary('num', '+', '-'), binary('num', '+', '*'),
		sub { my $d = shift; 'abs(' . expr('num', $d) . ')' }, sub { my $d = shift; '(-' . expr('num', $d) . ')' },
		sub { my $d = shift; '(' . expr('int', $d) . ')::numeric' },
		sub { my $d = shift; 'extract(' . one_of(qw(year month day week quarter dow isodow doy)) . ' FROM ' . expr(one_of('date', 'time'), $d) . ')' },
		sub { my $d = shift; 'extract(' . one_of(qw(second minute hour epoch)) . ' FROM ' . expr('time', $d) . ')' } ],
	float => [
		conditionals('float'), extremes('float'), binary('float', '+', '-', '*'), binary('float', '+', '-'),
		sub { my $d = shift; one_of('floor', 'ceil', 'round', 'trunc', 'sign', 'abs') . '(' . expr('float', $d) . ')' },
		sub { my $d = shift; 'sqrt(abs(' . expr('float', $d) . '))' },
		sub { my $d = shift; '(' . expr('float', $d) . ' / ' . int_in(1, 7) . ')' },
		sub { my $d = shift; '(' . expr(one_of('int', 'big', 'num'), $d) . ')::float8' },
		sub { my $d = shift; "date_part('" . one_of(qw(second epoch hour doy week)) . "', " . expr('time', $d) . ')' } ],
	single => [ conditionals('single'), binary('single', '+', '-', '*'), sub { my $d = shift; '(' . expr('float', $d) . ')::float4' } ],
	bool => [
		(map { (sub { my $d = shift; with_text_column('(' . expr('text', $d) . ' ' . comparison() . ' ' . expr('text', 0) . one_of('', ' COLLATE "C"') . ')') }) } 1 .. 2),
		sub { my $d = shift; with_text_column('(' . expr('text', $d) . one_of(' LIKE ', ' NOT LIKE ', ' ~ ') . one_of("'t%'", "'%1'", "'%a_u%'") . ')') },
		sub { my $d = shift; with_text_column('(' . expr('text', $d) . one_of('', ' NOT') . " IN ('t1', 'value 7', 'T3', '12'" . one_of('', ', NULL') . '))') },
		sub { my $d = shift; with_text_column('(' . expr('text', $d) . one_of(' IS NULL', ' IS NOT NULL') . ')') },
		conditionals('bool'), binary('bool', 'AND', 'OR'), binary('bool', 'AND', 'OR', 'IS DISTINCT FROM'),
		(map { my $kind = $_; sub { my $d = shift; '(' . expr($kind, $d) . ' ' . comparison() . ' ' . expr($kind, $d) . ')' } } qw(int big num float single date time)),
		sub { my $d = shift; '(' . expr('date', $d) . ' ' . comparison() . ' ' . expr('time', $d) . ')' },
		sub { my $d = shift; '(NOT ' . expr('bool', $d) . ')' },
		sub { my $d = shift; '(' . expr('bool', $d) . ' IS ' . one_of('', 'NOT ') . one_of(qw(TRUE FALSE UNKNOWN)) . ')' },
		sub { my $d = shift; '(' . expr(one_of('int', 'num', 'date'), $d) . ' IS ' . one_of('', 'NOT ') . 'NULL)' },
		sub { my $d = shift; '(' . expr('int', $d) . ' ' . one_of('', 'NOT ') . 'IN (' . join(', ', map { int_in(-5, 50) } 1 .. int_in(2, 9)) . '))' } ],
	date => [ conditionals('date'), extremes('date'), sub { my $d = shift; '(' . expr('date', $d) . ' + ' . one_of('k', 'i2::int', int_in(-99, 99)) . ')' },
		sub { my $d = shift; '(' . expr('time', $d) . ')::date' } ],
	time => [ conditionals('time'), extremes('time'), sub { my $d = shift; "date_trunc('" . one_of(qw(second minute hour day week month quarter year)) . "', " . expr('time', $d) . ')' },
		sub { my $d = shift; '(' . expr('date', $d) . ')::timestamp' } ]);

# The aggregates of each type whose results do not depend on the order of rows.
my %aggregates = (
	int => [qw(sum avg min max count bit_or)], big => [qw(sum min max count)], num => [qw(sum avg min max count)], float => [qw(min max count)],
	text => [qw(count)], single => [qw(min max count)], bool => [qw(bool_and bool_or count)], date => [qw(min max count)], time => [qw(min max count)]);

# A call of an aggregate with DISTINCT, or of a percentile. (The caller adds 0 to percentiles of floats, because 0 and -0 are equal,
# and either may be the result.)
sub set_aggregate
{
	my ($depth) = @_;
	my $kind = one_of(qw(int int big float date time));
	my $argument = expr($kind, $depth);
	my $fraction = one_of(0, 0.5, 0.5, 0.99, 1, 'NULL::float8', "'{0.1,0.5,NULL,1}'::float8[]");

	$argument = "($argument)::int" if $kind eq 'int';
	return "gpu_count(DISTINCT $argument)" if rand() < 0.3;
	return 'gpu_' . one_of(qw(sum avg bit_xor max)) . "(DISTINCT $argument)" if $kind eq 'int' && rand() < 0.5;
	$fraction = one_of(0, 0.25, 0.5, 1) if $kind eq 'float';
	return "gpu_percentile_cont($fraction) WITHIN GROUP (ORDER BY $argument)" if $kind eq 'float';
	return "gpu_percentile_disc($fraction) WITHIN GROUP (ORDER BY $argument" . one_of('', ' DESC') . ')';
}

sub random_query
{
	my $depth = int_in(1, 3);
	my @keys = map {
		my $kind = one_of(qw(int big bool date time text text text column column));
		my $key = $kind eq 'column' ? one_of(qw(txt vc ch nm u num nfree n0 f4 d), q{to_char(d, 'YYYY-MM')}, q{extract(month FROM ts)}) : expr($kind, int_in(0, 2));

		# the key must contain a column
		$kind eq 'text' ? with_text_column($key =~ /\bC\b/ ? $key : 'C') : $key
	} 1 .. one_of(0, 1, 1, 1, 2);
	my $sets = rand() < 0.3;
	my @outputs = map {
		my $kind = one_of(keys %aggregates);
		my $argument = expr($kind, $depth);
		$argument = "($argument)" . one_of('::int', '::int', '') if $kind eq 'int' && $argument =~ /^-?\d+$/;
		$argument = with_text_column($argument) if $kind eq 'text';
		my $call = $sets && rand() < 0.5 ? set_aggregate($depth) : 'gpu_' . one_of(@{ $aggregates{$kind} }) . "($argument)";
		my $none = $call =~ /^gpu_percentile_cont/ ? ' + 0' : '';
		$call . (rand() < 0.2 ? ' FILTER (WHERE ' . expr('bool', 1) . ')' : '') . $none
	} 1 .. int_in(1, 3);
	my $where = rand() < 0.5 ? ' WHERE ' . join(' AND ', map { expr('bool', 2) } 1 .. int_in(1, 2)) : '';

	return 'SELECT ' . join(', ', @keys, @outputs) . " FROM t$where" . (@keys ? ' GROUP BY ' . join(', ', 1 .. @keys) : '');
}

$node->safe_psql('postgres', <<SQL);
CREATE TABLE t (k int, k2 smallint, i2 smallint, i4 int, i8 bigint, f4 float4, f8 float8, n numeric(12,2), n0 numeric(8,0),
	d date, ts timestamp, o oid, b bool, c "char", z int, v int, txt text, vc varchar(20), ch char(5), nm name, u uuid, num text, nfree numeric);
INSERT INTO t SELECT i % 40, i % 7, i % 200 - 100, i * 7919 % 100000 - 50000, i::int8 * 1000003, (i % 50) + 0.25,
	(i % 1000) / 8.0 - 20, (i % 5000 - 2500) / 100.0, i % 90, date '1999-12-25' + i % 1000,
	timestamp '1999-12-31 22:00' + i * interval '97 minutes', (i * 7919::int8 * 65537 % 4294967296)::oid, i % 3 = 0, (65 + i % 26)::"char", i % 5, i,
	CASE WHEN i % 11 = 0 THEN NULL ELSE 't' || i % 20 END, 'value ' || i % 90, chr(65 + i % 26) || CASE i % 3 WHEN 1 THEN 'x' ELSE '' END, ('name' || i % 7)::name,
	md5((i % 50)::text)::uuid, CASE WHEN i % 9 = 0 THEN 'none' ELSE (i % 30)::text END, (i % 40) * 0.25
FROM generate_series(1, 6000) i;
UPDATE t SET i4 = NULL, f8 = NULL, n = NULL, b = NULL, d = NULL, ts = NULL, o = NULL, k2 = NULL, f4 = NULL WHERE i2 % 13 = 0;
VACUUM FREEZE ANALYZE t;
SELECT gpuagg_cache_prewarm('t');
CREATE TABLE queries (q text, core text, ours text, plan text);
CREATE FUNCTION answer(q text, ours bool) RETURNS text LANGUAGE plpgsql AS \$\$
DECLARE
	r text;
BEGIN
	PERFORM set_config('gpuagg.enabled', ours::text, true);
	PERFORM set_config('gpuagg.require', CASE WHEN ours THEN 'require' ELSE 'allow' END, true);
	EXECUTE 'SELECT count(*) || chr(10) || coalesce(string_agg(s::text, chr(10) ORDER BY s::text COLLATE "C"), '''') FROM (' || q || ') s' INTO r;
	RETURN r;
EXCEPTION WHEN OTHERS THEN
	RETURN SQLSTATE || ' ' || SQLERRM;
END \$\$;
CREATE FUNCTION plan_of(q text) RETURNS text LANGUAGE plpgsql AS \$\$
DECLARE
	line text;
	r text := '';
BEGIN
	PERFORM set_config('gpuagg.enabled', 'on', true);
	PERFORM set_config('gpuagg.require', 'require', true);
	FOR line IN EXECUTE 'EXPLAIN (ANALYZE, VERBOSE, COSTS OFF, TIMING OFF, SUMMARY OFF) ' || q LOOP
		r := r || line || chr(10);
	END LOOP;
	RETURN r;
EXCEPTION WHEN OTHERS THEN
	RETURN 'error';
END \$\$;
SQL
ok($node->wait_until_ready, 'the server starts');
# From 19 on, the planner replaces core's count(x) by count(*) if x cannot be NULL. Then core does not compute x, and raises no error of
# it. gpu_count(x) computes x in each release. So there it is compared with an aggregate that has count's function, and computes x.
my $count = 'count';
if ($node->safe_psql('postgres', 'SHOW server_version_num') >= 190000)
{
	$count = 'computed_count';
	$node->safe_psql('postgres', qq(CREATE AGGREGATE $count("any") (SFUNC = int8inc_any, STYPE = int8, INITCOND = '0')));
}

my @queries = map { random_query() } 1 .. $n;

$node->safe_psql('postgres', 'INSERT INTO queries VALUES ' . join(', ', map { "(\$q\$$_\$q\$)" } @queries));
# three statements, because the first execution of a query uploads columns
$node->safe_psql('postgres', "UPDATE queries SET core = answer(replace(replace(q, 'gpu_count(', '$count('), 'gpu_', ''), false); UPDATE queries SET ours = answer(q, true); UPDATE queries SET plan = plan_of(q)");
my $different = $node->safe_psql('postgres', 'SELECT q, left(core, 200), left(ours, 200) FROM queries WHERE core IS DISTINCT FROM ours LIMIT 5');
is($different, '', "$n queries, seed $seed: all answers are core's");

my ($errors, $resident, $failed) = split /\|/, $node->safe_psql('postgres',
	"SELECT count(*) FILTER (WHERE core ~ '^[0-9A-Z]{5} '), count(*) FILTER (WHERE plan ~ 'Resident Rows: [1-9]'), count(*) FILTER (WHERE plan ~ 'cuda failed') FROM queries");
note "$errors queries fail; $resident read rows from the device; $failed start over on the CPU";
note $node->safe_psql('postgres', "SELECT coalesce(substring(plan FROM 'Resident Rows: none: [^\\n]*'), substring(plan FROM 'Engine: cpu[^\\n]*'), left(plan, 5)) AS why, count(*) FROM queries WHERE plan !~ 'Resident Rows: [1-9]' GROUP BY 1 ORDER BY 2 DESC");
cmp_ok($resident, '>', $n * 0.7, 'most queries read rows from the device');
my ($drawn, $there) = split /\|/, $node->safe_psql('postgres',
	"SELECT count(*), count(*) FILTER (WHERE plan ~ 'Resident Rows: [1-9]') FROM queries WHERE q ~ '\\m(txt|vc|ch|nm|u|num|nfree)\\M' AND core !~ '^[0-9A-Z]{5} '");
note "$there of $drawn queries with columns of other types";
cmp_ok($drawn, '>', $n * 0.4, 'many queries have columns of other types');
cmp_ok($there, '>', $drawn * 0.7, '... and most of these read rows from the device');

($drawn, $there) = split /\|/, $node->safe_psql('postgres',
	"SELECT count(*), count(*) FILTER (WHERE plan ~ 'Resident Rows: [1-9]') FROM queries WHERE q ~ '\\(DISTINCT|percentile_' AND core !~ '^[0-9A-Z]{5} '");
note "$there of $drawn queries with distinct values or percentiles";
cmp_ok($drawn, '>', $n * 0.1, 'many queries have distinct values or percentiles');
cmp_ok($there, '>', $drawn * 0.6, '... and most of these read rows from the device');

done_testing();
