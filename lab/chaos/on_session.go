package main

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/storestream/storestream/internal/standins/storefake"
)

// PgBouncer hands a server connection from one client to the next in the state in which the last one left it.
// Another client of the same role sets which rows a name leads to, or how they are written, and disconnects.
var sessionKinds = []*kind{
	{name: "session state left by another client:", weight: 4, hits: thePooler, takes: 2 * time.Second,
		needs: overDatabase,
		details: func(d draw, _ *plan, e *event) {
			// Settings for how much is read, and how text is written, must do no harm either.
			e.how = oneOf(d, searchPath, searchPath, temporaryTable, temporaryTable, "SET row_security = off",
				"SET timezone = 'Pacific/Auckland'", "SET statement_timeout = '5s'", "SET extra_float_digits = -15",
				"SET default_transaction_isolation = 'serializable'", "SET datestyle = 'German'",
				"SET intervalstyle = 'sql_standard'", "SET default_transaction_read_only = off")
		},
		do: func(ctx context.Context, s *stage, e event) (func() error, error) {
			return nil, leaveSession(ctx, s, e.how)
		}},
}

const (
	searchPath     = "search_path to a schema with tables of its own"
	temporaryTable = "temporary tables of the same names"
)

// someRows is the SQL that fills another table with a table's name. It holds 20 of its rows, changed a moment
// ago. A reader of it would publish them, and find all others gone. Only a role that may write runs it.
const someRows = "%[2]sTABLE %[3]s%[1]s AS SELECT * FROM public.%[1]s ORDER BY id LIMIT 20; " +
	"UPDATE %[3]s%[1]s SET updated_at = clock_timestamp() AT TIME ZONE 'UTC'; "

// leaveSession sets something on some of the pooler's connections, and disconnects.
func leaveSession(ctx context.Context, s *stage, how string) error {
	ctx, cancel := context.WithTimeout(ctx, jobPatience)
	defer cancel()
	sql := how
	switch how {
	case searchPath:
		sql = "SET search_path = other, public"
		if err := s.job.makeOtherSchema(ctx); err != nil {
			return notPlayed(fmt.Sprintf("a schema of its own: %v", err))
		}
	case temporaryTable:
		sql = ""
		for _, table := range []string{storefake.Orders, storefake.OrderItems} {
			sql += fmt.Sprintf("DROP TABLE IF EXISTS pg_temp.%s; ", table) +
				fmt.Sprintf(someRows, table, "CREATE TEMP ", "pg_temp.")
		}
	}
	b := s.around.pooler.bouncer
	config, err := pgx.ParseConfig(b.DSN(storefake.ReaderRole, readerPassword, databaseName))
	if err != nil {
		return err
	}
	config.DefaultQueryExecMode = pgx.QueryExecModeSimpleProtocol
	// All clients are in a transaction before the first one ends. So each has a connection of its own, and
	// these include all that were idle.
	const clients = 6
	var conns []*pgx.Conn
	defer func() {
		for _, conn := range conns {
			_ = conn.Close(ctx)
		}
	}()
	for range clients {
		conn, err := pgx.ConnectConfig(ctx, config)
		if err == nil {
			conns = append(conns, conn)
			_, err = conn.Exec(ctx, "BEGIN READ WRITE")
		}
		if err != nil {
			return notPlayed(fmt.Sprintf("another client: %v", err))
		}
	}
	for _, conn := range conns {
		if _, err := conn.Exec(ctx, sql+"; COMMIT"); err != nil {
			return notPlayed(fmt.Sprintf("another client: %v", err))
		}
	}
	return nil
}

// makeOtherSchema makes the schema that searchPath leads to, with tables that the reader may read.
func (b *job) makeOtherSchema(ctx context.Context) error {
	sql := "DROP SCHEMA IF EXISTS other CASCADE; CREATE SCHEMA other; "
	for _, table := range []string{storefake.Orders, storefake.OrderItems} {
		sql += fmt.Sprintf(someRows, table, "CREATE ", "other.")
	}
	return b.exec(ctx, sql+fmt.Sprintf("GRANT USAGE ON SCHEMA other TO %[1]s; "+
		"GRANT SELECT ON ALL TABLES IN SCHEMA other TO %[1]s", storefake.ReaderRole))
}
