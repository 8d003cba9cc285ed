// node-postgres and pg-cursor: node pg_client.js QUERIES MODE. Texts are parameters of unknown type.
'use strict';
const { execSync } = require('child_process');
const fs = require('fs');
const { Client } = require('pg');
const Cursor = require('pg-cursor');

const FETCH = 7; // rows that a portal returns before it is suspended
const EXECUTIONS = 7; // of a prepared statement: from the sixth on, the server may use a generic plan
const SLOW = 'SELECT a.carrier, count(*), sum(a.delay * b.distance + c.delay) AS slow FROM flights a, flights b, flights c GROUP BY a.carrier';
const QUICK = 'SELECT carrier, count(*), sum(delay) FROM flights GROUP BY carrier ORDER BY carrier';
const MANY = 'SELECT origin, destination, count(*), avg(delay) FROM flights GROUP BY origin, destination ORDER BY origin, destination';

const raw = { getTypeParser: () => (value) => value }; // values as the server sends them
const path = process.argv[2];
const queries = fs.readFileSync(path, 'utf8').split(/^-- name: /m).slice(1).map((text) => {
	const [name, ...rest] = text.split('\n');
	const given = rest.find((line) => line.startsWith('-- with: '));
	return {
		name: name.trim(),
		text: rest.filter((line) => !line.startsWith('-- ')).join('\n').trim(),
		values: given ? given.slice('-- with: '.length).split(', ') : [],
	};
});

async function connect() {
	const client = new Client();
	await client.connect();
	return client;
}

function begin(name) {
	console.log('# ' + name);
}

function text(value) {
	if (value === null) return '\\N';
	if (Buffer.isBuffer(value)) return value.toString('hex');
	return value.replace(/\\/g, '\\\\').replace(/\n/g, '\\n').replace(/\|/g, '\\p');
}

function describe(fields) {
	for (const f of fields) {
		console.log(`: ${f.name} ${f.dataTypeID} ${f.dataTypeSize} ${f.dataTypeModifier} ${f.format} ${f.tableID !== 0} ${f.columnID}`);
	}
}

function rows(found) {
	for (const row of found) console.log('| ' + row.map(text).join(' | '));
}

async function show(client, options) {
	try {
		const result = await client.query({ rowMode: 'array', types: raw, ...options });
		describe(result.fields);
		rows(result.rows);
	} catch (failure) {
		console.log(`! ${failure.code} ${failure.message}`);
	}
}

// The rows of a cursor, FETCH at a time.
async function showCursor(client, query, most) {
	const cursor = client.query(new Cursor(query.text, query.values, { rowMode: 'array', types: raw }));
	let described = false;
	for (let count = 0; count < most;) {
		const found = await cursor.read(FETCH);
		if (!described) describe(cursor._result.fields);
		described = true;
		if (found.length === 0) break;
		rows(found);
		count += found.length;
	}
	await cursor.close();
}

const modes = {
	async plain(client, binary = false) {
		for (const query of queries) {
			begin(query.name);
			await show(client, { text: query.text, values: query.values, queryMode: 'extended', binary });
		}
	},
	async simple(client) {
		for (const query of queries.filter((q) => q.values.length === 0)) {
			begin(query.name);
			await show(client, { text: query.text });
		}
	},
	binary: (client) => modes.plain(client, true),
	async prepared(client) {
		for (const query of queries) {
			for (let execution = 0; execution < EXECUTIONS; execution++) {
				begin(`${query.name} ${execution}`);
				await show(client, { name: query.name, text: query.text, values: query.values, binary: execution % 2 === 1 });
			}
		}
	},
	async cursors(client) {
		for (const query of queries) {
			begin(query.name);
			await showCursor(client, query, Infinity);
		}
	},
	async local(client) {
		for (const query of queries) {
			begin(query.name);
			await client.query('BEGIN');
			await client.query('SET LOCAL ' + process.env.CLIENTS_LOCAL);
			await show(client, { text: query.text, values: query.values, queryMode: 'extended' });
			await client.query('COMMIT');
		}
	},
	// Portals that are closed before their end.
	async portals(client) {
		for (const most of [7, 21, 350]) {
			begin(`portals closed after ${most}`);
			await showCursor(client, { text: MANY, values: [] }, most);
			await show(client, { text: QUICK, name: 'quick' });
		}
	},
	// Prepared statements before and after an update of the extension, which another session executes.
	async update(client) {
		const execute = async (when) => {
			for (const query of queries) {
				begin(`${query.name} ${when}`);
				await show(client, { name: query.name, text: query.text, values: query.values });
			}
		};
		for (let execution = 0; execution < EXECUTIONS; execution++) await execute(`before ${execution}`);
		execSync(process.env.CLIENTS_UPDATE, { stdio: ['ignore', 2, 2] });
		for (let execution = 0; execution < 2; execution++) await execute(`after ${execution}`);
	},
	// A second session waits until the slow query runs; then the client cancels it.
	async cancel(client) {
		const other = await connect();
		begin('cancel');
		const slow = show(client, { text: SLOW, name: 'slow' });
		const end = Date.now() + 60000;
		while ((await other.query('SELECT FROM running WHERE pid = $1', [client.processID])).rowCount !== 1) {
			if (Date.now() > end) throw new Error('the slow query does not run');
			await new Promise((resolve) => setTimeout(resolve, 50));
		}
		new Client().cancel(client, client._activeQuery ?? client.activeQuery);
		await slow;
		begin('after that');
		await show(client, { text: QUICK, name: 'quick' });
		await other.end();
	},
	async timeout(client) {
		await client.query('SET statement_timeout = 700');
		begin('timeout');
		await show(client, { text: SLOW, name: 'slow' });
		await client.query('SET statement_timeout = 0');
		begin('after that');
		await show(client, { text: QUICK, name: 'quick' });
	},
};

(async () => {
	const client = await connect();
	await modes[process.argv[3]](client);
	await client.end();
})().catch((failure) => {
	console.error(failure);
	process.exit(1);
});
