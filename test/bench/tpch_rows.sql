-- Inserts orders :from to :to and their lines, which refer to :customers, :suppliers and :parts rows. Seven orders have 28 lines: from one line
-- to seven. Two thirds of the customers have orders. Prices, dates and flags depend on each other as in the specification, section 4.2.3.
CREATE TEMP TABLE line AS
SELECT orderno, linenumber, partkey, ((partkey + nth * (:suppliers / 4 + (partkey - 1) / :suppliers)) % :suppliers + 1)::int AS suppkey, quantity,
       quantity * (90000 + (partkey / 10) % 20001 + 100 * (partkey % 1000)) / 100.0 AS price, discount / 100.0 AS discount, tax / 100.0 AS tax,
       orderdate, shipdate, orderdate + 30 + commit AS commitdate, shipdate + 1 + receipt AS receiptdate, flag, instruct, mode, h2
FROM (SELECT orderno, linenumber, (1 + (h & 1073741823) % :parts)::int AS partkey, (h >> 30 & 3)::int AS nth, 1 + (h >> 32 & 65535)::int % 50 AS quantity,
             (h >> 48 & 16383)::int % 11 AS discount, (h2 & 65535)::int % 9 AS tax, (h2 >> 16 & 1)::int AS flag, orderdate,
             orderdate + 1 + (h2 >> 17 & 65535)::int % 121 AS shipdate, (h3 & 65535)::int % 61 AS commit, (h3 >> 16 & 65535)::int % 30 AS receipt,
             (h3 >> 32 & 3)::int AS instruct, (h3 >> 34 & 65535)::int % 7 AS mode, h2
      FROM (SELECT orderno, linenumber, date '1992-01-01' + (hashint8extended(orderno, 3) & 1048575)::int % 2406 AS orderdate,
                   hashint8extended(orderno * 8 + linenumber, 1) & 9223372036854775807 AS h,
                   hashint8extended(orderno * 8 + linenumber, 2) & 9223372036854775807 AS h2,
                   hashint8extended(orderno * 8 + linenumber, 4) & 9223372036854775807 AS h3
            FROM generate_series(:from::bigint, :to::bigint) orderno,
                 generate_series(1, ('{4,7,1,5,2,6,3}'::int[])[1 + orderno % 7]) linenumber OFFSET 0) s OFFSET 0) s;
INSERT INTO lineitem
SELECT orderno / 8 * 32 + orderno % 8, partkey, suppkey, linenumber, quantity, price, discount, tax,
       CASE WHEN receiptdate > date '1995-06-17' THEN 'N' WHEN flag = 0 THEN 'R' ELSE 'A' END,
       CASE WHEN shipdate > date '1995-06-17' THEN 'O' ELSE 'F' END, shipdate, commitdate, receiptdate,
       (ARRAY['DELIVER IN PERSON', 'COLLECT COD', 'NONE', 'TAKE BACK RETURN'])[1 + instruct],
       (ARRAY['REG AIR', 'AIR', 'RAIL', 'SHIP', 'TRUCK', 'MAIL', 'FOB'])[1 + mode],
       left(words[1 + (h2 >> 40 & 15)] || ' ' || words[1 + (h2 >> 44 & 15)] || ' ' || words[1 + (h2 >> 48 & 15)], 10 + (h2 >> 52 & 31)::int)
FROM line, (SELECT '{carefully,final,deposits,quickly,ironic,requests,slyly,pending,packages,furiously,bold,accounts,blithely,even,foxes,ideas}'::text[] AS words) w;
INSERT INTO orders
SELECT orderno / 8 * 32 + orderno % 8, customer / 2 * 3 + customer % 2 + 1, status, total, orderdate,
       (ARRAY['1-URGENT', '2-HIGH', '3-MEDIUM', '4-NOT SPECIFIED', '5-LOW'])[1 + (h >> 31 & 65535) % 5],
       'Clerk#' || lpad((1 + (h & 1048575) % greatest(:customers / 150, 1))::text, 9, '0'), 0,
       words[1 + (h & 7)] || ' ' || words[1 + (h >> 3 & 7)] || CASE WHEN (h >> 6 & 127) < 2 THEN ' special ' || words[1 + (h >> 13 & 7)] || ' requests ' ELSE ' ' END ||
       words[1 + (h >> 16 & 7)] || ' ' || words[1 + (h >> 19 & 7)]
FROM (SELECT orderno, orderdate, total, status, h, ((h >> 31 & 4294967295) % (:customers * 2 / 3))::int AS customer,
             '{carefully,final,deposits,quickly,ironic,slyly,pending,packages}'::text[] AS words
      FROM (SELECT orderno, orderdate, hashint8extended(orderno, 5) & 9223372036854775807 AS h, sum(round(price * (1 - discount) * (1 + tax), 2)) AS total,
                   CASE WHEN min(shipdate) > date '1995-06-17' THEN 'O' WHEN max(shipdate) <= date '1995-06-17' THEN 'F' ELSE 'P' END AS status
            FROM line GROUP BY orderno, orderdate OFFSET 0) s OFFSET 0) s ORDER BY orderno;
