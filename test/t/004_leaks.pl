# Ten thousand executions in one session leave no memory and no open files, with the heap feed and with the tuple feed. Some of them
# end with an error or a cancel.
use strict;
use warnings;
use GpuaggNode;
use PostgreSQL::Test::Utils;
use List::Util qw(sum);
use Test::More;

my $node = GpuaggNode->start_new('main', conf => <<CONF);
gpuagg.require = 'require'
gpuagg.engine = 'cpu'
CONF
$node->safe_psql('postgres', <<SQL);
CREATE TABLE t AS SELECT i % 7 AS k, (i % 5)::text AS name, i AS v, i::float8 AS x, i::numeric AS n, i::numeric(10,2) AS d
FROM generate_series(1, 150) i;
CREATE TABLE large AS SELECT i AS v FROM generate_series(1, 20000) i;
ANALYZE t;
ANALYZE large;
CREATE FUNCTION runs(query text, n int) RETURNS void LANGUAGE plpgsql AS \$\$
BEGIN
	FOR i IN 1 .. n LOOP
		EXECUTE query;
	END LOOP;
END \$\$;
-- executions that end with an error, which is caught
CREATE FUNCTION failing_runs(query text, n int) RETURNS void LANGUAGE plpgsql AS \$\$
BEGIN
	FOR i IN 1 .. n LOOP
		BEGIN
			EXECUTE query;
		EXCEPTION WHEN division_by_zero OR numeric_value_out_of_range OR query_canceled THEN
			CONTINUE;
		END;
		RAISE 'no error';
	END LOOP;
END \$\$;
-- cancels its query in the middle of the scan
CREATE FUNCTION cancelling(int) RETURNS int IMMUTABLE LANGUAGE plpgsql AS \$\$
BEGIN
	IF \$1 = 100 THEN
		PERFORM pg_cancel_backend(pg_backend_pid());
	END IF;
	RETURN \$1;
END \$\$;
SQL

my $session = $node->background_psql('postgres');
my $backend = $session->query('SELECT pg_backend_pid()');

sub context_bytes { return $session->query('SELECT sum(total_bytes) FROM pg_backend_memory_contexts') }

# Memory of the process that is not shared, in kB.
sub private_memory { return slurp_file("/proc/$backend/status") =~ /^RssAnon:\s+(\d+)/m ? $1 : die 'no RssAnon' }

sub open_files
{
	my @files = glob("/proc/$backend/fd/*");
	return scalar(@files);
}

# [name, function, query, executions]
my @cases = (
	[ 'grouped, many kinds of state', 'runs',
		'SELECT k, gpu_count(*), gpu_sum(v), gpu_avg(x), gpu_stddev(v), gpu_min(name), gpu_sum(n), gpu_avg(d) FROM t GROUP BY k', 4000 ],
	[ 'text key', 'runs', 'SELECT name, gpu_sum(v) FROM t WHERE v > 3 GROUP BY name', 2000 ],
	[ 'no key', 'runs', 'SELECT gpu_sum(v), gpu_max(x) FROM t', 1000 ],
	[ 'histogram', 'runs', 'SELECT gpu_histogram(x, 0, 100, 50) FROM t', 500 ],
	[ 'aggregates in order and extremes', 'runs',
		'SELECT k, gpu_longest_run(v > 5 ORDER BY x), gpu_argmax(name, v), gpu_approx_count_distinct(n) FROM t GROUP BY k', 500 ],
	[ 'own transition functions', 'runs', 'SELECT k, gpu_sum(v * interval \'1 second\'), gpu_count(*) FROM t GROUP BY k', 500 ],
	[ 'an expression of core', 'runs', 'SELECT md5(name), gpu_sum(v) FROM t GROUP BY 1', 500 ],
	[ 'rescans', 'runs', 'SELECT (SELECT gpu_sum(v) FROM t WHERE k < s) FROM generate_series(1, 5) s', 500 ],
	[ 'ended by LIMIT', 'runs', 'SELECT k, gpu_sum(v) FROM t GROUP BY k LIMIT 1', 1000 ],
	[ 'spilled', 'runs', 'SELECT v, gpu_count(*) FROM large GROUP BY v', 10 ],
	[ 'ended by errors', 'failing_runs', 'SELECT k, gpu_sum(1 / (v - 100)) FROM t GROUP BY k', 1000 ],
	[ 'ended by errors of the aggregate', 'failing_runs', 'SELECT k, gpu_sum(x * 1e306) FROM t GROUP BY k', 1000 ],
	[ 'cancelled', 'failing_runs', 'SELECT k, gpu_sum(cancelling(v)) FROM t GROUP BY k', 1000 ]);

cmp_ok(sum(map { $_->[3] } @cases), '>=', 10000, 'there are ten thousand executions');
foreach my $case (map({ [ 'heap', @$_ ] } @cases), map({ [ 'tuples', @$_ ] } @cases))
{
	my ($feed, $name, $function, $query, $n) = @$case;
	my ($contexts, $files, $private, $grown);

	$session->query("SET work_mem = '" . ($name eq 'spilled' ? '64kB' : '4MB') . "'");
	$session->query("SET gpuagg.feed = '$feed'");
	$name = "$name, $feed";
	like($session->query("EXPLAIN $query"), $feed eq 'heap' ? qr/Feed: .*heap pages/ : qr/Feed: tuples/, "$name: EXPLAIN names the feed");
	$session->query("SELECT $function(\$q\$$query\$q\$, " . int($n / 10) . ')');
	$contexts = context_bytes();
	$files = open_files();
	$private = private_memory();
	is($session->query("SELECT 'done' FROM (SELECT $function(\$q\$$query\$q\$, $n)) s"), 'done', "$name: $n executions succeed");
	$grown = context_bytes() - $contexts;
	cmp_ok($grown, '<', 65536, "$name: memory contexts do not grow");
	# a sanitizer does not give freed memory back
	cmp_ok(private_memory() - $private, '<', 512, "$name: the process does not grow, in kB") unless $ENV{SANITIZE};
	cmp_ok(open_files() - $files, '<=', 2, "$name: no file stays open");
}
is($node->safe_psql('postgres', 'SELECT count(*) FROM pg_ls_tmpdir()'), '0', 'no temporary file is left');
$session->quit;
$node->stop;
done_testing();
