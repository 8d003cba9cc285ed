-- LIKE and lengths, as vector operations: answers are core's
SET gpuagg.replace_builtin = on;
SET max_parallel_workers_per_gather = 0;
SET client_min_messages = warning;
CREATE TABLE texts (id int, t text COLLATE "C", v varchar, b bpchar(12), x bytea);
-- texts of 0 to 60 letters of a small alphabet, with characters of two to four bytes, %, _ and \ among them
INSERT INTO texts
SELECT i, s, s, left(s, 12)::bpchar(12), convert_to(s, 'UTF8')
FROM generate_series(1, 3000) i, LATERAL (
	SELECT string_agg((ARRAY['a', 'b', 'ab', 'a', 'aa', ' ', '%', '_', '\', 'ä', '€', '😀', 'B'])[1 + abs(hashint8(i * 1000 + j)) % 13], '' ORDER BY j) AS s
	FROM generate_series(1, i % 61) j) l;
INSERT INTO texts VALUES (0, NULL, NULL, NULL, NULL), (0, '', '', '', ''), (0, 'ab', 'ab', 'ab', 'ab'),
	-- compressed, and out of line
	(1, repeat('ab', 5000), repeat('ä', 5000), 'ab', decode(repeat('00', 9000), 'hex')),
	(2, (SELECT string_agg(md5(i::text), 'ä' ORDER BY i) FROM generate_series(1, 3000) i), NULL, NULL, NULL);
VACUUM ANALYZE texts;
CREATE FUNCTION compare_texts() RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
	pattern text;
	expression text;
	ours text;
	theirs text;
BEGIN
	FOREACH pattern IN ARRAY ARRAY['', '%', '%%', 'a', 'a%', '%a', '%a%', '%ab%', 'a%b', '%a%b', 'a%b%', '%ab%ab%', '%aab%', 'ab%ba', '%ä%', '%€ä%', 'ä%€', '%😀',
		'%\%%', '\%%', '%\\%', '%\_%', 'a\b%', '%a_b%', '_', '__%', '%_', '%a%b%a%b%', '%aaaaaaaaaaaa%', '%' || repeat('ab', 20) || '%', 'ab%ab', '% ', '% %',
		repeat('ab', 5000), repeat('ba', 5000)] LOOP
		FOREACH expression IN ARRAY ARRAY['t LIKE %L', 't NOT LIKE %L', 'v LIKE %L', 'b LIKE %L', 'b NOT LIKE %L', 't = %L', 't <> %L', 'v <> %L', 'b = %L', 'b = %L::text', 'b <> %L::text',
			'CASE WHEN id %% 3 > 0 THEN t LIKE %L ELSE v NOT LIKE ''%%b%%'' END', 'id %% 7 = 1 AND t LIKE %L'] LOOP
			expression := format(expression, pattern);
			PERFORM set_config('gpuagg.require', 'require', true);
			EXECUTE format('SELECT concat_ws(''|'', count(*), sum(id), count(*) FILTER (WHERE %s)) FROM texts WHERE %1$s', expression) INTO ours;
			PERFORM set_config('gpuagg.require', 'allow', true);
			SET LOCAL gpuagg.enabled = off;
			EXECUTE format('SELECT concat_ws(''|'', count(*), sum(id), count(*) FILTER (WHERE %s)) FROM texts WHERE %1$s', expression) INTO theirs;
			SET LOCAL gpuagg.enabled = on;
			IF ours IS DISTINCT FROM theirs THEN
				RETURN NEXT format('%s: %s, core %s', expression, ours, theirs);
			END IF;
		END LOOP;
	END LOOP;
END $$;
SELECT * FROM compare_texts();
SET gpuagg.cache = eager;
SELECT * FROM compare_texts();
SET gpuagg.cache = off;
-- lengths
CREATE VIEW lengths AS SELECT sum(length(t)) + 1 AS a, sum(char_length(v)) AS b, sum(length(b)) AS c, sum(octet_length(t)) AS d, sum(octet_length(b)) AS e,
	sum(length(x)) AS f, sum(octet_length(x)) AS g, max(character_length(t || v)) AS h, sum(char_length(b)) AS i, count(length(t)) AS j, min(textlen(t)) AS k FROM texts;
SET gpuagg.require = 'require';
SELECT * FROM lengths \gset our_
SELECT id % 3 = 0 AS third, sum(length(t)), sum(CASE WHEN t LIKE '%b%' THEN length(t) END) AS with_b, count(*) FILTER (WHERE t <> '') FROM texts GROUP BY 1 ORDER BY 1;
-- an escape character at the end
SELECT count(*) FROM texts WHERE t LIKE '%ab\';
SET gpuagg.require = 'allow';
SET gpuagg.enabled = off;
SELECT (a, b, c, d, e, f, g, h, i, j, k) = (:our_a, :our_b, :our_c, :our_d, :our_e, :our_f, :our_g, :our_h, :our_i, :our_j, :our_k) AS equal FROM lengths;
SELECT id % 3 = 0 AS third, sum(length(t)), sum(CASE WHEN t LIKE '%b%' THEN length(t) END) AS with_b, count(*) FILTER (WHERE t <> '') FROM texts GROUP BY 1 ORDER BY 1;
SELECT count(*) FROM texts WHERE t LIKE '%ab\';
RESET gpuagg.enabled;
DROP VIEW lengths;
DROP TABLE texts;
DROP FUNCTION compare_texts;
-- blanks of char(n) are '' as text: from the dictionary of cached columns
CREATE TABLE padded AS SELECT (ARRAY[NULL, '', 'x', 'yy'])[1 + i % 4]::char(3) AS c FROM generate_series(1, 4000) i;
VACUUM padded;
SET gpuagg.cache = eager;
SET gpuagg.require = 'require';
SELECT gpu_count(*) FROM padded WHERE c = ''::text;
SELECT gpu_count(*) FROM padded WHERE c = ''::text;
SELECT gpu_count(*) FROM padded WHERE c <> ''::text;
RESET gpuagg.require;
RESET gpuagg.cache;
DROP TABLE padded;
-- a search at each place of texts of all lengths: bytes are compared 16 places at a time
CREATE TABLE places AS SELECT a, b, repeat('n', a) || w || repeat('e', b) AS t FROM generate_series(0, 50) a, generate_series(0, 50) b, unnest('{needle,neede,n,e,needlneedle}'::text[]) w;
SET gpuagg.require = 'require';
SELECT gpu_count(*) FILTER (WHERE t LIKE '%needle%') = 2 * 51 * 51 AS found, gpu_count(*) FILTER (WHERE t LIKE '%n%') AS n, gpu_count(*) FILTER (WHERE t LIKE '%ed%ee%') AS two, gpu_count(*) FILTER (WHERE t NOT LIKE '%dle%') AS without FROM places;
SET gpuagg.require = 'allow';
SET gpuagg.enabled = off;
SELECT count(*) FILTER (WHERE t LIKE '%needle%') = 2 * 51 * 51 AS found, count(*) FILTER (WHERE t LIKE '%n%') AS n, count(*) FILTER (WHERE t LIKE '%ed%ee%') AS two, count(*) FILTER (WHERE t NOT LIKE '%dle%') AS without FROM places;
RESET gpuagg.enabled;
DROP TABLE places;
