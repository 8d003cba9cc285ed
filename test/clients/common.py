# What the clients in Python share: the queries, and the canonical form of results. test/clients/README.md describes both.
import os
import re
import sys
import threading
import time

FETCH = 7		# rows that a portal returns before it is suspended
EXECUTIONS = 7	# of a prepared statement: from the sixth on, the server may use a generic plan

# runs for hours unless it is cancelled; the sum needs all three tables, so that PostgreSQL 19 cannot aggregate below a join
SLOW = 'SELECT a.carrier, count(*), sum(a.delay * b.distance + c.delay) AS slow FROM flights a, flights b, flights c GROUP BY a.carrier'
QUICK = 'SELECT carrier, count(*), sum(delay) FROM flights GROUP BY carrier ORDER BY carrier'
MANY = 'SELECT origin, destination, count(*), avg(delay) FROM flights GROUP BY origin, destination ORDER BY origin, destination'
MORE = 'SELECT date::date, carrier, max(delay) FROM flights GROUP BY 1, 2 ORDER BY 1, 2'


class Query:
    def __init__(self, text):
        head, *rest = text.split('\n')
        self.name = head.strip()
        lines = [line for line in rest if not line.startswith('-- ')]
        self.sql = '\n'.join(lines).strip()
        given = [line for line in rest if line.startswith('-- with: ')]
        self.values = given[0][len('-- with: '):].split(', ') if given else []

    # The text with another sign for parameters. A sign of "%s" needs "%" doubled.
    def with_sign(self, sign):
        sql = self.sql.replace('%', '%%') if sign == '%s' else self.sql
        return re.sub(r'\$\d', sign, sql)


def queries(path):
    with open(path, encoding='utf-8') as file:
        return [Query(text) for text in re.split(r'^-- name: ', file.read(), flags=re.M)[1:]]


def begin(name):
    print('# ' + name)


def column(*description):
    print(': ' + ' '.join(str(item) for item in description))


def text(value):
    if value is None:
        return '\\N'
    if isinstance(value, (bytes, memoryview)):
        return bytes(value).hex()
    return str(value).replace('\\', '\\\\').replace('\n', '\\n').replace('|', '\\p')


def rows(values):
    for row in values:
        print('| ' + ' | '.join(text(value) for value in row))


def error(state, message):
    print('! %s %s' % (state, str(message).strip().split('\n')[0]))


# Waits until the slow query of another session runs.
def await_slow(is_running):
    end = time.time() + 60
    while not is_running():
        if time.time() > end:
            sys.exit('the slow query does not run')
        time.sleep(0.05)


# Executes the slow query, cancels it when it runs, and then executes the quick one in the same connection.
def cancel_slow(is_running, cancel, show_slow, show_quick):
    def when_running():
        await_slow(is_running)
        cancel()

    thread = threading.Thread(target=when_running)
    thread.start()
    begin('cancel')
    show_slow()
    thread.join()
    begin('after that')
    show_quick()


# SQL that is executed at the beginning of each transaction of the mode "local".
def local_setting():
    return 'SET LOCAL ' + os.environ['CLIENTS_LOCAL']
