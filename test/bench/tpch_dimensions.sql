-- Fills the tables of TPC-H but orders and lineitem: :customers, :suppliers and :parts rows. Values depend only on hashes of the keys, and
-- have the distributions of the specification, section 4.2.3, as far as the queries depend on them. Texts are words in random order.
CREATE FUNCTION pg_temp.words(h bigint, n int) RETURNS text LANGUAGE sql IMMUTABLE AS $$
SELECT string_agg(('{accounts,above,blithely,bold,carefully,courts,deposits,dolphins,even,express,final,foxes,furiously,ideas,instructions,ironic,'
    'packages,pending,pinto,platelets,quickly,quietly,regular,requests,silent,slyly,special,theodolites,unusual,use,wake,warthogs}'::text[])
    [1 + (h >> 5 * (i % 12) & 31)], ' ' ORDER BY i) FROM generate_series(1, n) i $$;
INSERT INTO region
SELECT n - 1, name, pg_temp.words(hashint8extended(n, 31), 8)
FROM unnest(ARRAY['AFRICA', 'AMERICA', 'ASIA', 'EUROPE', 'MIDDLE EAST']) WITH ORDINALITY x(name, n);
INSERT INTO nation
SELECT n - 1, name, region, pg_temp.words(hashint8extended(n, 32), 8)
FROM unnest(ARRAY['ALGERIA', 'ARGENTINA', 'BRAZIL', 'CANADA', 'EGYPT', 'ETHIOPIA', 'FRANCE', 'GERMANY', 'INDIA', 'INDONESIA', 'IRAN', 'IRAQ',
        'JAPAN', 'JORDAN', 'KENYA', 'MOROCCO', 'MOZAMBIQUE', 'PERU', 'CHINA', 'ROMANIA', 'SAUDI ARABIA', 'VIETNAM', 'RUSSIA',
        'UNITED KINGDOM', 'UNITED STATES'], ARRAY[0, 1, 1, 1, 4, 0, 3, 3, 2, 2, 4, 4, 2, 4, 0, 0, 0, 1, 2, 3, 4, 2, 3, 3, 1])
     WITH ORDINALITY x(name, region, n);
INSERT INTO supplier
SELECT i, 'Supplier#' || lpad(i::text, 9, '0'), 'address ' || (h >> 24 & 16777215), nation,
       10 + nation || '-' || 100 + (h >> 16 & 511) || '-' || 100 + (h >> 26 & 511) || '-' || 1000 + (h >> 36 & 4095),
       ((h2 & 16777215) % 1099999 - 99999) / 100.0,
       CASE i % 2000 WHEN 7 THEN 'Customer ' || pg_temp.words(h2, 2) || ' Complaints' WHEN 1007 THEN 'Customer ' || pg_temp.words(h2, 2) || ' Recommends'
           ELSE pg_temp.words(h2, 8) END
FROM (SELECT i, h, h2, (h & 65535)::int % 25 AS nation
      FROM (SELECT i, hashint8extended(i, 21) & 9223372036854775807 AS h, hashint8extended(i, 22) & 9223372036854775807 AS h2
            FROM generate_series(1, :suppliers) i OFFSET 0) s OFFSET 0) s;
INSERT INTO part
SELECT i, names[1 + (h & 1023) % 92] || ' ' || names[1 + (h >> 10 & 1023) % 92] || ' ' || names[1 + (h >> 20 & 1023) % 92] || ' ' ||
           names[1 + (h >> 30 & 1023) % 92] || ' ' || names[1 + (h >> 40 & 1023) % 92],
       'Manufacturer#' || 1 + brand / 5, 'Brand#' || 1 + brand / 5 || 1 + brand % 5,
       (ARRAY['STANDARD', 'SMALL', 'MEDIUM', 'LARGE', 'ECONOMY', 'PROMO'])[1 + kind / 25] || ' ' ||
       (ARRAY['ANODIZED', 'BURNISHED', 'PLATED', 'POLISHED', 'BRUSHED'])[1 + kind / 5 % 5] || ' ' ||
       (ARRAY['TIN', 'NICKEL', 'BRASS', 'STEEL', 'COPPER'])[1 + kind % 5], 1 + (h2 >> 20 & 65535) % 50,
       (ARRAY['SM', 'LG', 'MED', 'JUMBO', 'WRAP'])[1 + container / 8] || ' ' ||
       (ARRAY['CASE', 'BOX', 'BAG', 'JAR', 'PKG', 'PACK', 'CAN', 'DRUM'])[1 + container % 8],
       (90000 + (i / 10) % 20001 + 100 * (i % 1000)) / 100.0, left(pg_temp.words(h2, 3), 23)
FROM (SELECT i, h, h2, (h2 & 1023)::int % 25 AS brand, (h2 >> 10 & 1023)::int % 150 AS kind, (h2 >> 36 & 65535)::int % 40 AS container,
             '{almond,antique,aquamarine,azure,beige,bisque,black,blanched,blue,blush,brown,burlywood,burnished,chartreuse,chiffon,chocolate,'
             'coral,cornflower,cornsilk,cream,cyan,dark,deep,dim,dodger,drab,firebrick,floral,forest,frosted,gainsboro,ghost,goldenrod,green,'
             'grey,honeydew,hot,indian,ivory,khaki,lace,lavender,lawn,lemon,light,lime,linen,magenta,maroon,medium,metallic,midnight,mint,'
             'misty,moccasin,navajo,navy,olive,orange,orchid,pale,papaya,peach,peru,pink,plum,powder,puff,purple,red,rose,rosy,royal,saddle,'
             'salmon,sandy,seashell,sienna,sky,slate,smoke,snow,spring,steel,tan,thistle,tomato,turquoise,violet,wheat,white,yellow}'::text[] AS names
      FROM (SELECT i, hashint8extended(i, 23) & 9223372036854775807 AS h, hashint8extended(i, 24) & 9223372036854775807 AS h2
            FROM generate_series(1, :parts) i OFFSET 0) s OFFSET 0) s;
-- four suppliers of each part
INSERT INTO partsupp
SELECT i, (i + n * (:suppliers / 4 + (i - 1) / :suppliers)) % :suppliers + 1, 1 + (h & 65535) % 9999, (100 + (h >> 16 & 1048575) % 99901) / 100.0,
       pg_temp.words(h, 12)
FROM (SELECT i, n, hashint8extended(i * 4 + n, 25) & 9223372036854775807 AS h FROM generate_series(1, :parts) i, generate_series(0, 3) n OFFSET 0) s;
INSERT INTO customer
SELECT i, 'Customer#' || lpad(i::text, 9, '0'), 'address ' || (h >> 24 & 16777215), nation,
       10 + nation || '-' || 100 + (h >> 16 & 511) || '-' || 100 + (h >> 26 & 511) || '-' || 1000 + (h >> 36 & 4095),
       ((h2 & 16777215) % 1099999 - 99999) / 100.0,
       (ARRAY['AUTOMOBILE', 'BUILDING', 'FURNITURE', 'MACHINERY', 'HOUSEHOLD'])[1 + (h2 >> 24 & 65535) % 5], pg_temp.words(h2, 9)
FROM (SELECT i, h, h2, (h & 65535)::int % 25 AS nation
      FROM (SELECT i, hashint8extended(i, 26) & 9223372036854775807 AS h, hashint8extended(i, 27) & 9223372036854775807 AS h2
            FROM generate_series(1, :customers) i OFFSET 0) s OFFSET 0) s;
