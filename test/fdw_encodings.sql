-- Tests in a database of test/fdw.sh with foreign partitions in databases of other encodings. Compares answers with those over fetched rows.
\ir fdw_functions.sql
SET gpuagg.enabled = off;
CREATE TABLE flat AS SELECT * FROM t;
RESET gpuagg.enabled;
CREATE TEMP TABLE lines AS
SELECT same(format('%s by %s', call, key), format('SELECT %s, %s FROM t GROUP BY 1', key, call),
		CASE WHEN (call ~ 'distinct' AND col IN ('arr', 'j')) OR getdatabaseencoding() = 'SQL_ASCII' THEN 'rows' ELSE 'partial' END) AS line
FROM unnest(ARRAY['txt', 'vc', 'ch', 'nm', 'arr', 'j']) col,
	LATERAL unnest(ARRAY['gpu_approx_count_distinct(%s)', 'gpu_argmax(%s, k)', 'gpu_argmin(k, %s)', 'gpu_first(%s, %1$s)', 'gpu_count(%s)']
		|| CASE WHEN col IN ('txt', 'vc', 'ch', 'arr') THEN ARRAY['gpu_max(%s)', 'gpu_min(%s)'] END) form,
	format(form, col) call, unnest(ARRAY['k', col]) key;
SELECT line FROM lines WHERE line ~ '^not';
SELECT format('%s %s aggregates of text in %s, %s of them in part', CASE WHEN bool_or(line ~ '^not') THEN 'not ok' ELSE 'ok' END,
	count(*), :'database', count(*) FILTER (WHERE line ~ ': partial$')) FROM lines;
