package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/storestream/storestream/internal/servers"
	"github.com/storestream/storestream/internal/storefake"
)

const (
	// database is the one that storefake has to itself.
	database = "store"
	// readerPassword is that of storefake.ReaderRole. It guards invented rows on 127.0.0.1, so it may be shown.
	readerPassword = "student"
)

// startPostgres starts PostgreSQL with an empty database. A machine on which that cannot be had takes orders over REST, and is told why.
func (d *demo) startPostgres(ctx context.Context) error {
	if d.noPostgres {
		d.screen.part("PostgreSQL", "none", "--no-postgres: orders and order items go over REST too")
		return nil
	}
	d.screen.starting("PostgreSQL")
	began := time.Now()
	p, err := servers.StartPostgres(ctx, servers.PostgresConfig{Port: d.ports.postgres.number})
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		d.screen.part("PostgreSQL", "none", "orders and order items go over REST too, because:")
		d.screen.reason(err)
		return nil
	}
	d.onStop(p.Stop)
	version, err := makeDatabase(ctx, p)
	if err != nil {
		return err
	}
	d.postgres = p
	d.screen.part("PostgreSQL "+version, local(p.Port), fmt.Sprintf("private, ready after %s", duration(time.Since(began))), d.ports.postgres.remark())
	return nil
}

// makeDatabase makes the empty database and returns the server's version.
func makeDatabase(ctx context.Context, p *servers.Postgres) (version string, err error) {
	conn, err := pgx.Connect(ctx, p.AdminDSN("postgres"))
	if err != nil {
		return "", fmt.Errorf("make the database %s: %w", database, err)
	}
	defer conn.Close(ctx)
	if _, err := conn.Exec(ctx, "CREATE DATABASE "+pgx.Identifier{database}.Sanitize()); err != nil {
		return "", fmt.Errorf("make the database %s: %w", database, err)
	}
	err = conn.QueryRow(ctx, "SELECT split_part(current_setting('server_version'), ' ', 1)").Scan(&version)
	return version, err
}

// switchDatabase stops PostgreSQL, for somebody to see what is said of it, and starts it again the next time.
func (d *demo) switchDatabase(ctx context.Context) {
	if d.postgres == nil {
		return
	}
	var err error
	if d.databaseOff {
		err = d.postgres.Start(ctx)
	} else {
		err = d.postgres.Shutdown()
	}
	if d.databaseTrouble = err; err == nil {
		d.databaseOff = !d.databaseOff
	}
}

// databaseState says that PostgreSQL was stopped, "" if it was not.
func (d *demo) databaseState() string {
	switch {
	case d.databaseTrouble != nil:
		return "PostgreSQL: " + d.databaseTrouble.Error()
	case d.databaseOff:
		return fmt.Sprintf("PostgreSQL is stopped, as you asked: kill -USR1 %d starts it again", os.Getpid())
	}
	return ""
}

// startPooler starts PgBouncer in front of PostgreSQL, as the real service has one. It is only found, never fetched: nobody offers binaries of it
// outside distributions.
func (d *demo) startPooler(ctx context.Context) error {
	if d.postgres == nil {
		return nil
	}
	d.screen.starting("PgBouncer")
	b, err := servers.StartPgBouncer(ctx, servers.PgBouncerConfig{
		Postgres: d.postgres, Users: map[string]string{storefake.ReaderRole: readerPassword}, Port: d.ports.pooler.number,
	})
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		d.screen.part("PgBouncer", "none", "storestream reads straight from PostgreSQL, because:")
		d.screen.reason(err)
		return nil
	}
	d.pooler = b
	d.onStop(b.Stop)
	d.screen.part("PgBouncer", local(b.Port), "transaction mode, in front of PostgreSQL", d.ports.pooler.remark())
	return nil
}

// readerDSN is where storestream reads orders and order items: "" where only REST has them.
func (d *demo) readerDSN() string {
	switch {
	case d.postgres == nil:
		return ""
	case d.pooler == nil:
		return d.postgres.DSN(storefake.ReaderRole, readerPassword, database)
	default:
		return d.pooler.DSN(storefake.ReaderRole, readerPassword, database)
	}
}

// startStore starts the stand-in for the service, with its history.
func (d *demo) startStore(ctx context.Context) error {
	d.screen.starting("data service")
	began := time.Now()
	c := storefake.Config{Listen: d.ports.service.address(), Seed: d.seed, Size: d.size}
	if d.postgres != nil {
		c.Database = storefake.Database{DSN: d.postgres.AdminDSN(database), Password: readerPassword}
	}
	s, err := storefake.Start(ctx, c)
	if err != nil {
		return fmt.Errorf("data service: %w", err)
	}
	d.store = s
	d.onStop(func() error { s.Close(); return nil })
	rows := 0
	for _, name := range storefake.Names() {
		rows += s.Count(name)
	}
	d.screen.part("data service", s.BaseURL(),
		fmt.Sprintf("storefake, %s rows made in %s", count(int64(rows)), duration(time.Since(began))), d.ports.service.remark())
	return nil
}

func (d *demo) startTraffic(context.Context) error {
	d.store.StartTraffic(d.traffic)
	d.onStop(func() error { d.store.Quiesce(); return nil })
	return nil
}

// trafficTrouble says which changes of the traffic failed, "" if none.
func (d *demo) trafficTrouble() string {
	n, err := d.store.TrafficErrors()
	if n == 0 || errors.Is(err, context.Canceled) {
		return ""
	}
	return fmt.Sprintf("%s changes of the shop failed, the last one: %v", count(int64(n)), err)
}
