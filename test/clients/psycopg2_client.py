# psycopg 2: python3 psycopg2_client.py QUERIES MODE. It sends queries by the simple protocol, with parameters as literals.
import sys

import psycopg2

from common import *


def connect():
    connection = psycopg2.connect('')
    # values as the server sends them
    for oid in list(psycopg2.extensions.string_types):
        psycopg2.extensions.register_type(psycopg2.extensions.new_type((oid,), 'RAW', lambda value, cursor: value), connection)
    connection.autocommit = True
    return connection


def describe(cursor):
    for item in cursor.description or []:
        column(item.name, item.type_code, item.display_size, item.internal_size, item.precision, item.scale,
               'of' if item.table_oid else '', item.table_column or '')


def show(cursor, sql, values=None):
    try:
        cursor.execute(sql, values)
        found = cursor.fetchall()
        describe(cursor)
        rows(found)
    except psycopg2.Error as failure:
        error(failure.pgcode, failure)


def plain(path):
    cursor = connect().cursor()
    for query in queries(path):
        begin(query.name)
        show(cursor, query.with_sign('%s') if query.values else query.sql, query.values or None)


# Cursors of the server: DECLARE, and FETCH of some rows at a time.
def cursors(path):
    connection = connect()
    connection.autocommit = False
    for query in queries(path):
        begin(query.name)
        with connection.cursor('named') as cursor:
            cursor.itersize = FETCH
            cursor.execute(query.with_sign('%s') if query.values else query.sql, query.values or None)
            found = list(cursor)
            describe(cursor)
            rows(found)
        connection.commit()


# Each query in a transaction with SET LOCAL.
def local(path):
    connection = connect()
    connection.autocommit = False
    for query in queries(path):
        begin(query.name)
        cursor = connection.cursor()
        cursor.execute(local_setting())
        show(cursor, query.with_sign('%s') if query.values else query.sql, query.values or None)
        connection.commit()


def portals(path):
    connection = connect()
    connection.autocommit = False
    plain_cursor = connection.cursor()
    first = connection.cursor('first', scrollable=True)
    second = connection.cursor('second', withhold=True)
    first.execute(MANY)
    begin('portals suspended')
    rows(first.fetchmany(10))
    second.execute(MORE)
    rows(second.fetchmany(10))
    show(plain_cursor, QUICK)
    begin('portals resumed')
    rows(first.fetchmany(300))
    rows(second.fetchmany(10))
    begin('portals scrolled')
    first.scroll(-50)
    rows(first.fetchmany(3))
    first.scroll(0, mode='absolute')
    rows(first.fetchmany(3))
    first.close()
    begin('portals held')
    connection.commit()
    rows(second.fetchmany(10000))
    second.close()
    begin('portals closed')
    show(plain_cursor, QUICK)


def cancel(path):
    connection = connect()
    other = connect().cursor()
    cursor = connection.cursor()

    def is_running():
        other.execute('SELECT count(*) FROM running WHERE pid = %s', (connection.info.backend_pid,))
        return int(other.fetchone()[0]) == 1

    cancel_slow(is_running, connection.cancel,
                lambda: show(cursor, SLOW), lambda: show(cursor, QUICK))


def timeout(path):
    cursor = connect().cursor()
    cursor.execute('SET statement_timeout = 700')
    begin('timeout')
    show(cursor, SLOW)
    cursor.execute('SET statement_timeout = 0')
    begin('after that')
    show(cursor, QUICK)


globals()[sys.argv[2]](sys.argv[1])
