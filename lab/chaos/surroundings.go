package main

import (
	"context"
	"errors"
	"fmt"
	"math/big"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/storestream/storestream/internal/standins/servers"
	"github.com/storestream/storestream/internal/standins/storefake"
)

// surroundings are everything that storestream stands between. They live as long as the run.
type surroundings struct {
	plan     *plan
	postgres *servers.Postgres // nil if orders and items are read over REST
	pooler   *pooler           // nil in that case too
	broker   *broker
	registry *registry
	fake     *storefake.Fake
	stops    []func() error
}

// startSurroundings starts all parts, in order.
func startSurroundings(ctx context.Context, p *plan, dir string) (_ *surroundings, err error) {
	s := &surroundings{plan: p}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.stop())
		}
	}()
	if p.source == fromDatabase {
		s.postgres, err = servers.StartPostgres(ctx, servers.PostgresConfig{Dir: filepath.Join(dir, "postgres"),
			Settings: map[string]string{"max_prepared_transactions": "20"}})
		if err != nil {
			return nil, err
		}
		s.stops = append(s.stops, s.postgres.Stop)
		if s.pooler, err = startPooler(ctx, s.postgres, dir); err != nil {
			return nil, err
		}
		s.stops = append(s.stops, s.pooler.stop)
	}
	if s.broker, err = startBroker(ctx, p.broker, dir); err != nil {
		return nil, err
	}
	s.stops = append(s.stops, s.broker.stop)
	if s.registry, err = startRegistry(ctx, p.registry, dir); err != nil {
		return nil, err
	}
	s.stops = append(s.stops, s.registry.stop)
	if s.fake, err = startService(ctx, p, s.postgres); err != nil {
		return nil, err
	}
	s.stops = append(s.stops, func() error { s.fake.Close(); return nil })
	return s, nil
}

// startService starts the stand-in. The plan says how far its clock is behind ours.
func startService(ctx context.Context, p *plan, postgres *servers.Postgres) (*storefake.Fake, error) {
	v := &p.service
	c := storefake.Config{Seed: p.seed, Size: v.size, Readings: v.readings, WholeSeconds: v.wholeSeconds}
	if postgres != nil {
		c.Database = storefake.Database{DSN: postgres.AdminDSN(databaseName), Password: readerPassword,
			Columns: v.columns, NoIndex: v.noIndex, OwnClock: true}
	} else {
		c.Start, c.Speed = time.Now().Add(-v.behind), v.speed
	}
	fake, err := storefake.Start(ctx, c)
	if err != nil || !v.sparse {
		return fake, err
	}
	for table := range tables {
		if err := fake.Exec(ctx, fmt.Sprintf(scatterSQL, table, fillFactor)); err != nil {
			fake.Close()
			return nil, err
		}
	}
	return fake, nil
}

// scatterSQL makes a table so large that storestream loads it in the order of its blocks: a block has eight
// rows, and they lie in no order of time.
const scatterSQL = "ALTER TABLE %[1]s SET (fillfactor = %[2]d); CREATE INDEX %[1]s_scattered ON %[1]s " +
	"(hashint8(id)); CLUSTER %[1]s USING %[1]s_scattered; ANALYZE %[1]s"

const fillFactor = 10 // the least that there is

// stop stops all parts in reverse.
func (s *surroundings) stop() error {
	var errs []error
	for _, f := range slices.Backward(s.stops) {
		errs = append(errs, f())
	}
	return errors.Join(errs...)
}

// readerDSN is the DSN by which storestream reads tables, or "" if it reads none.
func (s *surroundings) readerDSN() string {
	if s.pooler == nil {
		return ""
	}
	return s.pooler.dsn()
}

// readsTable says whether a resource is read from PostgreSQL.
func (s *surroundings) readsTable(resource string) bool {
	_, table := tables[resource]
	return s.postgres != nil && table
}

