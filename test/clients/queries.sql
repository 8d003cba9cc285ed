-- Queries in the forms that dashboards and dbt generate. Each begins with "-- name: NAME" and ends at the next one. Further lines:
--
--	-- with: VALUE, VALUE		the values of $1, $2, ..., each of which occurs once and in this order
--	-- rows: in any order		the query has no ORDER BY, or rows may be equal by it
--	-- not taken: REASON		the custom scan does not take the query; a pattern for the reason of EXPLAIN (VERBOSE), or "no aggregate"

-- name: grafana_count
SELECT
  floor(extract(epoch from date)/21600)*21600 AS "time",
  count(*) AS "flights"
FROM flights
WHERE date BETWEEN '2026-02-01T00:00:00Z' AND '2026-05-01T23:59:59.999Z'
GROUP BY 1
ORDER BY 1

-- name: grafana_series
SELECT
  floor(extract(epoch from date)/604800)*604800 AS "time",
  carrier AS metric,
  avg(delay) AS "value"
FROM flights
WHERE
  date BETWEEN '2026-01-01T00:00:00Z' AND '2026-07-01T00:00:00Z' AND
  carrier IN ('Aster','Birch','Fern')
GROUP BY 1,2
ORDER BY 1,2

-- name: grafana_epoch_filter
SELECT
  floor((extract(epoch from date)::bigint)/86400)*86400 AS "time",
  min(delay) AS "least",
  max(delay) AS "most",
  sum(distance) AS "miles"
FROM flights
WHERE extract(epoch from date) >= 1769904000 AND extract(epoch from date) <= 1777593600
GROUP BY time
ORDER BY time ASC

-- name: grafana_stat
SELECT
  avg(delay) AS "mean",
  percentile_cont(0.95) WITHIN GROUP (ORDER BY delay) AS "p95",
  percentile_disc(array[0.5, 0.99]) WITHIN GROUP (ORDER BY delay) AS "both",
  count(DISTINCT origin) AS "airports"
FROM flights
WHERE date BETWEEN '2026-01-01T00:00:00Z' AND '2026-07-01T00:00:00Z'

-- name: grafana_variable
SELECT DISTINCT origin AS __text, lower(origin) AS __value FROM flights ORDER BY 1

-- name: grafana_builder
-- rows: in any order
SELECT COUNT(delay), origin FROM flights WHERE (carrier IN ('Aster', 'Birch') AND distance >= 500) GROUP BY origin ORDER BY COUNT(delay) DESC LIMIT 50

-- name: grafana_heatmap
SELECT
  floor(extract(epoch from date)/86400)*86400 AS "time",
  width_bucket(delay, -30, 150, 12) AS "bucket",
  count(*) AS "count"
FROM flights
WHERE delay IS NOT NULL
GROUP BY 1, 2
ORDER BY 1, 2

-- name: grafana_delta
SELECT
  floor(extract(epoch from date)/2592000)*2592000 AS "time",
  (CASE WHEN sum(distance) >= lag(sum(distance)) OVER (ORDER BY floor(extract(epoch from date)/2592000)*2592000)
    THEN sum(distance) - lag(sum(distance)) OVER (ORDER BY floor(extract(epoch from date)/2592000)*2592000) ELSE sum(distance) END) AS "distance"
FROM flights
GROUP BY 1
ORDER BY 1

-- name: grafana_bins
SELECT
  date_bin('7 days', date, timestamp '2026-01-01') AS "time",
  stddev(delay) AS "spread",
  count(*) FILTER (WHERE delay > 15) AS "late",
  round(100.0 * count(*) FILTER (WHERE delay > 15) / count(*), 2) AS "share"
FROM flights
GROUP BY "time"
ORDER BY "time"

-- name: grafana_heartbeat
-- with: 2026-02-01 00:00:00, 2026-04-01 00:00:00
SELECT date_trunc('hour', date) AS "time", max(date) AS "last", bool_or(delay > 120) AS "alert"
FROM flights
WHERE date >= $1 AND date < $2
GROUP BY 1
ORDER BY 1

-- name: metabase_month
SELECT DATE_TRUNC('month', "public"."flights"."date") AS "date", COUNT(*) AS "count"
FROM "public"."flights"
GROUP BY DATE_TRUNC('month', "public"."flights"."date")
ORDER BY DATE_TRUNC('month', "public"."flights"."date") ASC

