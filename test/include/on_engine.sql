/*
 * Compares with plain aggregates. Returns also what EXPLAIN says about the engine if there is a GPU server, and it is not what is wanted.
 * Needs same_as_core.sql.
 */
CREATE FUNCTION pg_temp.compared(query text, wanted text DEFAULT 'cuda') RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	line text;
	engine text := '';
BEGIN
	IF EXISTS (SELECT FROM gpuagg_devices() WHERE state = 'ready') AND current_setting('gpuagg.engine') = 'cuda' THEN
		SET LOCAL gpuagg.require = 'require';
		engine := ', no engine';
		FOR line IN EXECUTE 'EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) ' || query LOOP
			IF line ~ 'Engine:' THEN
				engine := CASE WHEN line ~ wanted THEN '' ELSE ', but ' || btrim(line) END;
			END IF;
		END LOOP;
	END IF;
	RETURN pg_temp.same_as_core(query) || engine;
END $$;
