-- Index conditions are rechecked only where core rechecks them. They may be slow, which is why there is an index.
SET gpuagg.require = 'require';
SET gpuagg.replace_builtin = on;
SET enable_indexscan = off;
SET enable_seqscan = off;
SET max_parallel_workers_per_gather = 0;
CREATE SEQUENCE calls;
-- counts its calls, whatever it returns
CREATE FUNCTION costly(i int) RETURNS int IMMUTABLE LANGUAGE plpgsql AS $$
BEGIN
	PERFORM nextval('public.calls');
	RETURN i % 100;
END $$;
CREATE TABLE bits AS SELECT i, i % 3 AS k FROM generate_series(1, 3000) i;
CREATE INDEX bits_costly ON bits (costly(i));
VACUUM ANALYZE bits;
CREATE FUNCTION calls(query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	answer text;
BEGIN
	PERFORM setval('calls', 1);
	EXECUTE format('SELECT string_agg(s::text, '' '' ORDER BY s::text) FROM (%s) s', query) INTO answer;
	RETURN format('%s, %s calls', answer, (SELECT last_value FROM calls) - 1);
END $$;

SELECT calls('SELECT k, count(*) FROM bits WHERE costly(i) = 7 GROUP BY k');
-- with another condition, and in the output
SELECT calls('SELECT k, count(*) FROM bits WHERE costly(i) = 7 AND k > 0 GROUP BY k');
SELECT calls('SELECT costly(i) c, count(*) FROM bits WHERE costly(i) = 7 GROUP BY 1');
-- lossy pages: the condition is evaluated for all their tuples
CREATE INDEX bits_brin ON bits USING brin (i) WITH (pages_per_range = 2);
SELECT calls('SELECT count(*) FROM bits WHERE i BETWEEN 300 AND 500');
SELECT calls('SELECT count(*) FROM bits WHERE i BETWEEN 300 AND 500 AND costly(i) = 7');
-- an operator class whose matches must be rechecked
CREATE TABLE jsons AS SELECT i, jsonb_build_object('a', i % 10, 'b', i % 7) AS j FROM generate_series(1, 1000) i;
CREATE INDEX ON jsons USING gin (j jsonb_path_ops);
CREATE INDEX ON jsons USING gist (point(i, i));
VACUUM ANALYZE jsons;
SELECT j->>'b' AS b, count(*) FROM jsons WHERE j @> '{"a": 3}' AND j @> '{"b": 2}' GROUP BY 1;
SELECT count(*) FROM jsons WHERE circle '((100, 100), 20)' @> point(i, i);
-- rows that a recheck removes are counted as core counts them
CREATE FUNCTION removed(query text) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
	line text;
BEGIN
	FOR line IN EXECUTE 'EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) ' || query LOOP
		IF line LIKE '%Rows Removed%' THEN
			RETURN NEXT trim(line);
		END IF;
	END LOOP;
END $$;
SELECT * FROM removed('SELECT count(*) FROM bits WHERE i BETWEEN 300 AND 500 AND k = 1');
SELECT * FROM removed('SELECT count(*) FROM jsons WHERE j @> ''{"a": 3}'' AND i % 20 = 3');
DROP FUNCTION removed;
-- tuples are counted as tuples of the index
SELECT pg_stat_force_next_flush();
BEGIN;
SELECT count(*) FROM jsons WHERE j @> '{"a": 3}';
SELECT seq_tup_read, idx_tup_fetch FROM pg_stat_xact_user_tables WHERE relid = 'jsons'::regclass;
COMMIT;
DROP TABLE bits, jsons;
DROP FUNCTION calls, costly;
DROP SEQUENCE calls;