-- name: metabase_rows
-- rows: in any order
-- not taken: no aggregate
SELECT "public"."flights"."date" AS "date", "public"."flights"."carrier" AS "carrier", "public"."flights"."origin" AS "origin", "public"."flights"."destination" AS "destination", "public"."flights"."distance" AS "distance", "public"."flights"."delay" AS "delay"
FROM "public"."flights"
WHERE "public"."flights"."delay" > 240
LIMIT 1001

-- name: metabase_day
-- with: 2026-03-01 00:00:00.000Z, 2026-04-01 00:00:00.000Z
SELECT CAST("public"."flights"."date" AS date) AS "date", "public"."flights"."carrier" AS "carrier", AVG("public"."flights"."delay") AS "avg"
FROM "public"."flights"
WHERE ("public"."flights"."date" >= $1)
  AND ("public"."flights"."date" < $2)
GROUP BY CAST("public"."flights"."date" AS date), "public"."flights"."carrier"
ORDER BY CAST("public"."flights"."date" AS date) ASC, "public"."flights"."carrier" ASC
LIMIT 1001

-- name: metabase_binned
SELECT ((FLOOR((("public"."flights"."distance" - 0.0) / 250.0)) * 250.0) + 0.0) AS "distance", COUNT(*) AS "count"
FROM "public"."flights"
GROUP BY ((FLOOR((("public"."flights"."distance" - 0.0) / 250.0)) * 250.0) + 0.0)
ORDER BY ((FLOOR((("public"."flights"."distance" - 0.0) / 250.0)) * 250.0) + 0.0) ASC

-- name: metabase_weekday
SELECT CEIL((CAST(extract(dow from "public"."flights"."date") AS integer) + 1)) AS "date", COUNT(*) AS "count", COUNT(distinct "public"."flights"."destination") AS "count_2"
FROM "public"."flights"
GROUP BY CEIL((CAST(extract(dow from "public"."flights"."date") AS integer) + 1))
ORDER BY CEIL((CAST(extract(dow from "public"."flights"."date") AS integer) + 1)) ASC

-- name: metabase_nested
-- with: 10
SELECT "source"."origin" AS "origin", SUM("source"."sum") AS "sum", MAX("source"."count") AS "max"
FROM (SELECT "public"."flights"."origin" AS "origin", "public"."flights"."destination" AS "destination", SUM("public"."flights"."delay") AS "sum", COUNT(*) AS "count"
  FROM "public"."flights"
  GROUP BY "public"."flights"."origin", "public"."flights"."destination"
  ORDER BY "public"."flights"."origin" ASC, "public"."flights"."destination" ASC) AS "source"
WHERE "source"."count" > $1
GROUP BY "source"."origin"
ORDER BY "sum" DESC, "source"."origin" ASC

-- name: metabase_share
SELECT "public"."flights"."carrier" AS "carrier", CAST(SUM(CASE WHEN "public"."flights"."delay" > 15 THEN 1 ELSE 0.0 END) AS float) / CASE WHEN COUNT(*) = 0 THEN NULL ELSE COUNT(*) END AS "share", SUM(CASE WHEN "public"."flights"."delay" IS NULL THEN 1 ELSE 0.0 END) AS "count-where"
FROM "public"."flights"
GROUP BY "public"."flights"."carrier"
ORDER BY "public"."flights"."carrier" ASC

-- name: metabase_cumulative
SELECT DATE_TRUNC('week', "public"."flights"."date") AS "date", SUM(COUNT(*)) OVER (ORDER BY DATE_TRUNC('week', "public"."flights"."date") ASC ROWS UNBOUNDED PRECEDING) AS "count"
FROM "public"."flights"
GROUP BY DATE_TRUNC('week', "public"."flights"."date")
ORDER BY DATE_TRUNC('week', "public"."flights"."date") ASC

-- name: metabase_join
SELECT "Carriers"."alliance" AS "Carriers__alliance", percentile_cont(0.5) within group (order by "public"."flights"."delay") AS "median", STDDEV_POP("public"."flights"."delay") AS "stddev"
FROM "public"."flights"
LEFT JOIN "public"."carriers" AS "Carriers" ON "public"."flights"."carrier" = "Carriers"."carrier"
GROUP BY "Carriers"."alliance"
ORDER BY "Carriers"."alliance" ASC

