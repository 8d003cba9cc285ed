#!/usr/bin/env bash
# Tests forged states and rows of aggregates (test/states.pl).
#
#	test/states.sh [NUMBER] [SEED]		default: 2000 forged states and rows, seed 1
#
#	PG_CONFIG	the PostgreSQL to test
#
# Prints "ok" and "not ok" lines. The exit status is 0 if the test ran, even if a check failed.
#
# States arrive as text, by COPY in text and binary form, and as an answer of a foreign server. Each must raise an expected error or be
# usable, within limits of memory and time. Values of domains must be valid for the domain.
set -uo pipefail
# shellcheck source=test/pg.sh
source "$(dirname "${BASH_SOURCE[0]}")/pg.sh"
pg_need && { [[ -n ${GPUAGG_INSTALLED:-} ]] || pg_install; } || exit 1
number=${1:-2000} seed=${2:-1}
pg_start "shared_preload_libraries='gpuagg'" jit=off autovacuum=off statement_timeout=60s || exit 1
files=$(mktemp -d "$pg_tmp/gpuagg-states.XXXXXX")
trap 'pg_stop; rm -rf "$files"' EXIT

psql -Xq -v ON_ERROR_STOP=1 -v port="$PGPORT" -v sock="$PGHOST" <<'SQL' || { echo "not ok the tables are created"; exit 1; }
CREATE EXTENSION gpuagg;
CREATE EXTENSION postgres_fdw;
CREATE DOMAIN positive AS int CHECK (value > 0);
CREATE DOMAIN never_null AS int NOT NULL;
CREATE DOMAIN digits AS text CHECK (value ~ '^[0-9]+$');
CREATE TYPE pair AS (a positive, b digits);
CREATE TYPE parts AS (a int, b gpuagg_state);
CREATE TYPE span AS RANGE (subtype = positive);
CREATE TYPE mood AS ENUM ('sad', 'glad');
CREATE TABLE forged_states (n serial, kind text, bytes text);
CREATE TABLE outcomes (n int, way text, answer text);
CREATE TABLE copied_state (x gpuagg_state);
CREATE TABLE copied_row (x gpuagg_row);
CREATE AGGREGATE together(gpuagg_state) (SFUNC = gpuagg_merge_combine, STYPE = gpuagg_state);
CREATE SERVER self FOREIGN DATA WRAPPER postgres_fdw OPTIONS (host :'sock', port :'port', dbname 'postgres');
CREATE USER MAPPING FOR PUBLIC SERVER self;
CREATE TABLE answer (bytes text);
INSERT INTO answer VALUES (NULL);
CREATE FOREIGN TABLE answered_state (bytes gpuagg_state) SERVER self OPTIONS (table_name 'answer');
CREATE FOREIGN TABLE answered_row (bytes gpuagg_row) SERVER self OPTIONS (table_name 'answer');
CREATE FUNCTION finish_all(state gpuagg_state) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
	aggregate text;
	p positive;
	d digits;
	r pair;
	arg regprocedure := CASE get_byte(state::text::bytea, 1) WHEN 8 THEN 'gpu_argmax(anyelement, anycompatible)' ELSE 'gpu_argmin(anyelement, anycompatible)' END;
