-- Bins are those of width_bucket at every edge, and the edges that gpu_histogram_bins shows contain the values of their bins.
SET gpuagg.cache = off;
SET gpuagg.startup_cost = 0;
SET gpuagg.row_cost = 0;
SET gpuagg.slot_cost = 0;

SELECT count(*) AS values_elsewhere
FROM generate_series(0, 99) x, gpu_histogram_bins(0, 100, 100, (SELECT gpu_histogram(y, 0, 100, 100) FROM (VALUES (x)) v(y))) h
WHERE h.count > 0 AND NOT (x >= lower AND x < upper);

-- integers, tenths and hundredths that are edges of 1 to 1,969 bins, with the plain aggregate
CREATE TABLE edges AS SELECT n, units, (edge::numeric / units)::float8 AS x, (n::numeric / units)::float8 AS hi
FROM generate_series(1, 2000, 41) n, unnest(ARRAY[1, 10, 100]) units, generate_series(0, n) edge;
SELECT count(*) AS wrong FROM (
	SELECT n, units, hi, gpu_histogram(x, 0, hi, n) AS up, gpu_histogram(x, hi, 0, n) AS down, gpu_histogram(x, 0, hi, n, 1) AS weights FROM edges GROUP BY n, units, hi) h
	JOIN (SELECT n, units, array_agg(up ORDER BY bin) AS up, array_agg(down ORDER BY bin) AS down FROM (
		SELECT n, units, bin, count(*) FILTER (WHERE up) AS up, count(*) FILTER (WHERE NOT up) AS down
		FROM (SELECT n, units, width_bucket(x, 0, hi, n) AS bin, true AS up FROM edges UNION ALL SELECT n, units, width_bucket(x, hi, 0, n), false FROM edges
			UNION ALL SELECT n, units, generate_series(0, n + 1), NULL FROM edges WHERE x = 0) b
		GROUP BY 1, 2, 3) c GROUP BY 1, 2) core USING (n, units)
WHERE h.up <> core.up OR h.down <> core.down OR h.weights <> core.up::float8[];

-- the same with constant bounds: in engines, as keys and in conditions, in both directions, and with the numbers next to the edges
CREATE FUNCTION pg_temp.differs(lo float8, hi float8, n int) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	bounds text := format('%L::float8, %L::float8, %s', lo, hi, n);
	counts int8[];
	weights float8[];
	keys int8;
	chosen int8;
	shown int8;
BEGIN
	SET LOCAL client_min_messages = error;
	DROP TABLE IF EXISTS points, core;
	CREATE TEMP TABLE points AS SELECT edge * (1 + side * 1.2e-16::float8) AS x FROM (
		SELECT lo * ((n - i) / n::float8) + hi * (i / n::float8) AS edge FROM generate_series(0, n) i
		UNION ALL SELECT (lo::numeric + (hi::numeric - lo::numeric) * i / n)::float8 FROM generate_series(0, n) i) e, generate_series(-2, 2) side;
	CREATE TEMP TABLE core AS SELECT x, width_bucket(x, lo, hi, n) AS bin FROM points;
	SELECT array_agg(c ORDER BY b) INTO counts FROM (SELECT b, count(bin) AS c FROM generate_series(0, n + 1) b LEFT JOIN core ON bin = b GROUP BY b) s;
	SET LOCAL gpuagg.require = require;
	EXECUTE format('SELECT gpu_histogram(x, %s, 1) FROM points', bounds) INTO weights;
	IF weights <> counts::float8[] THEN RETURN 'weights'; END IF;
	EXECUTE format('SELECT count(*) FROM (SELECT k, gpu_histogram(x, %s) AS h FROM points, generate_series(1, 2) k GROUP BY k) s WHERE h = $1', bounds) INTO keys USING counts;
	IF keys <> 2 THEN RETURN 'counts'; END IF;
	EXECUTE format('SELECT count(*) FROM (SELECT width_bucket(x, %s) AS b, gpu_count(*) AS c FROM points GROUP BY 1) s WHERE c <> ($1)[b + 1]', bounds) INTO keys USING counts;
	IF keys <> 0 THEN RETURN 'keys'; END IF;
	EXECUTE format('SELECT gpu_count(*) FROM points WHERE width_bucket(x, %s) > %s', bounds, n / 2) INTO chosen;
	SET LOCAL gpuagg.require = allow;
	IF chosen <> (SELECT count(*) FROM core WHERE bin > n / 2) THEN RETURN 'condition'; END IF;
	-- with ascending bounds a bin includes its lower edge, with descending bounds its upper edge
	SELECT count(*) INTO shown FROM core JOIN gpu_histogram_bins(lo, hi, n, counts) h USING (bin)
	WHERE NOT CASE WHEN lo < hi THEN x >= lower AND x < upper ELSE x > lower AND x <= upper END;
	RETURN nullif(shown, 0) || ' outside of what is shown';
END $$;
SELECT lo, hi, n, d FROM (VALUES (0, 100, 100), (100, 0, 100), (0, 100, 1000), (0, 1, 1), (-1, 1, 10), (-60, 180, 48), (180, -60, 48), (0.1, 0.7, 60), (0.024, 10.06, 5),
	(-273.15, 1000, 333), (1e-300, 1, 13), (-1e300, 1e300, 30), (1, 1.000000000000001, 3), (1e15, 1e15 + 9, 9), (0, 2000, 2000), (200, 0, 2000), (0, 20, 1999), (-5, 80, 13)) v(lo, hi, n),
	pg_temp.differs(lo, hi, n) d WHERE d IS NOT NULL;

-- a range larger than the largest double: every bin is a quarter
SELECT gpu_histogram(x, -1.7e308, 1.7e308, 4), gpu_histogram(x, 1.7e308, -1.7e308, 4) FROM unnest(ARRAY[-1.7e308, -1e308, -1, 0, 1, 1e308, 1.7e308]) x;
SELECT bin, lower, upper FROM gpu_histogram_bins(-1.7e308, 1.7e308, ARRAY[0, 1, 1, 1, 1, 0]::int8[]);
-- some bins contain no double: each double is in the bin whose edges contain it
SELECT bin, lower = upper AS empty, count FROM gpu_histogram_bins(1, 1.0000000000000004, 4, (SELECT gpu_histogram(x, 1, 1.0000000000000004, 4) FROM unnest(ARRAY[1, 1.0000000000000002, 1.0000000000000004]) x)) WHERE bin > 0;
-- the first edge is 0, with either sign
SELECT bin, upper FROM gpu_histogram_bins(0, -1, ARRAY[0, 0, 0]::int8[]) WHERE bin = 1;
DROP TABLE edges;
