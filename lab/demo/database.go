package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/storestream/storestream/internal/standins/servers"
	"github.com/storestream/storestream/internal/standins/storefake"
	"github.com/storestream/storestream/internal/terminal"
)

const (
	// databaseName is the one that storefake has to itself.
	databaseName = "store"
	// readerPassword is that of storefake.ReaderRole. It guards invented rows on 127.0.0.1, so it may be shown.
	readerPassword = "student"
)

// database is PostgreSQL, with PgBouncer in front of it if this machine has one. If it is nil, orders and
// order items go over REST.
type database struct {
	postgres *servers.Postgres
	pooler   *servers.PgBouncer // nil if clients connect directly
	off      bool               // the user has had it stopped
	trouble  error              // of the last attempt to stop or start it
}

// overREST is what follows if there is no PostgreSQL.
const overREST = "So orders and order items go over REST too."

// startDatabase starts PostgreSQL with an empty database, and PgBouncer. Where PostgreSQL cannot be had there
// is none, and the screen says why.
func startDatabase(ctx context.Context, s *screen, ports *ports, without bool) (*database, error) {
	if without {
		s.part("PostgreSQL", "none", "--no-postgres")
		s.print("    " + overREST)
		return nil, nil
	}
	s.starting("PostgreSQL")
	began := time.Now()
	p, err := servers.StartPostgres(ctx, servers.PostgresConfig{Port: ports.postgres.number})
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if err != nil {
		s.part("PostgreSQL", "none", "it cannot be started:")
		s.reason(err)
		s.print("    " + overREST)
		return nil, nil
	}
	db := &database{postgres: p}
	version, err := db.make(ctx)
	if err != nil {
		return db, err
	}
	ready := "ready after " + terminal.Duration(time.Since(began))
	s.part("PostgreSQL "+version, local(p.Port), ready, ports.postgres.remark())
	return db, db.startPooler(ctx, s, &ports.pooler)
}

// make makes the empty database and returns the server's version.
func (db *database) make(ctx context.Context) (version string, err error) {
	conn, err := pgx.Connect(ctx, db.postgres.AdminDSN("postgres"))
	if err != nil {
		return "", fmt.Errorf("make the database %s: %w", databaseName, err)
	}
	defer conn.Close(ctx)
	if _, err := conn.Exec(ctx, "CREATE DATABASE "+pgx.Identifier{databaseName}.Sanitize()); err != nil {
		return "", fmt.Errorf("make the database %s: %w", databaseName, err)
	}
	err = conn.QueryRow(ctx, "SELECT split_part(current_setting('server_version'), ' ', 1)").Scan(&version)
	return version, err
}

// startPooler starts PgBouncer in front of PostgreSQL, as the real service has one. It uses an installed one:
// only distributions offer binaries, so there is no fetching it.
func (db *database) startPooler(ctx context.Context, s *screen, at *port) error {
	s.starting("PgBouncer")
	b, err := servers.StartPgBouncer(ctx, servers.PgBouncerConfig{
		Postgres: db.postgres, Users: map[string]string{storefake.ReaderRole: readerPassword}, Port: at.number,
		// If you stop PostgreSQL to see the effect, you should not have to wait for two minutes, PgBouncer's
		// default.
		Settings: map[string]string{"query_wait_timeout": "10"},
	})
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		s.part("PgBouncer", "none", "PostgreSQL is read directly:")
		s.reason(err)
		return nil
	}
	db.pooler = b
	s.part("PgBouncer", local(b.Port), "pooler, transaction mode", at.remark())
	return nil
}

func (db *database) stop() error {
	var err error
	if db.pooler != nil {
		err = db.pooler.Stop()
	}
	return errors.Join(err, db.postgres.Stop())
}

// readerDSN is the DSN by which storestream reads orders and order items, or "" if they come over REST.
func (db *database) readerDSN() string {
	switch {
	case db == nil:
		return ""
	case db.pooler == nil:
		return db.postgres.DSN(storefake.ReaderRole, readerPassword, databaseName)
	default:
		return db.pooler.DSN(storefake.ReaderRole, readerPassword, databaseName)
	}
}

// toggle stops PostgreSQL, so that the user sees storestream's reaction, and starts it again the next time.
func (db *database) toggle(ctx context.Context) {
	if db == nil {
		return
	}
	if db.off {
		db.trouble = db.postgres.Start(ctx)
	} else {
		db.trouble = db.postgres.Shutdown()
	}
	if db.trouble == nil {
		db.off = !db.off
	}
}

// state says that PostgreSQL was stopped, "" if it was not.
func (db *database) state() string {
	switch {
	case db == nil:
		return ""
	case db.trouble != nil:
		return "PostgreSQL: " + db.trouble.Error()
	case db.off:
		return fmt.Sprintf("PostgreSQL is stopped, as you asked: kill -USR1 %d starts it again", os.Getpid())
	}
	return ""
}
