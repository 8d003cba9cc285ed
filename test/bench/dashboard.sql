-- Queries of a dashboard over flights, for dashboard.sh: name | query | number of leading key columns. Answers are sorted by the key
-- columns before they are compared; 0 if the query sorts them itself. Aggregates have PostgreSQL's names.
count                         | SELECT count(*) FROM gpuagg_bench_flights | 0
totals                        | SELECT count(*), sum(distance), avg(delay), min(date), max(date) FROM gpuagg_bench_flights | 0
by origin                     | SELECT origin, count(*), avg(delay) FROM gpuagg_bench_flights GROUP BY origin | 1
by destination                | SELECT destination, count(*), avg(delay), max(delay) FROM gpuagg_bench_flights GROUP BY destination | 1
by route                      | SELECT origin, destination, count(*), avg(delay) FROM gpuagg_bench_flights GROUP BY origin, destination | 2
by origin and dow             | SELECT origin, extract(dow FROM date), count(*) FROM gpuagg_bench_flights GROUP BY 1, 2 | 2
by dow and hour               | SELECT extract(dow FROM date), extract(hour FROM date), count(*), avg(delay) FROM gpuagg_bench_flights GROUP BY 1, 2 | 2
by hour with stddev           | SELECT extract(hour FROM date), avg(delay), stddev(delay) FROM gpuagg_bench_flights GROUP BY 1 | 1
by day                        | SELECT date_trunc('day', date), count(*), sum(distance) FROM gpuagg_bench_flights GROUP BY 1 | 1
by month                      | SELECT date_trunc('month', date), count(*), avg(delay) FROM gpuagg_bench_flights GROUP BY 1 | 1
by month and origin           | SELECT date_trunc('month', date), origin, count(*) FROM gpuagg_bench_flights GROUP BY 1, 2 | 2
by date                       | SELECT date::date, count(*) FROM gpuagg_bench_flights GROUP BY 1 | 1
month as text                 | SELECT to_char(date_trunc('month', date), 'YYYY-MM'), count(*) FROM gpuagg_bench_flights GROUP BY 1 | 1
delay buckets                 | SELECT CASE WHEN delay < 0 THEN 'early' WHEN delay < 15 THEN 'on time' WHEN delay < 60 THEN 'late' ELSE 'very late' END, count(*), avg(distance) FROM gpuagg_bench_flights GROUP BY 1 | 1
distance bands                | SELECT width_bucket(distance, 0, 3000, 12), count(*), avg(delay) FROM gpuagg_bench_flights GROUP BY 1 | 1
histogram of delays           | SELECT width_bucket(delay, -60, 260, 64), count(*) FROM gpuagg_bench_flights GROUP BY 1 | 1
delays by distance            | SELECT floor(distance / 250.0), avg(delay), stddev(delay), count(*) FROM gpuagg_bench_flights GROUP BY 1 | 1
share of late ones            | SELECT origin, count(*) FILTER (WHERE delay > 15), count(*) FILTER (WHERE delay <= 15), count(*) FROM gpuagg_bench_flights GROUP BY origin | 1
average of a CASE             | SELECT origin, avg(CASE WHEN delay > 15 THEN 1.0 ELSE 0.0 END) FROM gpuagg_bench_flights GROUP BY origin | 1
sums of CASEs                 | SELECT destination, sum(CASE WHEN delay > 60 THEN delay ELSE 0 END), sum(CASE WHEN delay < 0 THEN 1 ELSE 0 END) FROM gpuagg_bench_flights GROUP BY destination | 1
one origin by day             | SELECT date_trunc('day', date), count(*), avg(delay) FROM gpuagg_bench_flights WHERE origin = 'LAX' GROUP BY 1 | 1
some origins                  | SELECT origin, count(*), max(delay) FROM gpuagg_bench_flights WHERE origin IN ('LAX', 'SFO', 'ORD', 'ATL') GROUP BY origin | 1
one month by origin           | SELECT origin, count(*), avg(delay) FROM gpuagg_bench_flights WHERE date >= timestamp '2003-03-01' AND date < timestamp '2003-04-01' GROUP BY origin | 1
late and far                  | SELECT origin, count(*), avg(delay) FROM gpuagg_bench_flights WHERE delay > 30 AND distance > 1000 GROUP BY origin | 1
names that begin with S       | SELECT destination, count(*) FROM gpuagg_bench_flights WHERE destination LIKE 'S%' GROUP BY destination | 1
HAVING                        | SELECT origin, destination, count(*) FROM gpuagg_bench_flights GROUP BY origin, destination HAVING count(*) > 5000 | 2
top ten routes                | SELECT origin, destination, count(*) AS n FROM gpuagg_bench_flights GROUP BY origin, destination ORDER BY n DESC, origin, destination LIMIT 10 | 0
worst five origins            | SELECT origin, avg(delay) AS d FROM gpuagg_bench_flights GROUP BY origin HAVING count(*) > 100 ORDER BY d DESC, origin LIMIT 5 | 0
kilometres by origin          | SELECT origin, sum(distance * 1.609), avg(distance / (delay + 100.0)) FROM gpuagg_bench_flights WHERE delay > -100 GROUP BY origin | 1
square sums                   | SELECT origin, sum(delay * delay), sum(delay * distance) FROM gpuagg_bench_flights GROUP BY origin | 1
correlation                   | SELECT corr(delay::float8, distance::float8), regr_slope(delay::float8, distance::float8) FROM gpuagg_bench_flights | 0
first letter                  | SELECT lower(left(origin, 1)), sum(length(destination)), count(*) FROM gpuagg_bench_flights GROUP BY 1 | 1
route as text                 | SELECT origin || '-' || destination, count(*) FROM gpuagg_bench_flights GROUP BY 1 | 1
first and last destination    | SELECT origin, min(destination), max(destination) FROM gpuagg_bench_flights GROUP BY origin | 1
upper and substr              | SELECT substr(upper(destination), 1, 2), avg(delay) FROM gpuagg_bench_flights GROUP BY 1 | 1
replaced text                 | SELECT replace(origin, 'A', '_'), count(*) FROM gpuagg_bench_flights GROUP BY 1 | 1
time of day                   | SELECT origin, extract(hour FROM avg(date - date_trunc('day', date))) FROM gpuagg_bench_flights GROUP BY origin | 1
arrivals by hour              | SELECT extract(hour FROM date + delay * interval '1 minute'), count(*) FROM gpuagg_bench_flights GROUP BY 1 | 1
quarter                       | SELECT extract(year FROM date), extract(quarter FROM date), sum(distance) FROM gpuagg_bench_flights GROUP BY 1, 2 | 2
distinct origins              | SELECT count(DISTINCT origin) FROM gpuagg_bench_flights | 0
distinct origins by dest.     | SELECT destination, count(DISTINCT origin) FROM gpuagg_bench_flights GROUP BY destination | 1
distinct with others          | SELECT destination, count(DISTINCT origin), count(*), avg(delay) FROM gpuagg_bench_flights GROUP BY destination | 1
list of destinations          | SELECT origin, string_agg(DISTINCT destination, ',' ORDER BY destination) FROM gpuagg_bench_flights GROUP BY origin | 1
all routes                    | SELECT DISTINCT origin, destination FROM gpuagg_bench_flights | 2
all airports                  | SELECT origin FROM gpuagg_bench_flights UNION SELECT destination FROM gpuagg_bench_flights | 1
median by origin              | SELECT origin, percentile_cont(0.5) WITHIN GROUP (ORDER BY delay) FROM gpuagg_bench_flights GROUP BY origin | 1
four percentiles              | SELECT percentile_cont(0.25) WITHIN GROUP (ORDER BY delay), percentile_cont(0.5) WITHIN GROUP (ORDER BY delay), percentile_cont(0.75) WITHIN GROUP (ORDER BY delay), percentile_cont(0.95) WITHIN GROUP (ORDER BY delay) FROM gpuagg_bench_flights | 0
most frequent destination     | SELECT origin, mode() WITHIN GROUP (ORDER BY destination) FROM gpuagg_bench_flights GROUP BY origin | 1
rollup                        | SELECT origin, destination, count(*), sum(distance) FROM gpuagg_bench_flights GROUP BY ROLLUP (origin, destination) | 2
cube                          | SELECT origin, extract(dow FROM date), count(*), avg(delay) FROM gpuagg_bench_flights GROUP BY CUBE (origin, extract(dow FROM date)) | 2
grouping sets                 | SELECT origin, destination, count(*) FROM gpuagg_bench_flights GROUP BY GROUPING SETS ((origin), (destination), ()) | 2
semi join                     | SELECT count(*), avg(delay) FROM gpuagg_bench_flights f WHERE EXISTS (SELECT 1 FROM gpuagg_bench_airports a WHERE a.code = f.origin AND a.hub = 1) | 0
IN (SELECT)                   | SELECT origin, count(*) FROM gpuagg_bench_flights WHERE destination IN (SELECT code FROM gpuagg_bench_airports WHERE region = 2) GROUP BY origin | 1
one dimension                 | SELECT a.region, count(*), avg(delay) FROM gpuagg_bench_flights f JOIN gpuagg_bench_airports a ON a.code = f.origin GROUP BY a.region | 1
two dimensions                | SELECT a.region, b.region, count(*), sum(distance) FROM gpuagg_bench_flights f JOIN gpuagg_bench_airports a ON a.code = f.origin JOIN gpuagg_bench_airports b ON b.code = f.destination GROUP BY a.region, b.region | 2
average of daily counts       | SELECT origin, avg(n), max(n) FROM (SELECT origin, date::date AS d, count(*) AS n FROM gpuagg_bench_flights GROUP BY 1, 2) s GROUP BY origin | 1
WITH, used twice              | WITH s AS (SELECT origin, count(*) AS n FROM gpuagg_bench_flights GROUP BY origin) SELECT count(*) FROM s WHERE n > (SELECT avg(n) FROM s) | 0
subquery with LIMIT           | SELECT count(*), sum(delay) FROM (SELECT delay FROM gpuagg_bench_flights WHERE distance > 500 LIMIT 1000000000) s | 0
both directions               | SELECT code, sum(n) FROM (SELECT origin AS code, count(*) AS n FROM gpuagg_bench_flights GROUP BY origin UNION ALL SELECT destination, count(*) FROM gpuagg_bench_flights GROUP BY destination) s GROUP BY code | 1
running share                 | SELECT origin, n, sum(n) OVER (ORDER BY n DESC, origin) FROM (SELECT origin, count(*) AS n FROM gpuagg_bench_flights GROUP BY origin) s ORDER BY n DESC, origin LIMIT 20 | 0
