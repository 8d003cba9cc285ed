# The extension in its own schema: used with an empty search_path and by roles without privileges, dumped and restored. Also: who may
# create it, and that it does not call functions which a user has created in its schema.
use strict;
use warnings;
use GpuaggNode;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = GpuaggNode->start_new('main', conf => "timezone = 'UTC'\ngpuagg.cache_memory = 32MB\n");
my $objects = slurp_file("$ENV{TOP}/lib/objects.sql");
my $nowhere = "SET search_path = '';";

$node->safe_psql('postgres', 'CREATE ROLE owner; CREATE ROLE plain; CREATE DATABASE owned OWNER owner');

# The owner of a database may not create the extension, because it is not trusted (gpuagg.control).
my ($status, $out, $err) = $node->psql('owned', 'SET ROLE owner; CREATE EXTENSION gpuagg');
like($err, qr/permission denied to create extension "gpuagg"/, 'the owner of a database may not create the extension');
is($node->safe_psql('owned', "SELECT bool_or(trusted), bool_and(superuser) FROM pg_available_extension_versions WHERE name = 'gpuagg'"),
	'f|t', 'no version is trusted');

# The commands of README.md.
$node->safe_psql('owned', 'CREATE SCHEMA gpuagg; GRANT USAGE ON SCHEMA gpuagg TO PUBLIC; CREATE EXTENSION gpuagg SCHEMA gpuagg');
is($node->safe_psql('owned', "SELECT count(*) FROM pg_proc WHERE proname LIKE 'gpu%' AND pronamespace <> 'gpuagg'::regnamespace"),
	'0', 'no function is in another schema');
$node->safe_psql('owned', "SET search_path = gpuagg; $objects");
my $row_by_row = $node->safe_psql('owned', "$nowhere SET gpuagg.enabled = off; SELECT * FROM kept.answers('%')");
cmp_ok(scalar(() = $row_by_row =~ /^[gw]_gpu_/mg), '>', 200, 'views of more than 200 aggregates work with an empty search_path');
my $grouped = "SELECT * FROM kept.answers('g\\_%')";
is($node->safe_psql('owned', "$nowhere SET gpuagg.require = 'require'; $grouped"),
	$node->safe_psql('owned', "$nowhere SET gpuagg.enabled = off; $grouped"), '... and give the same answers by the custom scan');

$node->safe_psql('owned', <<SQL);
CREATE SCHEMA own AUTHORIZATION plain;
GRANT USAGE ON SCHEMA kept TO plain;
SET ROLE plain;
CREATE TABLE own.t AS SELECT i % 10 AS k, i AS v, i / 10.0 AS n, 'a' || i % 3 AS s FROM generate_series(1, 20000) i;
SQL
$node->safe_psql('owned', 'VACUUM ANALYZE own.t');
my $plain = "$nowhere SET ROLE plain; SET gpuagg.require = 'require';";
is($node->safe_psql('owned', "$plain SELECT k, gpuagg.gpu_sum(v), gpuagg.gpu_avg(n), gpuagg.gpu_max(s) FROM own.t GROUP BY k ORDER BY k LIMIT 1"),
	'0|20010000|1000.50000000000000000000|a2', 'a role without privileges can run aggregates');
