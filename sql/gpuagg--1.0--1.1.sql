/* gpuagg--1.0--1.1.sql */
\echo Use "ALTER EXTENSION gpuagg UPDATE TO '1.1'" to load this file. \quit
