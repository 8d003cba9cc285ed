-- The tables of shapes.sh, with up to :rows rows. Values are hashes of row numbers, so each run has the same.
CREATE FUNCTION gpuagg_shapes_mix(n int, seed int, below int) RETURNS int LANGUAGE sql IMMUTABLE PARALLEL SAFE AS
	'SELECT (hashint4extended(n, seed) & 1152921504606846975)::bigint % below';

-- k has 1,000 values in random order, h 100,000 values in random order, c ascends with the rows, s is text with few values, u is unique
-- text.
CREATE TABLE gpuagg_shapes (id int PRIMARY KEY, k int NOT NULL, h int NOT NULL, c int NOT NULL, n int, flag bool, region text,
	price numeric(10,2), v float8, ts timestamp, s text, u text);
INSERT INTO gpuagg_shapes
SELECT i, gpuagg_shapes_mix(i, 1, 1000), gpuagg_shapes_mix(i, 2, 100000), i / 400, gpuagg_shapes_mix(i, 3, 100),
	gpuagg_shapes_mix(i, 4, 2) = 0, (ARRAY['north-west', 'north-east', 'south-west', 'south-east', 'centre'])[1 + gpuagg_shapes_mix(i, 5, 5)],
	gpuagg_shapes_mix(i, 6, 1000000) / 100.0, gpuagg_shapes_mix(i, 7, 1000000) / 7.0,
	timestamp '2024-01-01' + gpuagg_shapes_mix(i, 8, 10000000) * interval '1 second',
	'customer ' || gpuagg_shapes_mix(i, 9, 5000), md5(i::text)
FROM generate_series(1, :rows) i;
CREATE INDEX ON gpuagg_shapes (k);
CREATE INDEX ON gpuagg_shapes (h);
CREATE INDEX ON gpuagg_shapes (c);

CREATE TABLE gpuagg_shapes_dim (k int PRIMARY KEY, grp int, name text, hub bool);
INSERT INTO gpuagg_shapes_dim SELECT i, i % 20, 'dimension ' || i, i % 5 = 0 FROM generate_series(0, 999) i;
CREATE TABLE gpuagg_shapes_customer (s text PRIMARY KEY, country int, class text);
INSERT INTO gpuagg_shapes_customer SELECT 'customer ' || i, i % 40, 'class ' || i % 7 FROM generate_series(0, 4999) i;
CREATE TABLE gpuagg_shapes_small (x int, g int, name text, price numeric(10,2));
INSERT INTO gpuagg_shapes_small SELECT i, i % 10, 'name ' || i % 30, i / 4.0 FROM generate_series(1, 200) i;

CREATE TABLE gpuagg_shapes_part (k int, n int, s text, price numeric(10,2)) PARTITION BY RANGE (k);
SELECT format('CREATE TABLE gpuagg_shapes_part_%s PARTITION OF gpuagg_shapes_part FOR VALUES FROM (%s) TO (%s)', p, p * 100, p * 100 + 100)
FROM generate_series(0, 9) p \gexec
INSERT INTO gpuagg_shapes_part SELECT k, n, s, price FROM gpuagg_shapes WHERE id <= :rows / 2;
CREATE INDEX ON gpuagg_shapes_part (k);
CREATE VIEW gpuagg_shapes_view AS
	SELECT f.*, d.grp, d.name FROM gpuagg_shapes f JOIN gpuagg_shapes_dim d USING (k) WHERE d.hub;

SELECT format('VACUUM (FREEZE, ANALYZE) %I', relname) FROM pg_class WHERE relname ~ '^gpuagg_shapes' AND relkind = 'r' \gexec
