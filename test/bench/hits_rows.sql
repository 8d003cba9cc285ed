-- Inserts rows :from to :to of a table of :rows hits. All columns are computed from hashes of the row number, so the rows are always the
-- same. Numbers of distinct values are those of ClickBench's table, in proportion to the number of rows where they grow with it.
--
-- A row has a user, a page, a referer and a search phrase, each drawn by number: floor(u * u * pool), where u is uniform in [0, 1), so small
-- numbers are frequent. The user determines region, browser, screen and phone. The page determines counter, URL and title, and three pages
-- share a title. Pages of counter 62 have numbers from a billion on. It has 12 % of the rows (0.7 % in ClickBench's table), so that the
-- queries over it have work to do, and most of its URLs are rare.
INSERT INTO gpuagg_bench_hits
SELECT (h5 & 4611686018427387903) | 4611686018427387904,                                            -- watchid
    CASE WHEN uh >> 30 & 15 < 11 THEN 1 ELSE 0 END,                                                 -- javaenable
    title,
    1,                                                                                              -- goodevent
    t, t::date,                                                                                     -- eventtime, eventdate
    counter,
    greatest((hashint8extended(ip_number, 9) & 4294967295) - 2147483648, -2147483000)::int,         -- clientip
    region,
    CASE user_number WHEN 40 THEN 435090932899640449 ELSE hashint8extended(user_number, 11) & 9223372036854775807 END,  -- userid
    (page & 1) - (page >> 5 & 1),                                                                   -- counterclass
    floor(power((uh >> 8 & 65535) / 65536.0::float8, 4) * 88),                                      -- os
    browser,                                                                                        -- useragent
    url, referer,
    CASE WHEN h5 & 127 < 15 THEN 1 ELSE 0 END,                                                      -- isrefresh
    CASE WHEN rh >> 20 & 3 = 0 THEN rh >> 24 & 63 ELSE 0 END,                                       -- referercategoryid
    CASE WHEN rh >> 20 & 3 = 0 THEN rh >> 30 & 1023 ELSE 0 END,                                     -- refererregionid
    CASE WHEN ph >> 20 & 1 = 0 THEN ph >> 24 & 63 ELSE 0 END,                                       -- urlcategoryid
    CASE WHEN ph >> 20 & 1 = 0 THEN ph >> 30 & 1023 ELSE 0 END,                                     -- urlregionid
    widths[screen], heights[screen], CASE WHEN uh >> 36 & 15 = 0 THEN 16 ELSE 24 + (uh >> 36 & 1) * 8 END,  -- resolution
    CASE WHEN phone = 0 THEN 11 - (uh >> 40 & 3) ELSE 0 END,                                        -- flashmajor
    uh >> 42 & 7, flash[1 + (uh >> 44 & 7)],                                                        -- flashminor, flashminor2
    uh >> 47 & 3, uh >> 49 & 3,                                                                     -- netmajor, netminor
    1 + (uh >> 51 & 31), minors[1 + (uh >> 44 & 7)],                                                -- useragentmajor, useragentminor
    CASE WHEN uh >> 33 & 255 = 0 THEN 0 ELSE 1 END, CASE WHEN uh >> 34 & 63 = 0 THEN 0 ELSE 1 END,  -- cookieenable, javascriptenable
    CASE WHEN phone > 0 THEN 1 ELSE 0 END, (phone + 1) / 2,                                         -- ismobile, mobilephone
    CASE WHEN phone = 0 THEN '' ELSE brands[1 + phone % 8] || ' ' || phone * 37 END,                -- mobilephonemodel
    CASE WHEN h5 >> 40 & 31 = 0 THEN 'item=' || page || '&from=' || words[1 + (h5 >> 45 & 31)] ELSE '' END,  -- params
    hashint8extended(ip_number / 300, 12) & 4194303,                                                -- ipnetworkid
    CASE WHEN phrase_number >= 0 THEN 2 WHEN referer_number < 0 THEN 0
        ELSE (ARRAY[-1, -1, -1, 1, 1, 1, 3, 6])[1 + (h5 >> 8 & 7)] END,                             -- traficsourceid
    CASE WHEN phrase_number < 0 THEN 0 ELSE 1 + floor(power((h5 >> 11 & 1023) / 1024.0::float8, 5) * 95) END,  -- searchengineid
    phrase,
    CASE WHEN h5 >> 20 & 1023 < 7 THEN 1 + (h5 >> 31 & 63) % 18 ELSE 0 END,                         -- advengineid
    CASE WHEN h5 >> 21 & 255 = 0 THEN 1 ELSE 0 END,                                                 -- isartifical
    greatest(widths[screen] - (h5 >> 22 & 255), 0), greatest(heights[screen] - 80 - (h5 >> 30 & 127), 0),  -- windowclient…
    (uh >> 38 & 7) + 2, t + ((h5 >> 37 & 63) - 20) * interval '1 s',                                -- clienttimezone, clienteventtime
    CASE WHEN uh >> 41 & 7 < 3 THEN 5 ELSE 0 END, CASE WHEN uh >> 41 & 7 < 3 THEN 1 ELSE 0 END,     -- silverlightversion1, 2
    CASE WHEN uh >> 41 & 7 < 3 THEN 10411 + (uh >> 44 & 3) * 3000 ELSE 0 END, 0,                    -- silverlightversion3, 4
    CASE counter & 3 WHEN 0 THEN 'utf-8' WHEN 1 THEN '' ELSE 'windows-1251' END,                    -- pagecharset
    1200 + (counter & 255),                                                                         -- codeversion
    CASE WHEN h5 >> 43 & 15 = 0 THEN 1 ELSE 0 END, CASE WHEN h5 >> 47 & 127 = 0 THEN 1 ELSE 0 END,  -- islink, isdownload
    CASE WHEN h5 >> 50 & 7 = 0 THEN 1 ELSE 0 END,                                                   -- isnotbounce
    CASE WHEN uh & 3 = 0 THEN 0 ELSE uh & 9223372036854775807 END,                                  -- funiqid
    CASE WHEN h5 >> 53 & 15 = 0 THEN url ELSE '' END,                                               -- originalurl
    h4 & 1073741823, 0, CASE WHEN h5 >> 44 & 15 = 0 THEN 1 ELSE 0 END,                              -- hid, isoldcounter, isevent
    CASE WHEN h5 >> 40 & 31 = 0 THEN 1 ELSE 0 END,                                                  -- isparameter
    CASE WHEN h5 >> 57 & 7 = 0 THEN 1 ELSE 0 END, CASE WHEN ph >> 40 & 15 = 0 THEN 1 ELSE 0 END,    -- dontcounthits, withhash
    chr(65 + (h5 >> 16 & 15)::int), t + (region % 10) * interval '1 h',                             -- hitcolor, localeventtime
    CASE WHEN uh & 1 = 0 THEN 0 ELSE 16 + (uh >> 4 & 3) * 10 END, uh >> 6 & 1 | (uh >> 5 & 1),      -- age, sex
    uh >> 10 & 3, uh >> 12 & 16383, uh >> 26 & 31,                                                  -- income, interests, robotness
    (hashint8extended(ip_number, 13) & 4294967295) - 2147483648,                                    -- remoteip
    h2 >> 20 & 1073741823, h3 >> 20 & 1073741823, h3 >> 50 & 15,                                    -- windowname, openername, historylength
    languages[1 + region % 7], countries[1 + region % 7],                                           -- browserlanguage, browsercountry
    '', '', 0,                                                                                      -- socialnetwork, socialaction, httperror
    h2 >> 24 & 1023, h2 >> 34 & 127, h2 >> 41 & 255, h3 >> 24 & 2047, h3 >> 35 & 8191, h3 >> 48 & 255,      -- timings
    0, '',                                                                                          -- socialsourcenetworkid, socialsourcepage
    CASE WHEN h5 >> 33 & 1023 = 0 THEN (h4 >> 20 & 65535) * 100 ELSE 0 END,                         -- paramprice
    '', CASE WHEN h5 >> 33 & 1023 = 0 THEN 'RUR' ELSE '' END, 0,                                    -- paramorderid, paramcurrency, …id
    '', '', '', '',                                                                                 -- openstat…
    utm, CASE WHEN utm = '' THEN '' ELSE 'cpc' END, CASE WHEN utm = '' THEN '' ELSE 'campaign' || (rh >> 50 & 255) END, '', '',
    CASE WHEN rh >> 44 & 63 = 0 THEN 'tag' || (rh >> 50 & 63) ELSE '' END,                          -- fromtag
    CASE WHEN rh >> 41 & 255 = 0 THEN 1 ELSE 0 END,                                                 -- hasgclid
    CASE referer_number WHEN 0 THEN 3594120000172545465 ELSE rh END,                                -- refererhash
    CASE page WHEN 1000000000 THEN 2868770270353813622 ELSE ph END,                                 -- urlhash
    CASE WHEN h5 >> 36 & 255 = 0 THEN h4 >> 30 & 1023 ELSE 0 END                                    -- clid
FROM (
    -- the texts
    SELECT *,
        CASE WHEN th >> 40 & 127 < 18 THEN '' ELSE CASE WHEN th >> 47 & 2047 = 0 THEN 'Google ' ELSE '' END
            || words[1 + (th & 31)] || ' ' || words[1 + (th >> 5 & 31)] || ' ' || words[1 + (th >> 10 & 31)] || ', '
            || words[1 + (th >> 15 & 31)] || ' ' || words[1 + (th >> 20 & 31)] || ' ' || words[1 + (th >> 25 & 31)] || ' - '
            || sites[1 + (counter & 15)] || counter END AS title,
        CASE WHEN ph >> 10 & 1023 = 0 THEN '' WHEN ph >> 40 & 8191 = 1 THEN 'http://www.google.example/search?hl=ru&q=' || page
            ELSE CASE WHEN ph >> 54 & 31 = 0 THEN 'https://' ELSE 'http://' END
            || sites[1 + (counter & 15)] || counter || '.example/' || sections[1 + (ph & 15)] || '/'
            || CASE WHEN ph >> 4 & 1 = 0 THEN 'catalog/' || sections[1 + (ph >> 6 & 15)] || '/' ELSE '' END || page
            || CASE ph >> 20 & 7 WHEN 0 THEN '.html' WHEN 1 THEN '.html?page=' || (ph >> 32 & 15) || '&sort=price'
                WHEN 2 THEN '/?search=' || words[1 + (ph >> 24 & 31)] WHEN 3 THEN '/'
                ELSE '?category=' || (ph >> 25 & 1023) || '&session=' || to_hex(ph) END
            || CASE WHEN ph >> 40 & 8191 = 2 THEN '&from=google' ELSE '' END END AS url,
        CASE WHEN referer_number < 0 THEN '' WHEN rh >> 60 & 3 = 0 THEN 'http://search.example/find?text='
                || words[1 + (rh & 31)] || '+' || words[1 + (rh >> 5 & 31)] || '&lr=' || referer_number
            ELSE CASE WHEN rh >> 16 & 15 = 0 THEN 'https://' ELSE 'http://' END || CASE WHEN rh >> 17 & 1 = 0 THEN 'www.' ELSE '' END
            || sites[1 + (referer_host & 15)] || referer_host || '.example'
            || CASE WHEN rh >> 18 & 63 = 0 THEN '' ELSE '/' || sections[1 + (rh >> 34 & 15)] || '/' END
            || referer_number || CASE WHEN rh >> 40 & 1 = 0 THEN '?ref=' || to_hex(rh) ELSE '' END END AS referer,
        CASE WHEN phrase_number < 0 THEN '' ELSE words[1 + (phrase_number & 31)]
            || CASE WHEN phrase_number >= 32 THEN ' ' || words[1 + (phrase_number >> 5 & 31)] ELSE '' END
            || CASE WHEN phrase_number >= 1024 THEN ' ' || words[1 + (phrase_number >> 10 & 31)] ELSE '' END
            || CASE WHEN phrase_number >= 32768 THEN ' ' || words[1 + (phrase_number >> 15 & 31)] ELSE '' END
            || CASE WHEN phrase_number >= 1048576 THEN ' ' || words[1 + (phrase_number >> 20 & 31)] ELSE '' END END AS phrase,
        CASE WHEN rh >> 44 & 31 = 0 THEN sites[1 + (rh >> 34 & 15)] ELSE '' END AS utm,
        1 + floor(power((uh >> 20 & 65535) / 65536.0::float8, 2) * 18)::int AS screen
    FROM (
        -- what the user, the page and the referer determine
        SELECT *,
            CASE WHEN page >= 1000000000 THEN 62
                ELSE 100 + floor(power((ph & 4294967295) / 4294967296.0::float8, 3) * 6505)::int * 7919 % 1000003 END AS counter,
            hashint8extended(page / 3, 10) AS th,
            1 + floor(power((uh & 4294967295) / 4294967296.0::float8, 3) * 9040)::int AS region,
            floor(power((uh >> 22 & 65535) / 65536.0::float8, 3) * 83)::int AS browser,
            floor(power((rh & 4294967295) / 4294967296.0::float8, 3) * 20000)::int AS referer_host,
            CASE WHEN uh >> 32 & 1023 < 56 THEN 1 + floor(power((uh >> 44 & 65535) / 65536.0::float8, 2) * 165)::int
                ELSE 0 END AS phone,
            floor(power((hashint8extended(user_number * 2 + ip_other, 14) & 4294967295) / 4294967296.0::float8, 2)
                * :rows * 0.125)::bigint AS ip_number
        FROM (
            SELECT *, hashint8extended(user_number, 6) AS uh, hashint8extended(page, 7) AS ph, hashint8extended(referer_number, 8) AS rh
            FROM (
                -- numbers of the user, the page, the referer and the phrase
                SELECT h2, h3, h4, h5,
                    timestamp '2013-07-01' + floor(i * (31 * 86400 - 7200.0::float8) / :rows + (h4 >> 32 & 4095)) * interval '1 s' AS t,
                    floor(power((h1 & 4294967295) / 4294967296.0::float8, 2) * :rows * 0.181)::bigint AS user_number,
                    CASE WHEN h1 >> 32 & 65535 >= 7864
                            THEN floor(power((h2 & 4294967295) / 4294967296.0::float8, 2) * :rows * 0.111)::bigint
                        WHEN h1 >> 48 & 31 = 0 THEN 1000000000
                        ELSE 1000000000 + floor(power((h2 & 4294967295) / 4294967296.0::float8, 2) * :rows * 0.145)::bigint END AS page,
                    CASE WHEN h2 >> 32 & 1023 < 195 THEN -1
                        WHEN h1 >> 32 & 65535 < 7864 AND h2 >> 42 & 15 = 0 THEN 0
                        ELSE floor(power((h3 & 4294967295) / 4294967296.0::float8, 2) * :rows * 0.211)::bigint END AS referer_number,
                    CASE WHEN h3 >> 32 & 8191 < 7111 THEN -1
                        ELSE floor(power((h4 & 4294967295) / 4294967296.0::float8, 2) * :rows * 0.0865)::bigint END AS phrase_number,
                    CASE WHEN h4 >> 44 & 3 = 0 THEN 1 ELSE 0 END AS ip_other
                FROM (SELECT i, hashint8extended(i, 1) AS h1, hashint8extended(i, 2) AS h2, hashint8extended(i, 3) AS h3,
                          hashint8extended(i, 4) AS h4, hashint8extended(i, 5) AS h5
                      FROM generate_series(:from::bigint, :to::bigint) i OFFSET 0) a
                OFFSET 0) b
            OFFSET 0) c
        OFFSET 0) d,
        (SELECT '{погода,карта,купить,билеты,новости,работа,москва,фильм,скачать,музыка,онлайн,цена,ремонт,квартира,рецепт,игры,
            отзывы,автомобиль,телефон,расписание,поезд,школа,доставка,интернет,магазин,кредит,дача,гостиница,футбол,котёл,мебель,
            одежда}'::text[] AS words,
            '{shop,news,auto,film,forum,photo,games,job,map,music,mail,video,travel,blog,sport,house}'::text[] AS sites,
            '{index,search,list,offers,article,view,users,cars,flats,topics,albums,tags,archive,media,cart,profile}'::text[] AS sections,
            '{1366,1280,1920,1024,1440,1600,1680,1152,800,1360,768,320,480,1093,1536,2560,640,1056}'::int[] AS widths,
            '{768,1024,1080,768,900,900,1050,864,600,768,1024,480,800,614,864,1440,960,960}'::int[] AS heights,
            '{700,0,202,228,"",106,5,232}'::text[] AS flash, '{0,1,5,16,"",2,57,25}'::text[] AS minors,
            '{iPhone,iPad,Galaxy,Nokia,Lumia,HTC,Nexus,Xperia}'::text[] AS brands,
            '{ru,en,uk,be,kk,de,tr}'::text[] AS languages, '{RU,US,UA,BY,KZ,DE,TR}'::text[] AS countries OFFSET 0) lists
    OFFSET 0) s;
