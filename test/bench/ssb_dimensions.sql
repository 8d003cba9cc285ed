-- Fills the dimensions of the Star Schema Benchmark: :customers, :suppliers and :parts rows, and 2,556 days from 1992 to 1998. Values depend
-- only on hashes of the keys.
BEGIN;
TRUNCATE customer, supplier, part, dates;
CREATE TEMP TABLE nation ON COMMIT DROP AS
SELECT n - 1 AS number, (ARRAY['AFRICA', 'AMERICA', 'ASIA', 'EUROPE', 'MIDDLE EAST'])[1 + (n - 1) / 5] AS region, name
FROM unnest(ARRAY['ALGERIA', 'ETHIOPIA', 'KENYA', 'MOROCCO', 'MOZAMBIQUE', 'ARGENTINA', 'BRAZIL', 'CANADA', 'PERU', 'UNITED STATES',
        'CHINA', 'INDIA', 'INDONESIA', 'JAPAN', 'VIETNAM', 'FRANCE', 'GERMANY', 'ROMANIA', 'RUSSIA', 'UNITED KINGDOM',
        'EGYPT', 'IRAN', 'IRAQ', 'JORDAN', 'SAUDI ARABIA']) WITH ORDINALITY AS x(name, n);
INSERT INTO customer
SELECT i, 'Customer#' || lpad(i::text, 9, '0'), 'address ' || (h >> 24 & 16777215), rpad(left(name, 9), 9) || (h >> 16 & 255) % 10,
       name, region, 10 + number || '-' || 100 + (h >> 20 & 511) || '-' || 1000 + (h >> 30 & 4095),
       (ARRAY['AUTOMOBILE', 'BUILDING', 'FURNITURE', 'MACHINERY', 'HOUSEHOLD'])[1 + (h >> 44 & 1023) % 5]
FROM (SELECT i, hashint8extended(i, 11) & 9223372036854775807 AS h FROM generate_series(1, :customers) i OFFSET 0) s
     JOIN nation ON number = (h & 65535) % 25 ORDER BY i;
INSERT INTO supplier
SELECT i, 'Supplier#' || lpad(i::text, 9, '0'), 'address ' || (h >> 24 & 16777215), rpad(left(name, 9), 9) || (h >> 16 & 255) % 10,
       name, region, 10 + number || '-' || 100 + (h >> 20 & 511) || '-' || 1000 + (h >> 30 & 4095)
FROM (SELECT i, hashint8extended(i, 12) & 9223372036854775807 AS h FROM generate_series(1, :suppliers) i OFFSET 0) s
     JOIN nation ON number = (h & 65535) % 25 ORDER BY i;
INSERT INTO part
SELECT i, colors[1 + (h & 1023) % 20] || ' ' || colors[1 + (h >> 10 & 1023) % 20], left(category, 6), category,
       category || lpad((1 + brand % 40)::text, 2, '0'), colors[1 + (h & 1023) % 20],
       (ARRAY['STANDARD', 'SMALL', 'MEDIUM', 'LARGE', 'ECONOMY', 'PROMO'])[1 + kind / 25] || ' ' ||
       (ARRAY['ANODIZED', 'BURNISHED', 'PLATED', 'POLISHED', 'BRUSHED'])[1 + kind / 5 % 5] || ' ' ||
       (ARRAY['TIN', 'NICKEL', 'BRASS', 'STEEL', 'COPPER'])[1 + kind % 5], 1 + size,
       (ARRAY['SM', 'LG', 'MED', 'JUMBO', 'WRAP'])[1 + container / 8] || ' ' ||
       (ARRAY['CASE', 'BOX', 'BAG', 'JAR', 'PKG', 'PACK', 'CAN', 'DRUM'])[1 + container % 8]
FROM (SELECT i, h, brand, kind, size, container, 'MFGR#' || 1 + brand / 200 || 1 + brand / 40 % 5 AS category,
             '{almond,azure,beige,black,blue,brown,coral,cream,cyan,forest,green,ivory,khaki,lime,navy,olive,pink,plum,red,white}'::text[] AS colors
      FROM (SELECT i, h, (h >> 20 & 1048575) % 1000 AS brand, (h >> 40 & 1048575) % 150 AS kind, (h2 & 65535) % 50 AS size,
                   (h2 >> 16 & 65535) % 40 AS container
            FROM (SELECT i, hashint8extended(i, 13) & 9223372036854775807 AS h, hashint8extended(i, 14) & 9223372036854775807 AS h2
                  FROM generate_series(1, :parts) i OFFSET 0) s OFFSET 0) s OFFSET 0) s;
INSERT INTO dates
SELECT to_char(d, 'YYYYMMDD')::int, to_char(d, 'FMMonth FMDD YYYY'), to_char(d, 'FMDay'), to_char(d, 'FMMonth'), to_char(d, 'YYYY')::int,
       to_char(d, 'YYYYMM')::int, to_char(d, 'MonYYYY'), to_char(d, 'D')::int, to_char(d, 'DD')::int, to_char(d, 'DDD')::int,
       to_char(d, 'MM')::int, (to_char(d, 'DDD')::int - 1) / 7 + 1,
       (ARRAY['Winter', 'Winter', 'Spring', 'Spring', 'Summer', 'Summer', 'Summer', 'Summer', 'Fall', 'Fall', 'Christmas', 'Christmas'])
           [to_char(d, 'MM')::int],
       (extract(dow FROM d) = 6)::int, (extract(day FROM d + 1) = 1)::int, (to_char(d, 'MMDD') IN ('0101', '0704', '1225'))::int,
       (extract(dow FROM d) BETWEEN 1 AND 5)::int
FROM (SELECT date '1992-01-01' + i AS d FROM generate_series(0, 2555) i) s;
COMMIT;
VACUUM (FREEZE, ANALYZE) customer, supplier, part, dates;
