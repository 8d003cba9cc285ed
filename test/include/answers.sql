-- answer(query), core_answer(query): the rows of a query in order, or its error. No column of a query may be named answer_row.
CREATE FUNCTION pg_temp.answer(query text) RETURNS text[] LANGUAGE plpgsql AS $$
DECLARE
	answer text[];
BEGIN
	EXECUTE format('SELECT coalesce(array_agg(answer_row::text ORDER BY answer_row::text COLLATE "C"), ''{}'') FROM (%s) answer_row', query) INTO answer;
	RETURN answer;
EXCEPTION WHEN OTHERS THEN
	RETURN ARRAY[format('error %s: %s', SQLSTATE, SQLERRM)];
END $$;
CREATE FUNCTION pg_temp.core_answer(query text) RETURNS text[] LANGUAGE plpgsql SET gpuagg.enabled = off SET gpuagg.require = 'allow' AS $$
BEGIN
	RETURN pg_temp.answer(query);
END $$;
-- compared(core, ours), compared(query): how many rows there are, or the error, or how the rows differ from core's.
CREATE FUNCTION pg_temp.compared(core text[], ours text[]) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	missing text;
	surplus text;
BEGIN
	IF core = ours THEN
		RETURN CASE WHEN core[1] LIKE 'error%' THEN core[1] ELSE cardinality(core) || ' rows' END;
	END IF;
	SELECT string_agg(r, ' ') INTO missing FROM (SELECT unnest(core) EXCEPT ALL SELECT unnest(ours)) x(r);
	SELECT string_agg(r, ' ') INTO surplus FROM (SELECT unnest(ours) EXCEPT ALL SELECT unnest(core)) x(r);
	RETURN format('DIFFERENT: missing %s, surplus %s', left(missing, 200), left(surplus, 200));
END $$;
CREATE FUNCTION pg_temp.compared(query text) RETURNS text LANGUAGE sql AS $$
	SELECT pg_temp.compared(pg_temp.core_answer(query), pg_temp.answer(query)) $$;
