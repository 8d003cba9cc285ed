# ODBC (psqlodbc) through pyodbc: python3 odbc_client.py QUERIES MODE.
import os
import subprocess
import sys

import pyodbc

from common import *

pyodbc.pooling = False


def connect(*options):
    given = ['Driver={PostgreSQL Unicode}', 'Servername=' + os.environ['PGHOST'], 'Port=' + os.environ['PGPORT'],
             'Database=' + os.environ['PGDATABASE'], 'UID=' + os.environ['PGUSER'], 'Optional=1', *options]
    return pyodbc.connect(';'.join(given), autocommit=True)


def describe(cursor):
    for item in cursor.description or []:
        column(item[0], item[1].__name__, *item[2:])


def fail(failure):
    error(failure.args[0], failure.args[1])


def show(cursor, sql, values=()):
    try:
        cursor.execute(sql, *values)
        found = cursor.fetchall()
        describe(cursor)
        rows(found)
    except pyodbc.Error as failure:
        fail(failure)


def run_all(connection, path):
    for query in queries(path):
        begin(query.name)
        show(connection.cursor(), query.with_sign('?'), query.values)


# Statements prepared in the server, whole results.
def plain(path):
    run_all(connect('UseServerSidePrepare=1', 'UseDeclareFetch=0'), path)


# Parameters as literals.
def literals(path):
    run_all(connect('UseServerSidePrepare=0', 'UseDeclareFetch=0'), path)


# Cursors of the server, some rows at a time.
def cursors(path):
    run_all(connect('UseServerSidePrepare=1', 'UseDeclareFetch=1', 'Fetch=%s' % FETCH), path)


# Each query in a transaction with SET LOCAL.
def local(path):
    connection = connect('UseServerSidePrepare=0')
    connection.autocommit = False
    for query in queries(path):
        begin(query.name)
        connection.execute(local_setting())
        show(connection.cursor(), query.with_sign('?'), query.values)
        connection.commit()


def portals(path):
    connection = connect('UseDeclareFetch=1', 'Fetch=10')
    connection.autocommit = False
    first, second = connection.cursor(), connection.cursor()
    first.execute(MANY)
    begin('portals suspended')
    rows(first.fetchmany(10))
    second.execute(MORE)
    rows(second.fetchmany(10))
    show(connection.cursor(), QUICK)
    begin('portals resumed')
    rows(first.fetchmany(300))
    first.close()
    rows(second.fetchall())
    connection.commit()
    begin('portals closed')
    show(connection.cursor(), QUICK)


def update(path):
    connection = connect('UseServerSidePrepare=1', 'UseDeclareFetch=0')
    found = [(query, connection.cursor()) for query in queries(path)]
    for execution in range(EXECUTIONS):
        for query, cursor in found:
            begin('%s before %s' % (query.name, execution))
            show(cursor, query.with_sign('?'), query.values)
    subprocess.run(os.environ['CLIENTS_UPDATE'], shell=True, check=True)
    for execution in range(2):
        for query, cursor in found:
            begin('%s after %s' % (query.name, execution))
            show(cursor, query.with_sign('?'), query.values)


def cancel(path):
    connection = connect()
    other = connect()
    cursor = connection.cursor()
    pid = cursor.execute('SELECT pg_backend_pid()').fetchval()

    def is_running():
        return other.execute('SELECT count(*) FROM running WHERE pid = ?', pid).fetchval() == 1

    cancel_slow(is_running, cursor.cancel,
                lambda: show(cursor, SLOW), lambda: show(cursor, QUICK))


def timeout(path):
    connection = connect()
    connection.execute('SET statement_timeout = 700')
    begin('timeout')
    show(connection.cursor(), SLOW)
    connection.execute('SET statement_timeout = 0')
    begin('after that')
    show(connection.cursor(), QUICK)


globals()[sys.argv[2]](sys.argv[1])
