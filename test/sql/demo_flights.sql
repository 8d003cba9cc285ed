-- The sample data: the same on every server, in order, and as documented.
SELECT * FROM gpuagg_demo_flights(5);
SELECT count(*) FROM gpuagg_demo_flights(0);
SELECT count(*) FROM gpuagg_demo_flights(-1);
SELECT count(*) FROM gpuagg_demo_flights(NULL);
CREATE TEMP TABLE f AS SELECT * FROM gpuagg_demo_flights(30000);
SELECT count(*), count(delay) AS flown, md5(string_agg(f::text, ',' ORDER BY date, f::text COLLATE "C")) FROM f;
SELECT min(date), max(date), count(DISTINCT carrier) AS carriers, count(DISTINCT origin) AS origins, count(DISTINCT destination) AS destinations,
	min(distance), max(distance), min(delay), max(delay), round(avg(delay), 2) AS delay FROM f;
SELECT count(*) FROM f WHERE origin = destination OR num_nulls(date, carrier, origin, destination, distance) > 0;
-- in order; distances are the same in both directions
SELECT bool_and(date >= before) FROM (SELECT date, lag(date, 1, date) OVER () AS before FROM gpuagg_demo_flights(2000)) s;
SELECT count(*) FROM (SELECT FROM f GROUP BY least(origin, destination), greatest(origin, destination) HAVING count(DISTINCT distance) > 1) s;
-- they do not depend on the session's settings
SET timezone = 'Asia/Kolkata';
SET search_path = pg_temp;
CREATE FUNCTION pg_temp.hashint8extended(int8, int8) RETURNS int8 LANGUAGE sql AS 'SELECT 0::int8';
SELECT count(*) AS same FROM (SELECT * FROM public.gpuagg_demo_flights(30000) INTERSECT ALL SELECT * FROM f) s;