-- name: metabase_quarter
SELECT CAST(extract(quarter from "public"."flights"."date") AS integer) AS "date", "public"."flights"."origin" AS "origin", COUNT(*) AS "count"
FROM "public"."flights"
WHERE ("public"."flights"."date" AT TIME ZONE 'America/Chicago') >= timestamp with time zone '2026-02-01 00:00:00.000Z'
GROUP BY CAST(extract(quarter from "public"."flights"."date") AS integer), "public"."flights"."origin"
ORDER BY "count" DESC, CAST(extract(quarter from "public"."flights"."date") AS integer) ASC, "public"."flights"."origin" ASC
LIMIT 20

-- name: superset_timeseries
-- rows: in any order
SELECT DATE_TRUNC('day', date) AS __timestamp, carrier AS carrier, COUNT(*) AS count, AVG(delay) AS "AVG(delay)"
FROM public.flights
WHERE date >= TO_TIMESTAMP('2026-02-01 00:00:00.000000', 'YYYY-MM-DD HH24:MI:SS.US') AND date < TO_TIMESTAMP('2026-04-01 00:00:00.000000', 'YYYY-MM-DD HH24:MI:SS.US')
GROUP BY DATE_TRUNC('day', date), carrier
ORDER BY count DESC
LIMIT 10000

-- name: superset_series_limit
-- rows: in any order
SELECT DATE_TRUNC('month', date) AS __timestamp, origin AS origin, SUM(distance) AS "SUM(distance)"
FROM public.flights
JOIN (SELECT origin AS origin__, SUM(distance) AS mme_inner__
  FROM public.flights
  GROUP BY origin
  ORDER BY mme_inner__ DESC
  LIMIT 5) AS anon_1 ON origin = origin__
GROUP BY DATE_TRUNC('month', date), origin
ORDER BY "SUM(distance)" DESC
LIMIT 50000

-- name: superset_virtual
-- rows: in any order
SELECT "Carrier Name" AS "Carrier Name", COUNT(DISTINCT "Day of Flight") AS "COUNT_DISTINCT(Day of Flight)", MAX("Late?"::int) AS "MAX(Late?)"
FROM (SELECT carrier AS "Carrier Name", date::date AS "Day of Flight", delay > 15 AS "Late?" FROM flights) AS virtual_table
GROUP BY "Carrier Name"
ORDER BY "COUNT_DISTINCT(Day of Flight)" DESC
LIMIT 1000

-- name: superset_positions
SELECT origin, destination, COUNT(*) AS "COUNT(*)", SUM(delay) AS "SUM(delay)"
FROM public.flights
GROUP BY 1, 2
HAVING ((COUNT(*) > 100))
ORDER BY 4 DESC NULLS LAST, 1, 2
LIMIT 100

-- name: superset_quarter_hour
SELECT DATE_TRUNC('hour', date) + INTERVAL '15 minutes' * FLOOR(EXTRACT(MINUTE FROM date) / 15) AS __timestamp, COUNT(*) AS count
FROM public.flights
WHERE date >= '2026-03-01 00:00:00.000000' AND date < '2026-03-15 00:00:00.000000'
GROUP BY DATE_TRUNC('hour', date) + INTERVAL '15 minutes' * FLOOR(EXTRACT(MINUTE FROM date) / 15)
ORDER BY __timestamp

-- name: superset_week_ending
SELECT DATE_TRUNC('week', DATE_TRUNC('day', date) + INTERVAL '1 DAY') + INTERVAL '5 DAY' AS __timestamp, SUM(CASE WHEN delay > 60 THEN 1 ELSE 0 END) AS "very late", CAST(AVG(delay) AS NUMERIC(10, 2)) AS mean
FROM public.flights
GROUP BY DATE_TRUNC('week', DATE_TRUNC('day', date) + INTERVAL '1 DAY') + INTERVAL '5 DAY'
ORDER BY 1

-- name: superset_filter_values
SELECT DISTINCT destination AS destination
FROM public.flights
WHERE carrier LIKE '%r%'
ORDER BY destination ASC
LIMIT 10000

-- name: superset_row_count
-- not taken: another plan is estimated to be cheaper
SELECT COUNT(*) AS rowcount FROM (SELECT carrier AS carrier, origin AS origin FROM public.flights WHERE delay > 30 LIMIT 1000) AS rowcount_qry

-- name: superset_range
SELECT MIN(date) AS "min", MAX(date) AS "max", MIN(carrier::varchar(3)) AS "first"
FROM public.flights

-- name: superset_pivot
SELECT carrier AS carrier, DATE_TRUNC('month', date) AS date, GROUPING(carrier) AS "all", SUM(delay) AS "SUM(delay)", COUNT(*) AS count
FROM public.flights
GROUP BY GROUPING SETS ((carrier, DATE_TRUNC('month', date)), (DATE_TRUNC('month', date)))
ORDER BY 3, 1, 2

