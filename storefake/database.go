package storefake

import (
	"context"
	"time"
)

type database struct{ columns Columns }

type Columns struct{}

func (Columns) floatBits() int { return 0 }

type databaseTx struct{}

func (*database) begin(context.Context) (*databaseTx, error)                           { return nil, nil }
func (*database) bulkUpdate(context.Context, *resource, int64, int64, time.Time) error { return nil }
func (*databaseTx) update(context.Context, *resource, []cell) error                    { return nil }
func (*databaseTx) insert(context.Context, *resource, []cell) error                    { return nil }
func (*databaseTx) delete(context.Context, *resource, int64) error                     { return nil }
func (*databaseTx) commit(context.Context) error                                       { return nil }
func (*databaseTx) rollback(context.Context)                                           {}

type Database struct{ DSN string }

func (*Database) Check() error                           { return nil }
func (s *Store) connect(context.Context, Database) error { return nil }
func (s *Store) load(context.Context) error              { return nil }
func (s *Store) Close()                                  {}
