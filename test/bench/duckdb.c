/*
 * duckdb.c
 *	  Runs SQL files in an in-memory database of DuckDB, for bench.sh and duckdb.sh.
 *
 *	duckdb LIBRARY THREADS REQUESTS REPLIES
 *
 * REQUESTS and REPLIES are named pipes.  Each line of REQUESTS is the path of a file with one SQL
 * statement.  The program executes the statement and discards its result.  It then opens REPLIES
 * and writes one line: "ms WALL CPU", or "error MESSAGE".  WALL and CPU are milliseconds; CPU is
 * the processor time of all threads.
 *
 * The library is loaded at run time.  Its headers are not needed: the few functions used are
 * declared here, and have not changed since DuckDB 0.2.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

typedef void *Database;
typedef void *Connection;

/* duckdb_result: four words of an old interface, an old error message and internal data */
typedef struct Result
{
	void *words[6];
} Result;

static int (*duck_open)(const char *path, Database *db);
static int (*duck_connect)(Database db, Connection *connection);
static int (*duck_query)(Connection connection, const char *sql, Result *result);
static const char *(*duck_error)(Result *result);
static void (*duck_destroy)(Result *result);
static const char *(*duck_version)(void);

/* Loads the library and sets the functions; exits on errors. */
static void
load_library(const char *path)
{
	void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);

	if (library == NULL)
	{
		fprintf(stderr, "%s\n", dlerror());
		exit(1);
	}
	*(void **) &duck_open = dlsym(library, "duckdb_open");
	*(void **) &duck_connect = dlsym(library, "duckdb_connect");
	*(void **) &duck_query = dlsym(library, "duckdb_query");
	*(void **) &duck_error = dlsym(library, "duckdb_result_error");
	*(void **) &duck_destroy = dlsym(library, "duckdb_destroy_result");
	*(void **) &duck_version = dlsym(library, "duckdb_library_version");
	if (!duck_open || !duck_connect || !duck_query || !duck_error || !duck_destroy || !duck_version)
	{
		fprintf(stderr, "%s lacks functions of DuckDB's C interface\n", path);
		exit(1);
	}
}

static double
wall_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1e3 + t.tv_nsec / 1e6;
}

/* Returns the processor time of all threads of this process. */
static double
cpu_ms(void)
{
	struct rusage u;

	getrusage(RUSAGE_SELF, &u);
	return (u.ru_utime.tv_sec + u.ru_stime.tv_sec) * 1e3 +
		(u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1e3;
}

/* Reads at most size - 1 bytes of a file; sets an empty string if it cannot be opened. */
static void
read_file(const char *path, char *text, size_t size)
{
	FILE *file = fopen(path, "r");
	size_t n = 0;

	if (file)
	{
		n = fread(text, 1, size - 1, file);
		fclose(file);
	}
	text[n] = '\0';
}

/* Executes a statement and writes the reply. */
static void
execute(Connection connection, const char *sql, const char *replies)
{
	Result result;
	double wall = wall_ms();
	double cpu = cpu_ms();
	int failed = duck_query(connection, sql, &result);
	FILE *reply;

	wall = wall_ms() - wall;
	cpu = cpu_ms() - cpu;
	reply = fopen(replies, "w");
	if (reply && failed)
	{
		char message[1000];

		snprintf(message, sizeof(message), "%s", duck_error(&result));
		message[strcspn(message, "\n")] = '\0';
		fprintf(reply, "error %s\n", message);
	}
	else if (reply)
		fprintf(reply, "ms %.3f %.3f\n", wall, cpu);
	if (reply)
		fclose(reply);
	duck_destroy(&result);
}

int
main(int argc, char **argv)
{
	static char path[4096], sql[65536];
	Database db;
	Connection connection;
	Result result;
	FILE *requests;

	if (argc != 5)
	{
		fprintf(stderr, "usage: duckdb LIBRARY THREADS REQUESTS REPLIES\n");
		return 2;
	}
	load_library(argv[1]);
	snprintf(sql, sizeof(sql), "SET threads = %d", atoi(argv[2]));
	if (duck_open(NULL, &db) || duck_connect(db, &connection) ||
		duck_query(connection, sql, &result))
	{
		fprintf(stderr, "DuckDB does not start\n");
		return 1;
	}
	duck_destroy(&result);
	fprintf(stderr, "DuckDB %s\n", duck_version());
	requests = fopen(argv[3], "r");
	while (requests && fgets(path, sizeof(path), requests))
	{
		path[strcspn(path, "\n")] = '\0';
		read_file(path, sql, sizeof(sql));
		execute(connection, sql, argv[4]);
	}
	return 0;
}
