# shellcheck shell=bash
# Sourced by scripts that measure beside DuckDB: $library becomes the path of its library, unless it is set already, from
# node_modules of this folder, of the source tree or of the current one.  Needs $here, this folder.
for folder in "$here" "$here/../.." .; do
	found=$folder/node_modules/@duckdb/node-bindings-linux-x64/libduckdb.so
	[[ -n $library || ! -e $found ]] || library=$(realpath "$found")
done
