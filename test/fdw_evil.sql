-- Tests on the coordinator of test/fdw.sh: a server sends arbitrary bytes as states.
CREATE TABLE outcomes (call text, answer text);
DO $$
DECLARE
	item record;
	answer text;
BEGIN
	PERFORM setseed(0.5);
	FOR item IN
		SELECT call, bytes FROM unnest(ARRAY['gpu_avg(num)', 'gpu_sum(i8)', 'gpu_stddev(i4)', 'gpu_variance(num)', 'gpu_approx_percentile(f8, 0.5)',
				'gpu_histogram(f8, 0, 1, 5)', 'gpu_argmax(txt, i4)', 'gpu_argmax_n(txt, i4, 3)', 'gpu_top_k(txt, 3)', 'gpu_avg(i4 * interval ''1 s'')']) call,
			LATERAL (
				-- bytes of one pattern with several lengths
				SELECT decode(repeat(unit, length), 'hex') AS bytes FROM unnest(ARRAY['00', 'ff', '01', '00000001', '7fffffff', '80000000', '0000000000000001'])
					unit, unnest(ARRAY[0, 1, 2, 3, 5, 8, 9, 12, 20, 40, 100, 5000]) length
				UNION ALL
				-- a count and a numeric of one digit, with several weights, signs and scales, and several continuations
				SELECT decode('0000000000000005' || digits || weight || sign || scale || digit || rest, 'hex')
				FROM unnest(ARRAY['00000000', '00000001', '00000002', 'ffffffff']) digits,
					unnest(ARRAY['00000000', '7fffffff', '80000000', '00010000', 'ffff0000']) weight, unnest(ARRAY['00000000', '00004000', '0000c000']) sign,
					unnest(ARRAY['00000000', 'ffffffff']) scale, unnest(ARRAY['0001', '7fff', 'ffff']) digit,
					unnest(ARRAY['', repeat('00', 36), '00000001000000000000000000000000' || '0001', '0000000180000000000000000000000000017fffffff' || repeat('00', 32)]) rest
				WHERE random() < 0.03
			) b
	LOOP
		UPDATE sent SET bytes = item.bytes;
		BEGIN
			EXECUTE format('SELECT string_agg(a::text, '','') FROM (SELECT k, %s AS a FROM bad GROUP BY k) s', item.call) INTO answer;
			INSERT INTO outcomes VALUES (item.call, NULL);
		EXCEPTION WHEN OTHERS THEN
			INSERT INTO outcomes VALUES (item.call, sqlstate || ' ' || sqlerrm);
		END;
	END LOOP;
END $$;
-- internal errors show that a check is missing
SELECT CASE WHEN count(*) > 500 AND count(*) FILTER (WHERE answer ~ '^XX000') = 0 AND count(answer) > count(*) / 2 THEN 'ok' ELSE 'not ok' END ||
	format(' %s invalid states, %s errors', count(*), count(answer)) FROM outcomes;
SELECT DISTINCT '# ' || call || ': ' || answer FROM outcomes WHERE answer ~ '^XX000' LIMIT 5;
-- a state with other types than the query's: gpu_argmax of integers instead of text
UPDATE sent SET bytes = '\x0000001700000017000000000001000000000400000001000000000400000007';
TRUNCATE outcomes;
DO $$
BEGIN
	PERFORM gpu_argmax(txt, i4) FROM bad GROUP BY k;
EXCEPTION WHEN OTHERS THEN
	INSERT INTO outcomes VALUES ('gpu_argmax(txt, i4)', sqlerrm);
END $$;
SELECT CASE WHEN count(*) = 1 THEN 'ok' ELSE 'not ok' END || ' state of another type' FROM outcomes
	WHERE answer = 'invalid type in a partial state';
-- states of intervals of other releases: finite ones, an infinite one, which releases before 17 do not have, and a sum that is a finite
-- interval in one release and an infinite one in another
TRUNCATE outcomes;
DO $$
DECLARE
	item record;
	answer text;
BEGIN
	FOR item IN SELECT * FROM (VALUES ('finite', '\x01000000000000000300000000000000070000000600000003' || repeat('00', 16)),
			('infinite', '\x01000000000000000300000000000000070000000600000003' || '0000000000000001' || repeat('00', 8)),
			('edge', '\x010000000000000003' || '7fffffffffffffff7fffffff7fffffff' || repeat('00', 16)),
			('older', '\x000000000000000300000000000000070000000600000003'),
			('negative', '\x01ffffffffffffffff00000000000000070000000600000003' || repeat('00', 16))) v(call, bytes) LOOP
		UPDATE sent SET bytes = item.bytes::bytea;
		BEGIN
			SELECT min(s::text) INTO answer FROM (SELECT gpu_sum(i4 * interval '1 s') AS s FROM bad WHERE k = 1 GROUP BY k) q;
		EXCEPTION WHEN OTHERS THEN
			answer := sqlerrm;
		END;
		INSERT INTO outcomes VALUES (item.call, answer);
	END LOOP;
END $$;
SELECT CASE WHEN answer = wanted THEN 'ok' ELSE 'not ok' END || format(' state of intervals, %s: %s', call, answer)
FROM outcomes JOIN (SELECT current_setting('server_version_num')::int >= 170000) v(newer) ON true
	JOIN LATERAL (VALUES ('finite', '3 mons 6 days 00:00:00.000007'),
		('infinite', CASE WHEN newer THEN 'infinity' ELSE 'partial state contains infinite intervals' END),
		('edge', CASE WHEN newer THEN 'interval out of range' ELSE '178956970 years 7 mons 2147483647 days 2562047788:00:54.775807' END),
		('older', 'unknown format of a partial state'), ('negative', 'invalid count in a partial state')) w(call, wanted) USING (call);