BEGIN
	IF state IS NULL THEN
		RETURN;
	END IF;
	state := together(s) FROM (VALUES (state), (state)) v(s);
	state := state::text::gpuagg_state;
	CASE get_byte(state::text::bytea, 1)
		WHEN 1 THEN PERFORM gpuagg_finish(state, 'gpu_avg(int8)', NULL::numeric);
		WHEN 2 THEN PERFORM gpuagg_finish(state, 'gpu_sum(numeric)', NULL::numeric);
		WHEN 3 THEN PERFORM gpuagg_finish(state, 'gpu_stddev(int4)', NULL::numeric);
		WHEN 4 THEN PERFORM gpuagg_finish(state, 'gpu_var_pop(numeric)', NULL::numeric);
		WHEN 5 THEN PERFORM gpuagg_finish(state, 'gpu_histogram(float8, float8, float8, int4)', NULL::int8[]);
		WHEN 6 THEN PERFORM gpuagg_finish(state, 'gpu_approx_count_distinct("any")', NULL::int8);
		WHEN 7 THEN PERFORM gpuagg_finish(state, 'gpu_approx_percentile(float8, float8)', NULL::float8);
		WHEN 10 THEN PERFORM gpuagg_finish(state, (ARRAY['gpu_max_n(anyelement, int4)', 'gpu_min_n(anyelement, int4)',
				'gpu_argmax_n(anyelement, anycompatible, int4)', 'gpu_argmin_n(anyelement, anycompatible, int4)'])[1 + get_byte(state::text::bytea, 2)]::regprocedure, NULL::int[]);
		WHEN 11 THEN PERFORM gpuagg_finish(state, (ARRAY['gpu_value_counts(anyelement)', 'gpu_top_k(anyelement, int4)'])[1 + get_byte(state::text::bytea, 2)]::regprocedure, NULL::jsonb)
				WHERE get_byte(state::text::bytea, 2) < 2;
			PERFORM gpuagg_finish(state, 'gpu_entropy(anyelement)', NULL::float8) WHERE get_byte(state::text::bytea, 2) = 2;
		WHEN 12 THEN PERFORM gpuagg_finish(state, 'gpu_summary(float8)', NULL::gpuagg_summary);
		WHEN 13 THEN PERFORM count(*) + count(gpu_histogram_auto_quantile(state, 0.5)) FROM gpu_histogram_auto_bins(state), gpu_histogram_auto_info(state);
		WHEN 14 THEN PERFORM count(*) FROM gpu_histogram_equidepth_bins(gpuagg_finish(state, 'gpu_histogram_equidepth(float8, int4)', NULL::gpuagg_equidepth));
		WHEN 15 THEN PERFORM count(*) + count(gpu_exp_histogram_quantile(state, 0.5)) FROM gpu_exp_histogram_buckets(state), gpu_exp_histogram_info(state);
		WHEN 16 THEN
			/* results may overflow */
			FOREACH aggregate IN ARRAY (ARRAY['{sum,avg}', '{stddev_samp,stddev_pop,var_samp,var_pop}', '{corr,covar_pop,covar_samp,regr_avgx,regr_avgy,regr_intercept,regr_r2,regr_slope,regr_sxx,regr_sxy,regr_syy}'])[get_byte(state::text::bytea, 3)]::text[] LOOP
				BEGIN
					PERFORM gpuagg_finish(state, format('gpuagg_exact_%s(%s)', aggregate, CASE WHEN get_byte(state::text::bytea, 3) = 3 THEN 'float8, float8' ELSE 'float8' END)::regprocedure, NULL::float8);
				EXCEPTION WHEN numeric_value_out_of_range THEN
				END;
			END LOOP;
		ELSE
			IF state::text ~ '^..010[89]00000000000000..7075626c69632e706f736974697665000000' THEN
				SELECT gpuagg_finish(state, arg, NULL::positive) INTO p;
				IF p::int <= 0 THEN RAISE internal_error USING MESSAGE = 'positive ' || p; END IF;
			ELSIF state::text ~ '^..010[89]00000000........7075626c69632e646967697473' THEN
				SELECT gpuagg_finish(state, arg, NULL::digits)::text INTO d;
			ELSIF state::text ~ '^..010[89]00000000........7075626c69632e70616972' THEN
				SELECT (gpuagg_finish(state, arg, NULL::pair)).* INTO r;
			ELSE
				PERFORM gpuagg_finish(state, arg, NULL::record);
			END IF;
	END CASE;
END $$;
CREATE PROCEDURE attempt(first int, last int) LANGUAGE plpgsql AS $$
DECLARE
	forged forged_states;
	way text;
	answer text;
	state gpuagg_state;
BEGIN
	FOR forged IN SELECT * FROM forged_states WHERE n BETWEEN first AND last LOOP
		FOREACH way IN ARRAY CASE WHEN forged.n % 10 = 0 THEN ARRAY['text', 'foreign'] ELSE ARRAY['text'] END LOOP
			answer := NULL;
			BEGIN
				IF way = 'foreign' THEN
					UPDATE answer SET bytes = forged.bytes;
					COMMIT;
				END IF;
			END;
			BEGIN
				IF forged.kind = 'row' THEN
					EXECUTE format('SELECT gpuagg_merge(s) FROM %s', CASE way WHEN 'text' THEN format('(VALUES (%L::gpuagg_row), (NULL)) v(s)', forged.bytes)
						ELSE 'answered_row v(s)' END) INTO state;
				ELSE
					EXECUTE format('SELECT s FROM %s', CASE way WHEN 'text' THEN format('(VALUES (%L::gpuagg_state)) v(s)', forged.bytes)
						ELSE 'answered_state v(s)' END) INTO state;
				END IF;
				PERFORM finish_all(state);
			EXCEPTION WHEN OTHERS THEN
				answer := SQLSTATE || ' ' || left(SQLERRM, 200);
			END;
			INSERT INTO outcomes VALUES (forged.n, way, answer);
		END LOOP;
	END LOOP;