is($node->safe_psql('owned', "$plain SELECT bin, lower, upper, count FROM gpuagg.gpu_histogram_bins(0, 20000, (SELECT gpuagg.gpu_histogram(v, 0, 20000, 2) FROM own.t))
	WHERE bin = 1"), '1|0|10000|9999', '... histograms');
is($node->safe_psql('owned', "$plain SELECT gpuagg.gpu_last(s, v), gpuagg.gpu_longest_run(v > 5 ORDER BY v),
	gpuagg.gpu_approx_count_distinct(k) FROM own.t"), 'a2|19995|10', '... and aggregates that core does not have');
is($node->safe_psql('owned', "$plain SELECT gpuagg.gpuagg_version() > '1'"), 't', '... gpuagg_version()');
like($node->safe_psql('owned', "$plain SELECT count(*) FROM gpuagg.gpuagg_operators"), qr/^\d\d$/, '... gpuagg_operators');
is($node->safe_psql('owned', "$plain SELECT count(*) FROM gpuagg.gpuagg_progress"), '0', '... gpuagg_progress');
is($node->safe_psql('owned', "$plain SELECT count(*) FROM gpuagg.gpuagg_devices()"), '0', '... and gpuagg_devices()');
is($node->safe_psql('owned', "$plain SELECT gpuagg.gpuagg_cache_prewarm('own.t', '{k,v}') > 100"), 't', 'the role can prewarm its own table');
is($node->safe_psql('owned', "$plain SELECT \"column\" FROM gpuagg.gpuagg_cache WHERE relation = 'own.t'::regclass AND \"column\" IN ('k', 'v') ORDER BY 1"), "k\nv", '... see its columns in gpuagg_cache');
like($node->safe_psql('owned', "$plain EXPLAIN (ANALYZE, VERBOSE, COSTS OFF) SELECT gpuagg.gpu_sum(v) FROM own.t"),
	qr/GpuAgg/, '... see the custom scan in EXPLAIN');
cmp_ok($node->safe_psql('owned', "$plain SELECT gpuagg.gpuagg_cache_evict('own.t')"), '>', 0, '... and evict its own table');
is($node->safe_psql('owned', "$plain SET gpuagg.replace_builtin = on; SELECT k, sum(v) FROM own.t GROUP BY k ORDER BY k LIMIT 1"),
	'0|20010000', "... and use gpuagg.replace_builtin");
($status, $out, $err) = $node->psql('owned', "$plain SELECT gpuagg.gpuagg_cache_evict('kept.everything')");
like($err, qr/must be owner of table everything/, 'it cannot evict the table of another owner');
($status, $out, $err) = $node->psql('owned', "$plain SELECT gpuagg.gpuagg_cache_prewarm('kept.everything')");
like($err, qr/permission denied for table everything/, '... nor prewarm a table that it may not read');

# ---- dump and restore, which use an empty search_path ----
my $dump = $node->basedir . '/owned.dump';
command_ok([ 'pg_dump', '-Fc', '-f', $dump, '-d', $node->connstr('owned') ], 'pg_dump succeeds');
$node->safe_psql('postgres', 'CREATE DATABASE restored');
command_ok([ 'pg_restore', '-e', '-d', $node->connstr('restored'), $dump ], 'pg_restore succeeds');
is($node->safe_psql('restored', "$nowhere SET gpuagg.enabled = off; SELECT * FROM kept.answers('%')"), $row_by_row, 'restored views give the same answers');
is($node->safe_psql('restored', "$plain SELECT gpuagg.gpu_sum(v) FROM own.t"), '200010000', '... and the role without privileges can use the extension');

# ---- planted functions ----

# An update calls no function that a user has created in the extension's schema. No object of a new installation uses such a function
# either, although these functions match the argument types better than PostgreSQL's own.
$node->safe_psql('postgres', 'CREATE DATABASE planted');
$node->safe_psql('planted', <<'SQL');
CREATE SCHEMA s;
CREATE EXTENSION gpuagg SCHEMA s VERSION '1.0';
CREATE FUNCTION s.quote_ident(name) RETURNS text LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'planted'; END $$;
CREATE FUNCTION s.format(text, text) RETURNS text LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'planted'; END $$;
CREATE FUNCTION s.format(text, text, text) RETURNS text LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'planted'; END $$;
CREATE FUNCTION s.format(text, text, text, name) RETURNS text LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'planted'; END $$;
CREATE FUNCTION s.joined(text, name) RETURNS text LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'planted'; END $$;
CREATE OPERATOR s.|| (FUNCTION = s.joined, LEFTARG = text, RIGHTARG = name);
SQL
$node->safe_psql('planted', 'ALTER EXTENSION gpuagg UPDATE');
is($node->safe_psql('planted', "SELECT s.gpu_sum(i) FROM generate_series(1, 10) i"), '55', 'the update does not call planted functions');

my $planted_uses = <<'SQL';
SELECT pg_describe_object(o.classid, o.objid, 0) || ' uses ' || pg_describe_object(o.refclassid, o.refobjid, 0)
FROM pg_depend m JOIN pg_extension x ON m.refclassid = 'pg_extension'::regclass AND m.refobjid = x.oid AND extname = 'gpuagg'
	LEFT JOIN pg_rewrite r ON m.classid = 'pg_class'::regclass AND r.ev_class = m.objid
	JOIN pg_depend o ON o.classid = m.classid AND o.objid = m.objid OR o.classid = 'pg_rewrite'::regclass AND o.objid = r.oid
WHERE m.deptype = 'e' AND (o.refclassid, o.refobjid) IN (
	SELECT 'pg_proc'::regclass, oid FROM pg_proc WHERE proname LIKE 'planted%' OR prosrc LIKE '%planted%'
	UNION ALL SELECT 'pg_operator'::regclass, oid FROM pg_operator WHERE oprcode::text LIKE '%planted%')
SQL
$node->safe_psql('planted', <<'SQL');
CREATE SCHEMA t;
CREATE FUNCTION t.generate_series(int4, int8) RETURNS SETOF int8 LANGUAGE sql AS 'SELECT 1::int8 AS planted';
CREATE FUNCTION t.hashint8extended(int8, int4) RETURNS int8 LANGUAGE sql AS 'SELECT 1::int8 AS planted';
CREATE FUNCTION t.make_interval(days int4, mins int4) RETURNS interval LANGUAGE sql AS 'SELECT NULL::interval AS planted';
CREATE FUNCTION t.pg_relation_filenode(oid) RETURNS oid LANGUAGE sql AS 'SELECT 1::oid AS planted';
CREATE FUNCTION t.planted_power(int4, int4) RETURNS float8 LANGUAGE sql AS 'SELECT 1::float8';
CREATE FUNCTION t.planted_and(int8, int4) RETURNS int8 LANGUAGE sql AS 'SELECT 1::int8';
CREATE OPERATOR t.^ (FUNCTION = t.planted_power, LEFTARG = int4, RIGHTARG = int4);
CREATE OPERATOR t.& (FUNCTION = t.planted_and, LEFTARG = int8, RIGHTARG = int4);
SET search_path = t;
CREATE VIEW t.captured AS SELECT 2::int4 ^ 3::int4 AS power, hashint8extended(1::int8, 1) AS hash;
SQL
like($node->safe_psql('planted', 'SELECT * FROM t.captured'), qr/^1\|1$/, 'a view of a user resolves to the planted functions');
$node->safe_psql('planted', 'DROP EXTENSION gpuagg; CREATE EXTENSION gpuagg SCHEMA t');
is($node->safe_psql('planted', $planted_uses), '', 'no object of a new installation uses planted functions');
is($node->safe_psql('planted', 'SELECT count(*) FROM t.gpuagg_demo_flights(10)'), '10', '... and gpuagg_demo_flights() works');
$node->stop;
done_testing();
