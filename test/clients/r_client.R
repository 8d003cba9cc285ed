# R: Rscript r_client.R QUERIES MODE. DBI with RPostgres, or with RPostgreSQL where that is missing; dbplyr writes the SQL of mode "dbplyr".
suppressPackageStartupMessages({
	library(DBI)
	library(dplyr)
	library(dbplyr)
})

arguments <- commandArgs(trailingOnly = TRUE)
has_rpostgres <- requireNamespace("RPostgres", quietly = TRUE)
SLOW <- "SELECT a.carrier, count(*), sum(a.delay * b.distance + c.delay) AS slow FROM flights a, flights b, flights c GROUP BY a.carrier"
QUICK <- "SELECT carrier, count(*), sum(delay) FROM flights GROUP BY carrier ORDER BY carrier"
MANY <- "SELECT origin, destination, count(*), avg(delay) FROM flights GROUP BY origin, destination ORDER BY origin, destination"

connect <- function() {
	env <- Sys.getenv(c("PGHOST", "PGPORT", "PGUSER", "PGDATABASE"))
	driver <- if (has_rpostgres) RPostgres::Postgres() else RPostgreSQL::PostgreSQL()
	dbConnect(driver, host = env[["PGHOST"]], port = as.integer(env[["PGPORT"]]), user = env[["PGUSER"]], dbname = env[["PGDATABASE"]])
}

# The queries: a list of lists of name, sql and values
read_queries <- function(path) {
	lines <- readLines(path, encoding = "UTF-8")
	starts <- grep("^-- name: ", lines)
	ends <- c(starts[-1] - 1, length(lines))
	Map(function(from, to) {
		part <- lines[(from + 1):to]
		given <- sub("^-- with: ", "", grep("^-- with: ", part, value = TRUE))
		list(name = sub("^-- name: ", "", lines[from]), sql = trimws(paste(part[!grepl("^-- ", part)], collapse = "\n")),
			values = if (length(given)) as.list(strsplit(given, ", ")[[1]]) else NULL)
	}, starts, ends)
}

begin <- function(name) cat("#", name, "\n")

rows <- function(found) {
	if (nrow(found) == 0) return()
	columns <- lapply(found, function(x) {
		written <- if (is.double(x) && !inherits(x, "POSIXt")) format(x, digits = 17, trim = TRUE) else as.character(x)
		ifelse(is.na(x), "\\N", gsub("\n", "\\n", written, fixed = TRUE))
	})
	cat(paste0("| ", do.call(paste, c(unname(columns), sep = " | ")), "\n"), sep = "")
}

failed <- function(failure) cat("!", gsub("\n.*", "", sub(".*ERROR: *", "", conditionMessage(failure))), "\n")

show <- function(connection, sql, values = NULL) {
	tryCatch({
		result <- if (length(values)) dbSendQuery(connection, sql, values) else dbSendQuery(connection, sql)
		info <- dbColumnInfo(result)
		found <- suppressWarnings(dbFetch(result, n = -1))
		dbClearResult(result)
		for (i in seq_len(nrow(info))) cat(":", unlist(lapply(info[i, ], as.character)), "\n")
		rows(found)
	}, error = failed)
}

# Queries that dbplyr writes
pipelines <- function(connection) {
	flights <- tbl(connection, "flights")
	carriers <- tbl(connection, "carriers")
	list(
		count = flights %>% count(carrier) %>% arrange(carrier),
		summary = flights %>% group_by(origin, destination) %>%
			summarise(n = n(), delay = mean(delay, na.rm = TRUE), miles = sum(distance, na.rm = TRUE), r = cor(distance, delay), .groups = "drop") %>%
			filter(n > 50) %>% arrange(origin, destination),
		median = flights %>% filter(distance > 500L) %>% group_by(carrier) %>%
			summarise(median = median(delay, na.rm = TRUE), spread = sd(delay, na.rm = TRUE)) %>% arrange(carrier),
		distinct = flights %>% distinct(origin, carrier) %>% arrange(origin, carrier),
		n_distinct = flights %>% group_by(carrier) %>% summarise(n = n_distinct(destination), last = max(date, na.rm = TRUE)) %>% arrange(carrier),
		join = flights %>% left_join(carriers, by = "carrier") %>% group_by(alliance) %>% summarise(n = n(), least = min(delay, na.rm = TRUE)) %>%
			arrange(alliance),
		late = flights %>% mutate(late = delay > 15L, month = date_trunc("month", date)) %>% group_by(month) %>%
			summarise(late = sum(ifelse(late, 1, 0), na.rm = TRUE), any = any(late, na.rm = TRUE)) %>% arrange(month),
		share = flights %>% group_by(carrier, origin) %>% summarise(n = n(), .groups = "drop_last") %>% mutate(share = n / sum(n, na.rm = TRUE)) %>%
			ungroup() %>% arrange(carrier, origin),
		top = flights %>% count(origin, name = "flights") %>% slice_max(flights, n = 5, with_ties = FALSE) %>% arrange(desc(flights), origin))
}

modes <- list(
	plain = function() {
		connection <- connect()
		for (query in read_queries(arguments[1])) {
			begin(query$name)
			show(connection, query$sql, query$values)
		}
	},
	dbplyr = function() {
		connection <- connect()
		all <- pipelines(connection)
		for (name in names(all)) {
			begin(name)
			tryCatch(rows(as.data.frame(collect(all[[name]]))), error = failed)
		}
		# the text as a table, as tbl(connection, sql(...)) writes it
		for (query in read_queries(arguments[1])) {
			if (length(query$values)) next
			begin(query$name)
			tryCatch(rows(as.data.frame(tbl(connection, sql(query$sql)) %>% collect())), error = failed)
		}
	},
	# Rows in several fetches, and results that are closed before their end
	portals = function() {
		connection <- connect()
		for (most in c(1, 30, 10000)) {
			begin(paste("portals closed after", most))
			result <- dbSendQuery(connection, MANY)
			count <- 0
			while (count < most && !dbHasCompleted(result)) {
				rows(suppressWarnings(dbFetch(result, n = 7)))
				count <- count + 7
			}
			dbClearResult(result)
			show(connection, QUICK)
		}
	},
	timeout = function() {
		connection <- connect()
		dbExecute(connection, "SET statement_timeout = 700")
		begin("timeout")
		show(connection, SLOW)
		dbExecute(connection, "SET statement_timeout = 0")
		begin("after that")
		show(connection, QUICK)
	})

modes[[arguments[2]]]()
