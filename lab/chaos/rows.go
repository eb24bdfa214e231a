package main

import (
	"context"
	"fmt"
	"math/big"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/storestream/storestream/internal/storefake"
)

// rowsOf is what the service has of a resource now, as a topic shows it. Tables are asked, and not the stand-in's memory: a bulk UPDATE whose connection
// broke may have come to stay without its knowing.
func (s *stage) rowsOf(ctx context.Context, resource string) (map[int64]row, error) {
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
	found, err := conn.Query(ctx, "SELECT "+strings.Join(texts(columns), ", ")+" FROM "+pgx.Identifier{resource}.Sanitize())
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

// column is a column of a table by its document, and how it is asked for as text.
type column struct{ name, kind string }

var tables = map[string][]column{
	storefake.Orders: {{"id", "integer"}, {"user_id", "integer"}, {"status", "text"}, {"total_amount", "money"}, {"created_at", "instant"}, {"updated_at", "instant"}},
	storefake.OrderItems: {{"id", "integer"}, {"order_id", "integer"}, {"product_id", "integer"}, {"sale_price", "money"}, {"quantity", "integer"},
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
