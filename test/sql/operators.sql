-- The operators that the extension lists.
SELECT * FROM gpuagg_operators ORDER BY operator;
SELECT gpuagg_version() = extversion FROM pg_extension WHERE extname = 'gpuagg';
SELECT count(*) >= 0 FROM gpuagg_devices();
\d gpuagg_operators
\df gpuagg_devices
