// JDBC: java -cp postgresql.jar JdbcClient.java QUERIES MODE. Texts are parameters of unknown type (stringtype=unspecified).
import java.nio.charset.StandardCharsets;
import java.nio.file.*;
import java.sql.*;
import java.util.*;

public class JdbcClient {
	static final int FETCH = 7;      // rows that a portal returns before it is suspended
	static final int EXECUTIONS = 9; // of a prepared statement: the server prepares the fifth, and may use a generic plan from its sixth on
	static final String SLOW =
		"SELECT a.carrier, count(*), sum(a.delay * b.distance + c.delay) AS slow FROM flights a, flights b, flights c GROUP BY a.carrier";
	static final String QUICK = "SELECT carrier, count(*), sum(delay) FROM flights GROUP BY carrier ORDER BY carrier";
	static final String MANY =
		"SELECT origin, destination, count(*), avg(delay) FROM flights GROUP BY origin, destination ORDER BY origin, destination";
	static final String MORE = "SELECT date::date, carrier, max(delay) FROM flights GROUP BY 1, 2 ORDER BY 1, 2";

	static class Query {
		String name, sql;
		List<String> values = new ArrayList<>();
	}

	static List<Query> queries = new ArrayList<>();
	static final java.io.PrintStream out = new java.io.PrintStream(new java.io.FileOutputStream(java.io.FileDescriptor.out), false, StandardCharsets.UTF_8);

	static void read(String path) throws Exception {
		String[] parts = Files.readString(Path.of(path)).split("(?m)^-- name: ");
		for (String part : Arrays.copyOfRange(parts, 1, parts.length)) {
			Query query = new Query();
			StringBuilder sql = new StringBuilder();
			String[] lines = part.split("\n");
			query.name = lines[0].trim();
			for (String line : Arrays.copyOfRange(lines, 1, lines.length)) {
				if (line.startsWith("-- with: "))
					query.values = Arrays.asList(line.substring("-- with: ".length()).split(", "));
				else if (!line.startsWith("-- "))
					sql.append(line).append('\n');
			}
			query.sql = sql.toString().trim().replaceAll("\\$\\d", "?");
			queries.add(query);
		}
	}

	static Connection connect(String... options) throws SQLException {
		Map<String, String> env = System.getenv();
		return DriverManager.getConnection("jdbc:postgresql://127.0.0.1:" + env.get("PGPORT") + "/" + env.get("PGDATABASE") + "?user=" + env.get("PGUSER") +
			"&stringtype=unspecified&" + String.join("&", options));
	}

	static void begin(String name) {
		out.println("# " + name);
	}

	static void describe(ResultSet result) throws SQLException {
		ResultSetMetaData meta = result.getMetaData();
		for (int i = 1; i <= meta.getColumnCount(); i++)
			out.println(": " + meta.getColumnLabel(i) + " " + meta.getColumnName(i) + " " + meta.getColumnTypeName(i) + " " + meta.getColumnType(i) + " " +
				meta.getColumnClassName(i) + " " + meta.getPrecision(i) + " " + meta.getScale(i) + " " + meta.getColumnDisplaySize(i) + " " +
				meta.isNullable(i) + " " + meta.getTableName(i) + " " + ((org.postgresql.PGResultSetMetaData) meta).getBaseColumnName(i));
	}

	// Prints at most `most` rows.
	static void rows(ResultSet result, int most) throws SQLException {
		int columns = result.getMetaData().getColumnCount();
		for (int n = 0; n < most && result.next(); n++) {
			StringJoiner line = new StringJoiner(" | ", "| ", "");
			for (int i = 1; i <= columns; i++) {
				String value = result.getString(i);
				line.add(value == null ? "\\N" : value.replace("\\", "\\\\").replace("\n", "\\n").replace("|", "\\p"));
			}
			out.println(line);
		}
	}

	static void error(SQLException failure) {
		out.println("! " + failure.getSQLState() + " " + failure.getMessage().split("\n")[0]);
	}

	static void show(PreparedStatement statement, Query query) throws SQLException {
		for (int i = 0; i < query.values.size(); i++)
			statement.setString(i + 1, query.values.get(i));
		try (ResultSet result = statement.executeQuery()) {
			describe(result);
			rows(result, Integer.MAX_VALUE);
		} catch (SQLException failure) {
			error(failure);
		}
	}

	static void show(Connection connection, String sql) throws SQLException {
		try (Statement statement = connection.createStatement(); ResultSet result = statement.executeQuery(sql)) {
			describe(result);
			rows(result, Integer.MAX_VALUE);
		} catch (SQLException failure) {
			error(failure);
		}
	}

