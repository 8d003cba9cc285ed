# psycopg 3: python3 psycopg_client.py QUERIES MODE. It sends queries by the extended protocol. Texts are parameters of unknown type.
import os
import subprocess
import sys

import psycopg
from psycopg.adapt import Loader

from common import *


class Text(Loader):
    def load(self, data):
        return bytes(data).decode()


class Binary(Loader):
    format = psycopg.pq.Format.BINARY

    def load(self, data):
        return bytes(data)


def connect():
    connection = psycopg.connect('', autocommit=True, prepare_threshold=None)
    # values as the server sends them
    for oid in [0] + [item.oid for item in connection.adapters.types]:
        connection.adapters.register_loader(oid, Text)
        connection.adapters.register_loader(oid, Binary)
    return connection


# The row description, with whether columns are those of a table
def describe(cursor):
    result = cursor.pgresult
    for i in range(result.nfields):
        column(result.fname(i).decode(), result.ftype(i), result.fmod(i), result.fsize(i), int(result.fformat(i)), result.ftable(i) != 0,
               result.ftablecol(i))


def show(cursor, sql, values=None, binary=False, prepare=None):
    try:
        cursor.execute(sql, values, binary=binary, prepare=prepare)
        found = cursor.fetchall()
        describe(cursor)
        rows(found)
    except psycopg.Error as failure:
        error(failure.sqlstate, failure)


# The text and values of a query. An empty list of values makes psycopg use the extended protocol.
def arguments(query):
    return query.with_sign('%s'), query.values


def plain(path, binary=False):
    cursor = connect().cursor()
    for query in queries(path):
        begin(query.name)
        show(cursor, *arguments(query), binary=binary)


def binary(path):
    plain(path, True)


def prepared(path):
    connection = connect()
    for query in queries(path):
        for execution in range(EXECUTIONS):
            begin('%s %s' % (query.name, execution))
            show(connection.cursor(), *arguments(query), binary=execution % 2 == 1, prepare=True)
        connection.execute('DEALLOCATE ALL')
        connection._prepared.clear()


# Cursors of the server with binary results, some rows at a time.
def cursors(path):
    connection = connect()
    for query in queries(path):
        begin(query.name)
        with connection.transaction(), connection.cursor('named') as cursor:
            cursor.itersize = FETCH
            cursor.execute(*arguments(query), binary=True)
            found = list(cursor)
            describe(cursor)
            rows(found)


# Rows one by one, as they arrive.
def stream(path):
    connection = connect()
    for query in queries(path):
        begin(query.name)
        rows(connection.cursor().stream(*arguments(query)))


# Several queries are sent before the first answer arrives.
def pipeline(path):
    connection = connect()
    with connection.pipeline():
        cursors = [(query, connection.cursor()) for query in queries(path)]
        for query, cursor in cursors:
            cursor.execute(*arguments(query))
    for query, cursor in cursors:
        begin(query.name)
        found = cursor.fetchall()
        describe(cursor)
        rows(found)


# Each query in a transaction with SET LOCAL.
def local(path):
    connection = connect()
    for query in queries(path):
        begin(query.name)
        with connection.transaction():
            connection.execute(local_setting())
            show(connection.cursor(), *arguments(query))


def portals(path):
    connection = connect()
    with connection.transaction():
        first = connection.cursor('first')
        second = connection.cursor('second', withhold=True)
        first.execute(MANY, binary=True)
        begin('portals suspended')
        rows(first.fetchmany(10))
        second.execute(MORE)
        rows(second.fetchmany(10))
        show(connection.cursor(), QUICK, prepare=True)
        begin('portals resumed')
        rows(first.fetchmany(300))
        rows(second.fetchmany(10))
        first.close()
    begin('portals held')
    rows(second.fetchmany(10000))
    second.close()
    begin('portals closed')
    show(connection.cursor(), QUICK, prepare=True)


# Prepared statements before and after an update of the extension, which another session executes.
def update(path):
    connection = connect()
    found = queries(path)
    for execution in range(EXECUTIONS):
        for query in found:
            begin('%s before %s' % (query.name, execution))
            show(connection.cursor(), *arguments(query), prepare=True)
    subprocess.run(os.environ['CLIENTS_UPDATE'], shell=True, check=True)
    for execution in range(2):
        for query in found:
            begin('%s after %s' % (query.name, execution))
            show(connection.cursor(), *arguments(query), prepare=True)


def cancel(path):
    connection = connect()
    other = connect()

    def is_running():
        return other.execute('SELECT FROM running WHERE pid = %s', [connection.info.backend_pid]).rowcount == 1

    cancel_slow(is_running, connection.cancel,
                lambda: show(connection.cursor(), SLOW, [], binary=True), lambda: show(connection.cursor(), QUICK, prepare=True))


def timeout(path):
    connection = connect()
    connection.execute('SET statement_timeout = 700')
    begin('timeout')
    show(connection.cursor(), SLOW, [], prepare=True)
    connection.execute('SET statement_timeout = 0')
    begin('after that')
    show(connection.cursor(), QUICK, prepare=True)


globals()[sys.argv[2]](sys.argv[1])
