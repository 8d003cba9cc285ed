-- differs(query): returns how the heap feed's answer, or error, differs from core's; NULL if it does not. @ is the
-- prefix of aggregates. differs(query, core) gets core's answer from its caller.
CREATE FUNCTION pg_temp.result_of(q text, prefix text, setting text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    r text;
BEGIN
    PERFORM set_config('gpuagg.require', setting, true);
    EXECUTE 'SELECT string_agg(s::text, chr(10) ORDER BY s::text COLLATE "C") FROM (' ||
        replace(q, '@', prefix) || ') s' INTO r;
    RETURN coalesce(r, 'nothing');
EXCEPTION WHEN OTHERS THEN
    RETURN SQLSTATE || ' ' || SQLERRM;
END $$;
CREATE FUNCTION pg_temp.differs(q text, core text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    ours text := pg_temp.result_of(q, 'gpu_', 'require');
    line text;
    heap bool := false;
BEGIN
    PERFORM set_config('gpuagg.require', 'require', true);
    BEGIN
        FOR line IN EXECUTE 'EXPLAIN (COSTS OFF) ' || replace(q, '@', 'gpu_') LOOP
            heap := heap OR line ~ 'Feed: .*heap pages';
        END LOOP;
    EXCEPTION WHEN OTHERS THEN
        heap := ours = SQLSTATE || ' ' || SQLERRM;	-- an error at planning
    END;
    IF NOT heap THEN
        RETURN 'no heap feed: ' || q;
    ELSIF core IS DISTINCT FROM ours THEN
        RETURN q || E'\n core: ' || left(core, 300) || E'\n heap: ' || left(ours, 300);
    END IF;
    RETURN NULL;
END $$;
CREATE FUNCTION pg_temp.differs(q text) RETURNS text LANGUAGE sql AS $$
    SELECT pg_temp.differs(q, pg_temp.result_of(q, '', 'forbid')) $$;