// shown rounds an instant as the topic keeps it: PostgreSQL's to the millisecond, REST's to the second.
func (s *surroundings) shown(resource string, at time.Time) time.Time {
	if s.readsTable(resource) {
		return at.Truncate(time.Millisecond)
	}
	return at.Truncate(time.Second)
}

// rowsOf returns the service's rows of a resource, as a topic shows them. It reads the tables, and not the
// stand-in's memory: a bulk UPDATE whose connection broke may have been committed without the stand-in's
// knowing.
func (s *surroundings) rowsOf(ctx context.Context, resource string) (map[int64]row, error) {
	rows := map[int64]row{}
	if !s.readsTable(resource) {
		for id, r := range s.fake.Rows(resource) {
			rows[id] = s.wanted(resource, r)
		}
		return rows, nil
	}
	conn, err := pgx.Connect(ctx, s.postgres.AdminDSN(databaseName))
	if err != nil {
		return nil, fmt.Errorf("reading table %s: %w", resource, err)
	}
	defer conn.Close(ctx)
	columns := tables[resource]
	found, err := conn.Query(ctx, "SELECT "+strings.Join(texts(columns),
		", ")+" FROM "+pgx.Identifier{resource}.Sanitize())
	if err != nil {
		return nil, fmt.Errorf("reading table %s: %w", resource, err)
	}
	defer found.Close()
	for found.Next() {
		fields := make([]*string, len(columns))
		into := make([]any, len(columns))
		for i := range fields {
			into[i] = &fields[i]
		}
		if err := found.Scan(into...); err != nil {
			return nil, fmt.Errorf("reading table %s: %w", resource, err)
		}
		r := row{}
		for i, c := range columns {
			if r[c.name], err = c.value(fields[i]); err != nil {
				return nil, fmt.Errorf("reading table %s, column %s: %w", resource, c.name, err)
			}
		}
		id, ok := r["id"].(int64)
		if !ok {
			return nil, fmt.Errorf("table %s has a row without id", resource)
		}
		rows[id] = r
	}
	return rows, found.Err()
}

// wanted is a row of the service as a topic shows it.
func (s *surroundings) wanted(resource string, r storefake.Row) row {
	out := row{}
	for field, v := range r {
		switch v := v.(type) {
		case storefake.Money:
			out[field], _ = new(big.Rat).SetString(string(v))
		case time.Time:
			out[field] = s.shown(resource, v)
		default:
			out[field] = v
		}
	}
	return out
}

// column is a column of a table by its document, and how it is asked for as text.
type column struct{ name, kind string }

var tables = map[string][]column{
	storefake.Orders: {{"id", "integer"}, {"user_id", "integer"}, {"status", "text"}, {"total_amount", "money"},
		{"created_at", "instant"}, {"updated_at", "instant"}},
	storefake.OrderItems: {{"id", "integer"}, {"order_id", "integer"}, {"product_id", "integer"},
		{"sale_price", "money"}, {"quantity", "integer"},
		{"amount", "money"}, {"created_at", "instant"}, {"updated_at", "instant"}},
}

func texts(columns []column) []string {
	var list []string
	for _, c := range columns {
		if c.kind == "instant" { // of a naive timestamp it is that of UTC
			list = append(list, "floor(extract(epoch FROM "+c.name+") * 1000)::bigint::text")
		} else {
			list = append(list, c.name+"::text")
		}
	}
	return list
}

func (c column) value(text *string) (any, error) {
	if text == nil {
		return nil, nil
	}
	switch c.kind {
	case "integer":
		return strconv.ParseInt(*text, 10, 64)
	case "instant":
		millis, err := strconv.ParseInt(*text, 10, 64)
		return time.UnixMilli(millis).UTC(), err
	case "money":
		exact, ok := new(big.Rat).SetString(*text)
		if !ok {
			return nil, fmt.Errorf("%q is no number", *text)
		}
		return exact, nil
	}
	return *text, nil
}
