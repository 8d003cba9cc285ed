-- States of array_agg are sent by the element type's send and receive functions. No parallel plan is made for a type
-- without them, and a serial plan never calls them.
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS gpuagg;
SET gpuagg.engine = 'cpu';
SET max_parallel_workers_per_gather = 0;
CREATE TYPE mute;
CREATE FUNCTION mute_in(cstring) RETURNS mute STRICT IMMUTABLE PARALLEL SAFE LANGUAGE internal AS 'textin';
CREATE FUNCTION mute_out(mute) RETURNS cstring STRICT IMMUTABLE PARALLEL SAFE LANGUAGE internal AS 'textout';
CREATE FUNCTION mute_recv(internal) RETURNS mute STRICT IMMUTABLE PARALLEL SAFE LANGUAGE internal AS 'textrecv';
CREATE TYPE mute (input = mute_in, output = mute_out, receive = mute_recv, like = text);
CREATE FUNCTION mute_send(mute) RETURNS bytea STRICT IMMUTABLE PARALLEL SAFE LANGUAGE plpgsql AS
$$ BEGIN RAISE EXCEPTION 'sent'; END $$;
ALTER TYPE mute SET (send = mute_send);
RESET client_min_messages;
CREATE TABLE elements AS SELECT g, g % 3 AS k, makeaclitem(10, 10, 'SELECT', false) AS none, 'word' || i AS word
FROM generate_series(1, 15000) g, generate_series(1, 2) i;
ALTER TABLE elements ADD m mute DEFAULT 'said';
ANALYZE elements;

SET work_mem = '64kB';
SET hash_mem_multiplier = 1;
SET gpuagg.require = 'require';
SELECT gpu_count(*), gpu_sum(c), gpu_sum(a), gpu_sum(b), gpu_max(w) FROM
	(SELECT g, gpu_count(*) AS c, cardinality(array_agg(none)) AS a, cardinality(array_agg(m)) AS b, (array_agg(word))[2] AS w
	 FROM elements GROUP BY g) q;
SELECT gpu_count(*), gpu_sum(a) FROM (SELECT g, gpu_count(*), cardinality(array_agg(ARRAY[none])) AS a FROM elements GROUP BY g) q;
RESET gpuagg.require;
RESET work_mem;
RESET hash_mem_multiplier;
SET max_parallel_workers_per_gather = 2;
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
SELECT k, gpu_count(*), cardinality(array_agg(none)), cardinality(array_agg(ARRAY[none])) FROM elements GROUP BY k ORDER BY k;
DROP TABLE elements;
SET client_min_messages = warning;
DROP TYPE mute CASCADE;
