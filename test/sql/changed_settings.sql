-- Settings that change between the rescans of a query: stable functions are computed again for each scan.
SET gpuagg.require = 'require';
SET gpuagg.replace_builtin = on;
SET max_parallel_workers_per_gather = 0;
SET timezone = 'UTC';
SET datestyle = 'ISO, MDY';
CREATE TABLE changes (id int, zone text, style text);
INSERT INTO changes VALUES (1, 'UTC', 'ISO, MDY'), (2, 'America/New_York', 'SQL, DMY'), (3, 'Asia/Tokyo', 'German, DMY');
CREATE TABLE few AS SELECT i AS id, timestamptz '2024-03-10 00:00+00' + i % 48 * interval '1 hour' AS ts,
	date '2024-01-01' + i % 7 AS d, 'key ' || i % 5 AS k FROM generate_series(1, 3000) i;
ANALYZE changes, few;

SELECT c.id, s.* FROM (SELECT id, set_config('timezone', zone, false) FROM changes OFFSET 0) c,
	LATERAL (SELECT min(h), max(h), count(*) FROM
		(SELECT to_char(ts, 'YYYY-MM-DD HH24') h, count(*) FROM few WHERE few.id >= c.id GROUP BY 1) g) s;
SELECT c.id, s.* FROM (SELECT id, set_config('timezone', zone, false) FROM changes OFFSET 0) c,
	LATERAL (SELECT count(*), sum(n) FROM
		(SELECT ts::date d, count(*) FILTER (WHERE to_char(ts, 'HH24') = '05') n FROM few WHERE few.id >= c.id GROUP BY 1) g) s;
SELECT c.id, s.* FROM (SELECT id, set_config('datestyle', style, false) FROM changes OFFSET 0) c,
	LATERAL (SELECT min(h), max(h), count(*) FROM
		(SELECT k || d::text h, count(*) FROM few WHERE few.id >= c.id GROUP BY 1) g) s;

-- ... and between two fetches from a cursor
SET datestyle = 'ISO, MDY';
BEGIN;
DECLARE c CURSOR FOR SELECT changes.id, s.* FROM changes,
	LATERAL (SELECT d::text, count(*) FROM few WHERE few.id >= changes.id GROUP BY 1 ORDER BY 1 LIMIT 1) s;
FETCH c;
SET LOCAL datestyle = 'German, DMY';
FETCH c;
CLOSE c;
COMMIT;
DROP TABLE changes, few;
