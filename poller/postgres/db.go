package postgres

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/storestream/storestream/internal/dsn"
	"github.com/storestream/storestream/internal/rotation"
)

const (
	connectTimeout = 10 * time.Second
	maxConnections = 4
)

// DB has the connections to one database. All sources of a process share them.
type DB struct {
	pool       *pgxpool.Pool
	login      *rotation.Value[*pgx.ConnConfig]
	settings   []string // the first statements of each transaction
	searchPath any      // the search_path that the DSN sets, or nil
}

// Open checks the DSN. It does not connect: if the database is down, the first read fails and is tried
// again. No error contains a part of the DSN. If set is not nil, it learns when user, password or
// certificates change.
func Open(text rotation.Secret, set *rotation.Set) (_ *DB, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("postgres.dsn: %w", err)
		}
	}()
	parsed, err := dsn.Parse(text.Get())
	if err != nil {
		return nil, err
	}
	config, err := parsed.Config()
	if err != nil {
		return nil, err
	}
	db := &DB{}
	if db.login, err = logins(text, set, parsed); err != nil {
		return nil, err
	}
	config.BeforeConnect = func(_ context.Context, cc *pgx.ConnConfig) error {
		now := db.login.Get()
		cc.User, cc.Password, cc.TLSConfig, cc.Fallbacks = now.User, now.Password, now.TLSConfig, now.Fallbacks
		return nil
	}
	config.MaxConns = maxConnections
	config.MaxConnIdleTime = 5 * time.Minute
	config.PingTimeout = 5 * time.Second // for the check of an idle connection before it is used

	cc := config.ConnConfig
	// The time of connecting is limited, and the bytes that the server may send, from its first message on.
	cc.ConnectTimeout = cmp.Or(cc.ConnectTimeout, connectTimeout)
	cc.MaxProtocolMessageBodyLen = maxMessage
	cc.BuildFrontend = boundServer
	cc.OnNotification = func(*pgconn.PgConn, *pgconn.Notification) {} // pgx would keep them
	// Nothing may live longer than a transaction: the next one may run on another connection of the pooler.
	cc.DefaultQueryExecMode = pgx.QueryExecModeExec
	cc.StatementCacheCapacity, cc.DescriptionCacheCapacity = 0, 0
	keepAlive := net.KeepAliveConfig{Enable: true, Idle: 15 * time.Second, Interval: 5 * time.Second, Count: 4}
	cc.DialFunc = (&net.Dialer{Timeout: connectTimeout, KeepAliveConfig: keepAlive}).DialContext
	cc.RuntimeParams["application_name"] = cmp.Or(cc.RuntimeParams["application_name"], "storestream")
	cc.RuntimeParams["client_encoding"] = "UTF8" // of the server's messages; clockSQL sees to the rows
	delete(cc.RuntimeParams, "search_path")      // a pooler may refuse it; clockSQL sets it
	if path := parsed["search_path"]; path != "" {
		db.searchPath = path
	}
	db.settings = beginTransaction(cc.RuntimeParams)
	db.pool, err = pgxpool.NewWithConfig(context.Background(), config)
	return db, err
}

// address returns the host and the port of the next connection.
func (db *DB) address() string {
	cc := db.login.Get()
	return net.JoinHostPort(cc.Host, strconv.Itoa(int(cc.Port)))
}

// Close waits for the running reads and closes the connections.
func (db *DB) Close() { db.pool.Close() }
