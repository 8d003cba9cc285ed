-- agrees(query): returns whether the heap feed's answer is core's. @ is the prefix of aggregates.
CREATE FUNCTION agrees(q text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    answer text[];
    line text;
    heap bool := false;
BEGIN
    FOR i IN 1..2 LOOP
        PERFORM set_config('gpuagg.require', CASE i WHEN 1 THEN 'forbid' ELSE 'require' END, true);
        EXECUTE 'SELECT string_agg(s::text, chr(10) ORDER BY s::text COLLATE "C") FROM (' ||
            replace(q, '@', CASE i WHEN 1 THEN '' ELSE 'gpu_' END) || ') s' INTO line;
        answer[i] := coalesce(line, 'nothing');
    END LOOP;
    FOR line IN EXECUTE 'EXPLAIN (COSTS OFF) ' || replace(q, '@', 'gpu_') LOOP
        heap := heap OR line ~ 'Feed: .*heap pages';
    END LOOP;
    RETURN CASE WHEN NOT heap THEN 'no heap feed: ' || q
        WHEN answer[1] = answer[2] THEN 'ok'
        ELSE format(E'%s\n core: %s\n heap: %s', q, left(answer[1], 200), left(answer[2], 200)) END;
END $$;
