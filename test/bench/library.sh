# shellcheck shell=bash
# Finds DuckDB's library. Scripts source this file with $here set to this folder. Sets $library, unless it is set already, to a library in
# node_modules of this folder, of the source tree, or of the current folder.
for folder in "$here" "$here/../.." .; do
	found=$folder/node_modules/@duckdb/node-bindings-linux-x64/libduckdb.so
	[[ -n $library || ! -e $found ]] || library=$(realpath "$found")
done
