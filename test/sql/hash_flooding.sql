-- Keys that an attacker chose so that they collide under a known hash, a multiply-and-shift that can be inverted.
-- They must take about as long as other keys. If all collided, this would take minutes.
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS gpuagg;
RESET client_min_messages;
SET gpuagg.engine TO cpu;
SET max_parallel_workers_per_gather = 0;
SET enable_sort = off;
CREATE FUNCTION wrap(x numeric) RETURNS numeric IMMUTABLE LANGUAGE sql AS $$ SELECT mod(mod(x, 18446744073709551616) + 18446744073709551616, 18446744073709551616) $$;
CREATE FUNCTION fold(x numeric) RETURNS numeric IMMUTABLE LANGUAGE sql AS
	$$ SELECT div(x, 4294967296) * 4294967296 + (mod(x, 4294967296)::bigint # div(x, 4294967296)::bigint) $$;
-- x ^= x >> 32, and twice a multiplication by 0xd6e8feb86659fd93 followed by the same; and its inverse
CREATE FUNCTION mix(x numeric) RETURNS numeric IMMUTABLE LANGUAGE sql AS
	$$ SELECT fold(wrap(fold(wrap(fold(x) * 15485907386658061715)) * 15485907386658061715)) $$;
CREATE FUNCTION unmix(x numeric) RETURNS numeric IMMUTABLE LANGUAGE sql AS
	$$ SELECT fold(wrap(fold(wrap(fold(x) * 14982988110149298331)) * 14982988110149298331)) $$;
CREATE FUNCTION signed(x numeric) RETURNS bigint IMMUTABLE LANGUAGE sql AS
	$$ SELECT (CASE WHEN x >= 9223372036854775808 THEN x - 18446744073709551616 ELSE x END)::bigint $$;
SELECT count(*) FILTER (WHERE unmix(mix(x)) = x) AS inverted FROM generate_series(0::numeric, 18446744073709551615, 18446744073709551615 / 99) x;

-- 20,000 keys whose hashes end in 32 zero bits, each 200 times; and pairs of keys whose combined hash is zero.
CREATE TABLE flood AS SELECT i, signed(unmix(unmix(i * 4294967296))) AS k FROM generate_series(1, 20000) i;
CREATE TABLE pairs AS SELECT i::bigint AS a, signed(wrap(-31 * mix(i))) AS b FROM generate_series(1, 10000) i;
ANALYZE flood, pairs;
SET statement_timeout = '20s';
SET gpuagg.require = 'require';
SELECT gpu_count(*), gpu_sum(c), gpu_sum(s) FROM (SELECT k, gpu_count(*) AS c, gpu_sum(i) AS s FROM flood, generate_series(1, 200) GROUP BY k) q;
SELECT gpu_count(*), gpu_sum(c) FROM (SELECT a, b, gpu_count(*) AS c FROM pairs GROUP BY a, b) q;
RESET statement_timeout;

-- More groups than memory: a partition that cannot be divided is read and written again for each few groups.
CREATE FUNCTION spilled(query text) RETURNS float8 LANGUAGE plpgsql AS $$
DECLARE
	plan json;
BEGIN
	EXECUTE 'EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF, FORMAT JSON) ' || query INTO plan;
	RETURN jsonb_path_query_first(plan::jsonb, '$.**."Spilled"')::float8;
END $$;
SET work_mem = '64kB';
SET hash_mem_multiplier = 1;
SELECT gpu_count(*), gpu_sum(c) FROM (SELECT a, b, gpu_count(*) AS c FROM pairs GROUP BY a, b) q;
SELECT spilled('SELECT a, b, gpu_count(*) FROM pairs GROUP BY a, b') / spilled('SELECT a, a, gpu_count(*) FROM pairs GROUP BY a, a + 1')
	BETWEEN 0.5 AND 2 AS as_others;
RESET gpuagg.require;
DROP TABLE flood, pairs;
DROP FUNCTION spilled, unmix, mix, fold, signed, wrap;
