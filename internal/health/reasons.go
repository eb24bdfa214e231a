package health

// Reasons are all reasons for which a resource is blocked or incomplete, settling is delayed, or a row is
// deferred. A test holds the texts in the code to them.
var Reasons = []Reason{
	// A person's own words may be in it, so it comes first.
	{Code: "paused", State: Paused, Says: "paused by",
		Means:  "a person asked for a pause: polls, sweeps, erases and replays wait. The lag grows",
		Remedy: "`storestream resume RESOURCE` ends it; with --for it also ends by itself"},

	// A limit of storestream.
	{Code: "memory_full", State: Blocked, Says: "poll.memory is full | poll.memory is too small to go on",
		Means: "more rows changed since settled than the resource may remember; `too small to go on`: a takeover " +
			"could not restore them, and cannot tell which were published. Nothing is lost or repeated. A first " +
			"load over REST needs 2MiB, and each open day 24 bytes a row",
		Remedy: "end what delays settling, and it goes on by itself once settled moves; or set poll.memory to " +
			"the size that the text names, and restart"},

	// The rows or the fields of the source.
	{Code: "all_rows_unfit", State: Blocked, Says: "bigger is wrong than those rows",
		Means: "every row that was read together breaks the contract. They are left out and the others go on. " +
			"Settled stays before them",
		Remedy: "correct at the service the field that the text names, or restore the table's block that it " +
			"names, and it goes on by itself; or, if the schema is too narrow, change it (schemas.dir) and restart",
		See: "Changing a schema"},
	{Code: "row_without_id", State: Blocked, Says: "a row has no id (NULL)",
		Means: "the database cannot read a row at that place or behind it, and finds such a row by its id. Rows " +
			"before it are published. Settled stays before it",
		Remedy: "give each row of the table an id, and it goes on by itself"},
	{Code: "column_gone", State: Blocked, Says: "has no column",
		Means: "a column was renamed or dropped, or the table was replaced by one without it. Nothing is " +
			"published, so that null does not replace good values",
		Remedy: "put the column back under its name (`ALTER TABLE orders RENAME COLUMN NEW TO OLD`), and it goes " +
			"on by itself within a minute. If it is gone for good, take the field out of the schema (schemas.dir) " +
			"and restart", See: "Changing a schema"},
	{Code: "fields_lost", State: Blocked, Says: "the service's rows have lost",
		Means: "a field that every row had is in no row any more. Nothing is published, so that null does not " +
			"replace good values",
		Remedy: "ask the service's owner to put the field back: it goes on by itself. If it is gone for good, " +
			"take it out of the schema (schemas.dir) and restart", See: "Changing a schema"},
	{Code: "column_type", State: Blocked, Says: "do not fit the schema",
		Means:  "storestream does not read a column of this type as this field",
		Remedy: "put the column's type back, or let the table's name lead to a view that casts it"},

	// The REST service, whose own words may be those of a reason below.
	{Code: "api_key", State: Blocked, Says: "the service does not accept store.api_key",
		Means: "a key that you set is never replaced by itself",
		Remedy: "set store.api_key to a valid key and restart (a key in a file needs no restart), or to \"\", " +
			"and one is fetched"},
	{Code: "redirect", State: Blocked, Says: "it redirects to",
		Means: "a redirect to another address is not followed, because the API key would go with the request. " +
			"Three within the service's own address are followed",
		Remedy: "if the service lives there now, set store.base_url and restart; otherwise ask which proxy " +
			"stands before the service"},
	{Code: "service_unusable", State: Blocked,
		Says: "the service's answers cannot be used | the service refuses a request | no API key could be fetched",
		Means: "the service refuses what its description allows (403 and the like were tried several times, in " +
			"case they refuse for the rate), or does not end its answers, or sends more rows than a page may " +
			"have, or rows that are far too large. Settled stays before it",
		Remedy: "ask the service's owner. It is tried again by itself"},

	// The table.
	{Code: "other_table", State: Blocked, Says: "leads to another table",
		Means: "the table's name leads to a relation in another schema, or of another kind, which is not read",
		Remedy: "look at the search_path of role and database (`\\drds` in psql). If the earlier relation is " +
			"right, put it back, or set search_path in postgres.dsn. If the new one is right, confirm it by a reset " +
			"with --confirm-schema",
		See: "A database that is restored, promoted or replicated"},
	{Code: "foreign_rows", State: Blocked, Says: "Rows would be missed",
		Means: "the table leads to a foreign table or a materialized view. This server's clock and transactions " +
			"do not tell which rows appear there, so the resource is not read",
		Remedy: "let postgres.dsn lead to the server that has the rows, or the name to a plain view of its " +
			"tables; or set source: rest and restart. Then run `storestream sweep`: earlier rows may be missing"},
	{Code: "setting_missing", State: Blocked, Says: "asks for the setting",
		Means: "a view or policy of the table goes by a setting that the role has no value for. Another client " +
			"of the pooler may change it, and the view then shows other rows. Nothing is read",
		Remedy: "give the role a value: `ALTER ROLE student_ro SET app.tenant = '...'` (not empty). Then let the " +
			"pooler open its connections anew (`RECONNECT` in PgBouncer's console)"},
	{Code: "no_table", State: Blocked, Says: "has no table | has no database",
		Remedy: "correct postgres.dsn, or set source: rest and restart"},

	// The way to the database.
	{Code: "login_refused", State: Blocked, Says: "refuses the login of role",
		Remedy: "correct user and password in postgres.dsn"},
	{Code: "no_right", State: Blocked, Says: "role ... may not read",
		Remedy: "run the GRANT that the text names"},
	{Code: "pooler_refuses", State: Blocked, Says: "the pooler at ... refuses the connection",
		Means: "the pooler's own sentence follows",
		Remedy: "correct user, password, database or startup parameters in postgres.dsn; or, if the pooler is " +
			"full, raise its max_client_conn, or run fewer instances"},

	// Settling: PostgreSQL.
	{Code: "open_transaction", State: SettlingDelayed, Says: "is open since",
		Means: "a transaction is open in one of the server's databases. `before` and a time mean that this " +
			"instance was started then, and found it open",
		Remedy: "tell its owner: `SELECT backend_xid, pid, datname, usename, xact_start, query FROM " +
			"pg_stat_activity WHERE backend_xid IS NOT NULL ORDER BY xact_start` (backend_xid is the id). `SELECT " +
			"pg_terminate_backend(PID)` ends it and undoes its writes (as its role, pg_signal_backend or " +
			"superuser). A prepared one: `SELECT transaction, gid, database, owner, prepared FROM " +
			"pg_prepared_xacts`, and in that database `ROLLBACK PREPARED 'GID'` or `COMMIT PREPARED 'GID'`"},
	{Code: "clock_unsure", State: SettlingDelayed,
		Says: "clock was set forward | a standby that has replayed no transaction since it started",
		Means: "the database's clock jumped: transactions that stamped before may write yet. A standby's clock " +
			"is the transactions that it replays",
		Remedy: "nothing: it is over after an overlap, or with the first transaction on the primary"},

	// Settling: REST. What follows "2026-11-20 cannot be closed:" or "could not be read completely:".
	{Code: "row_not_read", State: SettlingDelayed, Says: "cannot be read:",
		Means: "the service fails for that row, by the request and the answer that the reason names, and answers " +
			"others. All other rows are published, and later days go on. *No sweep*",
		Remedy: "give the request to the service's owner. It is tried again by itself, after 30 s and then at " +
			"longer intervals, up to an hour"},
	{Code: "order_changes", State: SettlingDelayed,
		Says: "never showed them all | it takes several pages and was read once",
		Means: "the order changes between requests, and nothing says how many rows there are. Today's pages are " +
			"then read once in each poll, for half a minute, or three times as long as several passes took",
		Remedy: "nothing: several passes are tried again. If it stays for days, `storestream sweep RESOURCE` and " +
			"ask the service's owner for an order that holds, or a count"},
	{Code: "endless_pages", State: SettlingDelayed, Says: "the service says for ever that more pages follow",
		Means: "`has_more` is true also behind the last row, and `meta.count` does not show how many rows there " +
			"are, or may not by `store.dialect.count`. Rows are published as they are met, some late by up to an " +
			"hour. *No sweep*",
		Remedy: "ask the service's owner: one of the two has to be right. If its count is, set " +
			"store.dialect.count to auto and restart"},
	{Code: "rows_not_shown", State: SettlingDelayed,
		Says: "says that nothing follows page | says that more pages follow, and has none",
		Means: "the service may cut its listings short: it counts more rows than it shows, or ends with a full " +
			"page at any page size, or says that more pages follow and has none. Smaller windows were tried. " +
			"*No sweep*",
		Remedy: "ask the service's owner for the rest of the rows. If its count is an estimate, set " +
			"store.dialect.count to estimate and restart"},
	{Code: "too_many_pages", State: SettlingDelayed,
		Says: "it has more pages than one pass reads | it falls into too many parts",
		Means: "one day has more rows than a pass reads (50 million at 1,000 a page), or the service grants few " +
			"rows a page",
		Remedy: "let the service grant 1,000 rows a page, or set source: postgres and restart"},
	{Code: "unfiltered", State: SettlingDelayed, Says: "as if it did not filter by updated_at",
		Means:  "the service sends rows that the request left out, so no answer shows that a day was read whole",
		Remedy: "ask the service's owner. `storestream sweep RESOURCE` compares meanwhile: it asks by created_at"},
	{Code: "cached", State: SettlingDelayed, Says: "answers are out of a cache | by its own Date",
		Means: "answers have an `Age`, although every request asks for fresh ones (`Cache-Control: no-cache`): " +
			"the lag grows, and rows of answers older than the overlap are not published. Or an answer about a day " +
			"that is over says that it was made before its end. Perhaps a proxy gives old answers, and hides `Age`, " +
			"or the service's servers have clocks that differ. Settled stays. *No sweep*",
		Remedy: "have the proxy let requests with no-cache through, or lead around it (store.base_url) " +
			"and restart; if there is none, set the servers' clocks"},
	{Code: "dates_refused", State: SettlingDelayed, Says: "the service refuses later ... dates than",
		Means: "each window needs a last date, and the service refuses the dates that would take in all of " +
			"today. So polls do not count for lag. *No sweep*",
		Remedy: "ask the service's owner to answer for tomorrow, too, or for windows without a last date"},
	{Code: "unfit_page", State: SettlingDelayed, Says: "no row of a page can be published",
		Means:  "every row of a page breaks the contract: the resource is blocked for them, too",
		Remedy: "correct at the service the field that the block names"},
	{Code: "open_window_not_read", State: SettlingDelayed,
		Says: "could not be read completely | rows moved while it was looked for how the service reads to_ dates",
		Means: "this pass could not show that it met all of today's rows, so some may be late; or a row that was " +
			"to show whether a filter's days are whole changed meanwhile",
		Remedy: "nothing: the next poll tries again"},
	{Code: "day_not_closed", State: SettlingDelayed, Says: "cannot be closed",
		Means: "the service's answers do not show that all rows of that day were read. Later days go on. It is " +
			"tried again after 30 s and then at longer intervals, up to an hour",
		Remedy: "see the rest of the text"},

	// Rows.
	{Code: "dead_letters", State: Incomplete, Says: "because of dead letters",
		Means: "more than five rows, or more than one in a thousand, break the contract. They are left out, and " +
			"the others go on. Fewer rows are shown as a count",
		Remedy: "`storestream watermark list` names the rows by field and reason. Correct them at the service, " +
			"and they are published by themselves; or, if the schema is too narrow, change it (schemas.dir) and " +
			"restart", See: "Dead letters"},
	{Code: "letters_full", State: SettlingDelayed, Says: "as many as may have dead letters",
		Means: "more than 100,000 rows of the resource cannot be published. The rest of them waits without a " +
			"letter; rows that can be published are published",
		Remedy: "correct the rows at the service, then `storestream sweep RESOURCE`", See: "Dead letters"},
	{Code: "older_version", State: Deferred, Says: "came back older than",
		Means: "rows show an older updated_at than was published, or the same with other content: transactions " +
			"that committed in the other order, two changes within a second, a replica that lags, a correction",
		Remedy: "nothing: they are looked at again after the overlap, from the time that the text names. A " +
			"restart or another owner meets them again, and then that time moves"},
}
