# gpuagg_describe with pg_stat_statements, which replaces the constants in the texts of the queries that functions run.
use strict;
use warnings;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my ($libdir) = run_command([ 'pg_config', '--pkglibdir' ]);
plan skip_all => 'pg_stat_statements is not installed' unless -e "$libdir/pg_stat_statements.so";

my $node = PostgreSQL::Test::Cluster->new('statements');
$node->init;
$node->append_conf('postgresql.conf', "fsync = off\nshared_preload_libraries = 'pg_stat_statements, gpuagg'\npg_stat_statements.track = all");
$node->start;
$node->safe_psql('postgres', 'CREATE EXTENSION gpuagg; CREATE EXTENSION pg_stat_statements; CREATE TABLE t AS '
	. "SELECT i AS a, i::text AS b, i::numeric AS c, i % 2 = 0 AS d, date '2026-01-01' + i AS e FROM generate_series(1, 100) i");
is($node->safe_psql('postgres', "SELECT name, count, min, most_frequent FROM gpuagg_describe('t')"),
	"a|100|1|\nb|100|1|\nc|100|1|\nd|100|f|false\ne|100|2026-01-02|", 'a table is described');
like($node->safe_psql('postgres', "SELECT query FROM pg_stat_statements WHERE query LIKE '%AS d'"), qr/^SELECT pg_catalog\.count\(\*\), ROW\(.*\) FROM public\.t AS d$/,
	'the text of its query is kept');
done_testing();
