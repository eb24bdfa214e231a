package health

// Reasons are all reasons for which a resource is blocked or incomplete, settling is delayed, or a row is
// deferred. A test compares the texts with those in the code.
var Reasons = []Reason{
	// It comes first, because its text may contain a person's own words.
	{Code: "paused", State: Paused, Says: "paused by",
		Remedy: "`storestream resume RESOURCE` ends it. With --for it also ends by itself"},

	// A limit of storestream.
	{Code: "memory_full", State: Blocked, Says: "poll.memory is full | poll.memory is too small to go on",
		Means: "More rows changed since settled than the resource may remember. No row is lost or repeated.",
		Remedy: "see the reason why settling is delayed, and follow its remedy. Or set poll.memory to the size " +
			"that the text names, with more memory for the container, and restart",
		See: `docs/operations.md, "Settling is delayed"`},

	// The rows or the fields of the source.
	{Code: "all_rows_unfit", State: Blocked, Says: "bigger is wrong than those rows",
		Means: "All rows that were read together break the contract.",
		Remedy: "correct the field at the service, or restore the table's block, as the text says. If the " +
			"schema is too narrow, change it and restart",
		See: changeSchema},
	{Code: "row_without_id", State: Blocked, Says: "a row has no id (NULL)",
		Means:  "PostgreSQL cannot read a row, and storestream finds such a row by its id.",
		Remedy: "give each row of the table an id"},
	{Code: "column_gone", State: Blocked, Says: "has no column",
		Remedy: "put the column back under its name (`ALTER TABLE RESOURCE RENAME COLUMN NEW TO OLD`), and it " +
			"goes on within a minute. If it is gone for good, take the field out of the schema and restart",
		See: changeSchema},
	{Code: "fields_lost", State: Blocked, Says: "the service's rows have lost",
		Means: "A field that every row had is in no row any more.",
		Remedy: "ask the service's owner to put the field back. If it is gone for good, take it out of the " +
			"schema and restart",
		See: changeSchema},
	{Code: "column_type", State: Blocked, Says: "do not fit the schema",
		Remedy: "put the column's type back, or let the table's name lead to a view that casts it"},

	// The REST service, whose own words may be those of a reason below.
	{Code: "api_key", State: Blocked, Says: "the service does not accept store.api_key",
		Remedy: "set store.api_key to a valid key and restart (a key in a file needs no restart). If you set " +
			"it to \"\" instead, storestream fetches one"},
	{Code: "redirect", State: Blocked, Says: "it redirects to",
		Remedy: "if the service lives there now, set store.base_url and restart. Otherwise find the proxy that " +
			"redirects"},
	{Code: "service_unusable", State: Blocked,
		Says: "the service's answers cannot be used | the service refuses a request | no API key could be " +
			"fetched",
		Means:  "The service refuses a request that its description allows, or its answers are too large.",
		Remedy: "ask the service's owner"},

	// The table.
	{Code: "other_table", State: Blocked, Says: "leads to another table",
		Remedy: "put the earlier relation back, or correct the search_path (`\\drds` in psql). If the new one " +
			"is right, confirm it: `storestream watermark reset RESOURCE --confirm-schema SCHEMA --to TIME`",
		See: `docs/lifecycle.md, "A database is restored, promoted or replaced"`},
	{Code: "foreign_rows", State: Blocked, Says: "Rows would be missed",
		Remedy: "let postgres.dsn lead to the server that has the rows, or the name to a plain view; or set " +
			"source: rest and restart. Then run `storestream sweep RESOURCE`: earlier rows may be missing"},
	{Code: "setting_missing", State: Blocked, Says: "asks for the setting",
		Remedy: "give the role a value that is not empty: `ALTER ROLE student_ro SET app.tenant = '...'`. Then " +
			"run `RECONNECT` in PgBouncer's console"},
	{Code: "no_table", State: Blocked, Says: "has no table | has no database",
		Remedy: "correct postgres.dsn or set source: rest, and restart"},

	// The way to the database.
	{Code: "login_refused", State: Blocked, Says: "refuses the login of role",
		Remedy: "correct user and password in postgres.dsn. A DSN in a file needs no restart for that"},
	{Code: "no_right", State: Blocked, Says: "role ... may not read",
		Remedy: "run the GRANT that the text names"},
	{Code: "pooler_refuses", State: Blocked, Says: "the pooler at ... refuses the connection",
		Remedy: "correct user, password, database or startup parameters in postgres.dsn. If the pooler is " +
			"full, raise its max_client_conn, or run fewer instances"},

	// Settling: PostgreSQL.
	{Code: "open_transaction", State: SettlingDelayed, Says: "is open since",
		Means: "Rows of that transaction may still appear.",
		Remedy: "ask the transaction's owner to end it. To find it, as an administrator: `SELECT backend_xid, " +
			"pid, datname, usename, xact_start, query FROM pg_stat_activity WHERE backend_xid IS NOT NULL ORDER " +
			"BY xact_start` (backend_xid is the id). `SELECT pg_terminate_backend(PID)` ends it and undoes its " +
			"writes. For a prepared one: `SELECT transaction, gid, database, owner, prepared FROM " +
			"pg_prepared_xacts`, and in that database `ROLLBACK PREPARED 'GID'` or `COMMIT PREPARED 'GID'`"},
	{Code: "clock_unsure", State: SettlingDelayed,
		Says:   "clock was set forward | a standby that has replayed no transaction since it started",
		Remedy: "wait. It is over after an overlap, or with the first transaction on the primary"},

	// Settling: REST. They follow "2026-11-20 cannot be closed:" or "could not be read completely:".
	{Code: "row_not_read", State: SettlingDelayed, Says: "cannot be read:",
		Means:  "The service fails for this row, and answers for others. All others are published. *No sweep.*",
		Remedy: "give the request in the text to the service's owner"},
	{Code: "order_changes", State: SettlingDelayed,
		Says:  "never showed them all | it takes several pages and was read once",
		Means: "The order of rows changes between requests, and the service gives no count of them.",
		Remedy: "wait. If it stays for days, run `storestream sweep RESOURCE` and ask the service's owner for " +
			"a stable order or a count"},
	{Code: "endless_pages", State: SettlingDelayed, Says: "the service says for ever that more pages follow",
		Means: "`has_more` stays true after the last row, and `meta.count` does not show how many rows there " +
			"are. Some rows are published up to an hour late. *No sweep.*",
		Remedy: "ask the service's owner to correct `has_more` or `meta.count`. If the count is right and you " +
			"have set store.dialect.count to estimate, set it to auto and restart"},
	{Code: "rows_not_shown", State: SettlingDelayed,
		Says: "says that nothing follows page | says that more pages follow, and has none",
		Means: "The service counts or announces more rows than it shows, or ends with a full page at any page " +
			"size. *No sweep.*",
		Remedy: "ask the service's owner for the other rows. If the count is an estimate, set " +
			"store.dialect.count to estimate and restart"},
	{Code: "too_many_pages", State: SettlingDelayed,
		Says:   "it has more pages than one pass reads | it falls into too many parts",
		Remedy: "let the service send 1,000 rows a page, or set source: postgres and restart"},
	{Code: "unfiltered", State: SettlingDelayed, Says: "as if it did not filter by updated_at",
		Remedy: "ask the service's owner. `storestream sweep RESOURCE` works meanwhile: it asks by created_at"},
	{Code: "cached", State: SettlingDelayed, Says: "answers are out of a cache | by its own Date",
		Means: "Old answers do not count, so the lag grows or settled stays. *No sweep.*",
		Remedy: "let the proxy pass requests with `Cache-Control: no-cache`, or set store.base_url to lead " +
			"around it and restart. Without a proxy, correct the servers' clocks"},
	{Code: "dates_refused", State: SettlingDelayed, Says: "the service refuses later ... dates than",
		Means:  "Requests that include all of today are refused, so polls do not count for the lag. *No sweep.*",
		Remedy: "ask the service's owner to accept tomorrow's date, or windows without a last date"},
	{Code: "unfit_page", State: SettlingDelayed, Says: "no row of a page can be published",
		Means:  "The resource is also blocked for this.",
		Remedy: "correct at the service the field that the block names"},
	{Code: "open_window_not_read", State: SettlingDelayed,
		Says: "could not be read completely | rows moved while it was looked for how the service reads to_ " +
			"dates",
		Means:  "This pass did not show that it met all of today's rows, so some may be late.",
		Remedy: "wait: the next poll tries again"},
	{Code: "day_not_closed", State: SettlingDelayed, Says: "cannot be closed",
		Means:  "The answers do not show that all rows of that day were read. Later days go on.",
		Remedy: "see the rest of the text"},

	// Rows.
	{Code: "dead_letters", State: Incomplete, Says: "because of dead letters",
		Remedy: "`storestream watermark list` names the rows by field and reason. Correct them at the service, " +
			"and then run `storestream dead-letters retry RESOURCE`. If the schema is too narrow, change it and " +
			"restart",
		See: deadLetters},
	{Code: "letters_full", State: SettlingDelayed, Says: "as many as may have dead letters",
		Remedy: "correct the rows at the service, then run `storestream sweep RESOURCE`",
		See:    deadLetters},
	{Code: "older_version", State: SettlingDelayed, Says: "came back older than",
		Means: "Perhaps transactions committed in the other order, or a replica lags.",
		Remedy: "wait. The rows are read again after the overlap, from the time in the text on. A restart or a " +
			"handover moves that time"},
}

// Headings of documents that several reasons refer to.
const (
	changeSchema = `docs/lifecycle.md, "Change a schema"`
	deadLetters  = `docs/operations.md, "Dead letters"`
)