	// Executes all queries, each in a transaction, with these options. The transaction starts with `local` unless it is null.
	static void all(int fetch, String local, String... options) throws SQLException {
		try (Connection connection = connect(options)) {
			connection.setAutoCommit(false);
			for (Query query : queries) {
				begin(query.name);
				if (local != null)
					connection.createStatement().execute("SET LOCAL " + local);
				try (PreparedStatement statement = connection.prepareStatement(query.sql)) {
					statement.setFetchSize(fetch);
					show(statement, query);
				}
				connection.commit();
			}
		}
	}

	static void prepared() throws SQLException {
		try (Connection connection = connect()) {
			for (Query query : queries)
				try (PreparedStatement statement = connection.prepareStatement(query.sql)) {
					for (int execution = 0; execution < EXECUTIONS; execution++) {
						begin(query.name + " " + execution);
						show(statement, query);
					}
				}
		}
	}

	static void portals() throws SQLException {
		try (Connection connection = connect("prepareThreshold=-1")) {
			connection.setAutoCommit(false);
			PreparedStatement first = connection.prepareStatement(MANY), second = connection.prepareStatement(MORE);
			first.setFetchSize(10);
			second.setFetchSize(10);
			ResultSet many = first.executeQuery();
			begin("portals suspended");
			rows(many, 10);
			ResultSet more = second.executeQuery();
			rows(more, 10);
			show(connection, QUICK);
			begin("portals resumed");
			rows(many, 300);
			rows(more, 15);
			many.close();
			rows(more, Integer.MAX_VALUE);
			connection.commit();
			begin("portals closed");
			show(connection, QUICK);
		}
	}

	// Prepared statements before and after an update of the extension, which another session executes.
	static void update() throws Exception {
		try (Connection connection = connect("prepareThreshold=1")) {
			List<PreparedStatement> statements = new ArrayList<>();
			for (Query query : queries)
				statements.add(connection.prepareStatement(query.sql));
			for (int execution = 0; execution < EXECUTIONS + 2; execution++) {
				if (execution == EXECUTIONS && new ProcessBuilder("sh", "-c", System.getenv("CLIENTS_UPDATE")).start().waitFor() != 0)
					throw new IllegalStateException("no update");
				for (int i = 0; i < queries.size(); i++) {
					begin(queries.get(i).name + (execution < EXECUTIONS ? " before " : " after ") + execution);
					show(statements.get(i), queries.get(i));
				}
			}
		}
	}

	static void cancel() throws Exception {
		try (Connection connection = connect(); Connection other = connect(); Statement slow = connection.createStatement()) {
			int pid = ((org.postgresql.PGConnection) connection).getBackendPID();
			Thread canceller = new Thread(() -> {
				try (PreparedStatement running = other.prepareStatement("SELECT FROM running WHERE pid = " + pid)) {
					long end = System.currentTimeMillis() + 60000;
					while (!running.executeQuery().next()) {
						if (System.currentTimeMillis() > end)
							System.exit(1);
						Thread.sleep(50);
					}
					slow.cancel();
				} catch (Exception failure) {
					failure.printStackTrace();
				}
			});
			canceller.start();
			begin("cancel");
			try {
				slow.executeQuery(SLOW);
			} catch (SQLException failure) {
				error(failure);
			}
			canceller.join();
			begin("after that");
			show(connection, QUICK);
		}
	}

	static void timeout() throws SQLException {
		try (Connection connection = connect(); Statement statement = connection.createStatement()) {
			statement.execute("SET statement_timeout = 700");
			begin("timeout");
			show(connection, SLOW);
			statement.execute("SET statement_timeout = 0");
			begin("after that");
			show(connection, QUICK);
			// the driver's own timeout cancels the query
			statement.setQueryTimeout(1);
			begin("timeout of the driver");
			try {
				statement.executeQuery(SLOW);
			} catch (SQLException failure) {
				error(failure);
			}
			begin("after that too");
			show(connection, QUICK);
		}
	}

	public static void main(String[] args) throws Exception {
		read(args[0]);
		switch (args[1]) {
		case "plain" -> all(0, null, "prepareThreshold=0");
		case "simple" -> all(0, null, "preferQueryMode=simple");
		case "binary" -> all(0, null, "prepareThreshold=-1");
		case "cursors" -> all(FETCH, null, "prepareThreshold=0");
		case "local" -> all(0, System.getenv("CLIENTS_LOCAL"), "prepareThreshold=0");
		case "prepared" -> prepared();
		case "portals" -> portals();
		case "update" -> update();
		case "cancel" -> cancel();
		case "timeout" -> timeout();
		default -> throw new IllegalArgumentException(args[1]);
		}
		out.flush();
	}
}
