package postgres

import (
	"context"
	"fmt"
	"maps"
	"net"
	"slices"
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
	// pingTimeout limits the check of an idle connection before it is used.
	pingTimeout = 5 * time.Second
)

// Config configures a DB.
type Config struct {
	DSN            rotation.Secret
	MaxConnections int           // zero means 4
	Rotation       *rotation.Set // if set, it learns when user, password or certificates change
}

// DB has the connections to one database. All sources of a process share them.
type DB struct {
	pool       *pgxpool.Pool
	login      *rotation.Value[*pgx.ConnConfig]
	parameters []string // names of the startup parameters that the DSN sets
	settings   []string // the first statements of each transaction
	searchPath []byte   // the search_path that the DSN sets, or nil
}

// Open checks the DSN. It does not connect: if the database is down, the first read fails and is tried
// again. No error contains a part of the DSN.
func Open(c Config) (*DB, error) {
	parsed, err := dsn.Parse(c.DSN.Get())
	if err != nil {
		return nil, fmt.Errorf("postgres.dsn: %w", err)
	}
	config, err := bounded(parsed)
	if err != nil {
		return nil, fmt.Errorf("postgres.dsn: %w", err)
	}
	login, err := logins(c, parsed)
	if err != nil {
		return nil, fmt.Errorf("postgres.dsn: %w", err)
	}
	config.BeforeConnect = func(_ context.Context, cc *pgx.ConnConfig) error {
		now := login.Get()
		cc.User, cc.Password, cc.TLSConfig, cc.Fallbacks = now.User, now.Password, now.TLSConfig, now.Fallbacks
		return nil
	}
	config.MaxConns = 4
	if c.MaxConnections > 0 {
		config.MaxConns = int32(min(c.MaxConnections, 1000))
	}
	config.MinConns, config.MinIdleConns = 0, 0
	config.MaxConnIdleTime = 5 * time.Minute
	config.HealthCheckPeriod = 15 * time.Second
	config.PingTimeout = pingTimeout

	cc := config.ConnConfig
	delete(cc.RuntimeParams, "search_path")                  // a pooler may refuse it; clockSQL sets it
	parameters := slices.Sorted(maps.Keys(cc.RuntimeParams)) // those of the DSN
	configureConnection(cc)
	pool, err := pgxpool.NewWithConfig(context.Background(), config)
	if err != nil {
		return nil, fmt.Errorf("postgres: make the connection pool: %w", err)
	}
	db := &DB{pool: pool, login: login, parameters: parameters, settings: beginTransaction(cc.RuntimeParams)}
	if path := parsed.Value("search_path"); path != "" {
		db.searchPath = []byte(path)
	}
	return db, nil
}

// address returns where a connection leads now.
func (db *DB) address() string {
	cc := db.login.Get()
	return net.JoinHostPort(cc.Host, strconv.Itoa(int(cc.Port)))
}

// bounded returns the settings of every connection to PostgreSQL: the DSN's, with limits on the time of
// connecting and on the bytes that the server may send, from its first message on.
func bounded(d dsn.DSN) (*pgxpool.Config, error) {
	config, err := d.Config()
	if err != nil {
		return nil, err
	}
	cc := config.ConnConfig
	cc.MaxProtocolMessageBodyLen = maxMessage
	cc.BuildFrontend = boundServer
	cc.OnNotification = func(*pgconn.PgConn, *pgconn.Notification) {} // pgx would keep them
	if cc.ConnectTimeout <= 0 {
		cc.ConnectTimeout = connectTimeout
	}
	return config, nil
}

func configureConnection(cc *pgx.ConnConfig) {
	// Nothing may live longer than a transaction: the next one may run on another connection of the pooler.
	cc.DefaultQueryExecMode = pgx.QueryExecModeExec
	cc.StatementCacheCapacity, cc.DescriptionCacheCapacity = 0, 0
	keepAlive := net.KeepAliveConfig{Enable: true, Idle: 15 * time.Second, Interval: 5 * time.Second, Count: 4}
	cc.DialFunc = (&net.Dialer{Timeout: connectTimeout, KeepAliveConfig: keepAlive}).DialContext
	if _, set := cc.RuntimeParams["application_name"]; !set {
		cc.RuntimeParams["application_name"] = "storestream"
	}
	cc.RuntimeParams["client_encoding"] = "UTF8" // of the server's messages; clockSQL sees to the rows
}

// Close waits for the running reads and closes the connections.
func (db *DB) Close() { db.pool.Close() }