END $$;
SQL

for kind in state row; do
	"$top/test/states.pl" "$seed" $((number / 2)) $kind >"$files/$kind"
	psql -Xq -c "COPY forged_states (kind, bytes) FROM STDIN" < <(sed "s/^/$kind	\\\\/" "$files/$kind")
done
# writes binary and text files for COPY with one row each
awk -v n="$number" -v files="$files" 'FNR % 20 == 1 { print FILENAME, FNR, $0 }' "$files/state" "$files/row" |
	perl -ne 'my ($file, $n, $hex) = split; my $kind = $file =~ m{state$} ? "state" : "row";
		my $bytes = pack "H*", substr $hex, 2;
		my $base = "$file.$n";
		open my $b, ">:raw", "$base.bin"; print $b "PGCOPY\n\xff\r\n\0", pack("NN", 0, 0), pack("n N", 1, length $bytes), $bytes, pack("n", 65535); close $b;
		open my $t, ">", "$base.txt"; print $t "\\$hex\n"; close $t;
		print "\\copy copied_$kind FROM \x27$base.bin\x27 (FORMAT binary)\n\\copy copied_$kind FROM \x27$base.txt\x27\n"' >"$files/copies"
psql -Xq -v VERBOSITY=verbose -f "$files/copies" >"$files/copied" 2>&1
# internal errors that PostgreSQL's own functions raise for such values
core='unsupported json(b|path) version number|tsvector|tsquery'
copied=$(grep -c 'ERROR: ' "$files/copied")
bad=$(grep -E 'ERROR: +(XX|57014)|server closed|invalid memory alloc' "$files/copied" | grep -vE "$core" | head -3)
[[ -z $bad && $copied -gt 0 ]] && echo "ok copied in text and binary form: $copied errors" || printf 'not ok copied in text and binary form\n%s\n' "$bad"
{
	for ((first = 1; first <= number; first += 500)); do
		echo "CALL attempt($first, $((first + 499)));"
	done
	cat <<'SQL'
SELECT CASE WHEN (regexp_match(pg_read_file('/proc/' || pg_backend_pid() || '/status'), 'RssAnon:\s*(\d+)'))[1]::int < 300000 THEN 'ok' ELSE 'not ok' END || ' the backend uses little memory';
SQL
} | psql -XqAt >"$files/attempted" 2>&1
grep -v '^ok' "$files/attempted" | sed 's/^/not ok /' | head -5
grep '^ok' "$files/attempted"
psql -XqAt <<SQL
SELECT CASE WHEN count(*) >= $number AND count(*) FILTER (WHERE answer IS NULL) > $number / 20 AND count(answer) > $number / 10 AND
	count(*) FILTER (WHERE answer ~ '^(XX|57014|53200)' AND answer !~ '$core') = 0 THEN 'ok' ELSE 'not ok' END || ' forged states are errors or usable: '
	|| format('%s attempts, %s errors', count(*), count(answer)) FROM outcomes;
SELECT DISTINCT '# ' || way || ' ' || n || ': ' || answer FROM outcomes WHERE answer ~ '^(XX|57014|53200)' AND answer !~ '$core' LIMIT 8;
SQL
# a state of some MB needs only a few times as much memory, even if its values have a domain
psql -XqAt <<'SQL'
CREATE TABLE many AS SELECT gpuagg_merge(gpuagg_pack('gpu_argmax(anyelement,anycompatible)', records, 1)) AS state
FROM (SELECT array_agg(ROW(i::positive, NULL::positive)) AS records FROM generate_series(1, 50000) i) s;
\c
SELECT 'not ok many records are finished' FROM many WHERE gpuagg_finish(state, 'gpu_argmax(anyelement,anycompatible)', NULL::record[]) IS NULL;
SELECT CASE WHEN (regexp_match(pg_read_file('/proc/' || pg_backend_pid() || '/status'), 'VmHWM:\s*(\d+)'))[1]::int < 200000 THEN 'ok' ELSE 'not ok' END ||
	' many records with domains need little memory';
SQL
grep -qE 'PANIC|was terminated by signal|TRAP' "$pg_root/log" && { echo "not ok the server crashed"; pg_crashes "$pg_root"; } || echo "ok the server did not crash"
exit 0
