-- Reasons in gpuagg_stats that name objects of a database with another encoding.
SELECT gpuagg_stats_reset() IS NOT NULL;
CREATE DATABASE gpuagg_latin ENCODING 'LATIN1' TEMPLATE template0 LC_COLLATE 'C' LC_CTYPE 'C';
SELECT current_database() AS here \gset
\c gpuagg_latin
CREATE EXTENSION gpuagg;
SET client_encoding = 'UTF8';
CREATE DOMAIN "mäßig" AS tsvector;
CREATE TABLE t (a "mäßig");
SELECT a, gpu_count(*) FROM t GROUP BY a;
SELECT reason FROM gpuagg_stats WHERE event = 'refused';
\c :here
SET client_encoding = 'UTF8';
SELECT reason, reason = convert_from(convert_to(reason, 'UTF8'), 'UTF8') AS valid FROM gpuagg_stats WHERE event = 'refused';
DROP DATABASE gpuagg_latin;