-- name: dbt_unique
select
      count(*) as failures,
      count(*) != 0 as should_warn,
      count(*) != 0 as should_error
    from (
select
    date as unique_field,
    count(*) as n_records
from "postgres"."public"."flights"
where date is not null
group by date
having count(*) > 1
    ) dbt_internal_test

-- name: dbt_accepted_values
-- rows: in any order
with all_values as (
    select
        carrier as value_field,
        count(*) as n_records
    from "postgres"."public"."flights"
    group by carrier
)
select *
from all_values
where value_field not in ('Aster','Birch','Cedar')

-- name: dbt_relationships
with child as (
    select carrier as from_field
    from "postgres"."public"."flights"
    where carrier is not null
),
parent as (
    select carrier as to_field
    from "postgres"."public"."carriers"
)
select from_field, count(*) as failures
from child
left join parent on child.from_field = parent.to_field
where parent.to_field is null
group by from_field
order by 1

-- name: dbt_model
-- with: ATL
with source as (
    select * from "postgres"."public"."flights"
),
renamed as (
    select
        date as departed_at,
        carrier as carrier_name,
        origin || '-' || destination as route,
        distance::numeric(12, 2) as miles,
        coalesce(delay, 0) as delay_minutes
    from source
    where origin = $1
),
final as (
    select
        route,
        date_trunc('month', departed_at)::date as month,
        count(*) as flights,
        sum(miles) as miles,
        avg(delay_minutes)::numeric(10, 3) as mean_delay,
        max(carrier_name) as last_carrier
    from renamed
    group by 1, 2
)
select * from final order by route, month

-- name: dbt_pivot
select
    origin,
    sum(case when carrier = 'Aster' then 1 else 0 end) as "Aster",
    sum(case when carrier = 'Birch' then 1 else 0 end) as "Birch",
    sum(case when carrier = 'Cedar' then delay else 0 end) as "Cedar"
from "postgres"."public"."flights"
group by origin
order by origin

-- name: dbt_combination
select count(*) as failures
from (
    select origin, destination, carrier
    from "postgres"."public"."flights"
    group by origin, destination, carrier
    having count(*) > 20
) validation_errors

-- name: dbt_surrogate_key
select
    md5(cast(coalesce(cast(origin as TEXT), '_dbt_utils_surrogate_key_null_') || '-' || coalesce(cast(carrier as TEXT), '_dbt_utils_surrogate_key_null_') as TEXT)) as id,
    count(*) as flights,
    cast(sum(distance) as double precision) / nullif(count(delay), 0) as ratio
from "postgres"."public"."flights"
group by 1
order by 1

-- name: dbt_incremental
select max(date) as max_loaded_at, date_trunc('day', max(date)) - interval '3 days' as since, count(*) as "rows"
from "postgres"."public"."flights"
where date >= (select max(date) - interval '30 days' from "postgres"."public"."flights")

-- name: dbt_metric
-- with: 500, 2
SELECT
  metric_time__week
  , flight__carrier
  , late_flights
  , CAST(late_flights AS DOUBLE PRECISION) / CAST(NULLIF(flights, 0) AS DOUBLE PRECISION) AS late_rate
FROM (
  SELECT
    DATE_TRUNC('week', subq_2.metric_time) AS metric_time__week
    , subq_2.flight__carrier
    , SUM(CASE WHEN subq_2.delay > 15 THEN 1 ELSE 0 END) AS late_flights
    , SUM(subq_2.one) AS flights
  FROM (
    SELECT date AS metric_time, carrier AS flight__carrier, delay, 1 AS one
    FROM public.flights flights_src_1
    WHERE distance > $1
  ) subq_2
  GROUP BY
    DATE_TRUNC('week', subq_2.metric_time)
    , subq_2.flight__carrier
) subq_3
WHERE late_flights > $2
ORDER BY metric_time__week, flight__carrier

-- name: dbt_percentiles
select origin,
    percentile_cont(0.9) within group (order by delay) as p90,
    mode() within group (order by carrier) as usual,
    string_agg(distinct carrier, ', ' order by carrier) as carriers,
    array_agg(distinct delay > 15 order by delay > 15) as kinds,
    round(corr(distance, delay)::numeric, 9) as correlation
from "postgres"."public"."flights"
group by origin
order by origin
