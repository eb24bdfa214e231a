package postgres

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

const (
	// chunkDeadline is for one chunk as a whole, waiting for a connection included: the service cancels a statement after 60 s, so that what
	// has not answered by then never will (K22: a half-open connection answers nothing for hours).
	chunkDeadline = 75 * time.Second
	// catalogueDeadline is for the small queries.
	catalogueDeadline = 20 * time.Second
	connectTimeout    = 10 * time.Second
	// pingTimeout is for asking an idle connection whether it is still there, before it is used.
	pingTimeout = 5 * time.Second
)

// Config says how to reach the database.
type Config struct {
	DSN            string
	MaxConnections int // 0: 4
}

// DB is the connections to one database, shared by the sources made from it.
type DB struct {
	pool *pgxpool.Pool
	// For errors: host:port, and what of the DSN is no secret.
	where, user, database string
	parameters            []string
}

// Open checks the DSN and connects to nothing yet: a database that is down is an error of the first read, which is tried again. An error holds nothing
// of the DSN.
func Open(c Config) (*DB, error) {
	config, err := pgxpool.ParseConfig(c.DSN)
	if isURL := strings.Contains(c.DSN, "://"); err != nil || isURL && strings.Contains(c.DSN, "#") {
		// What follows a # is no part of a URL's host: a password with one would put its first half where the host belongs, and so into errors. pgx's own text may hold a part of a password that it could not tell from the rest (one with a slash in it, for instance).
		return nil, errors.New("postgres.dsn does not parse: expected postgres://USER:PASSWORD@HOST:PORT/DATABASE?sslmode=MODE, " +
			"where a password's @ : / ? # % are written %40 %3A %2F %3F %23 %25")
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
	// Nothing that lives longer than a transaction: the next one is on another server connection (K20).
	cc.DefaultQueryExecMode = pgx.QueryExecModeExec
	cc.StatementCacheCapacity, cc.DescriptionCacheCapacity = 0, 0
	if cc.ConnectTimeout <= 0 {
		cc.ConnectTimeout = connectTimeout
	}
	cc.DialFunc = (&net.Dialer{
		Timeout:         connectTimeout,
		KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: 15 * time.Second, Interval: 5 * time.Second, Count: 4},
	}).DialContext
	parameters := slices.Sorted(maps.Keys(cc.RuntimeParams))
	if _, set := cc.RuntimeParams["application_name"]; !set {
		cc.RuntimeParams["application_name"] = "storestream"
	}
	pool, err := pgxpool.NewWithConfig(context.Background(), config)
	if err != nil {
		return nil, fmt.Errorf("postgres: make the connection pool: %w", err)
	}
	return &DB{pool: pool, where: net.JoinHostPort(cc.Host, strconv.Itoa(int(cc.Port))), user: cc.User, database: cc.Database,
		parameters: parameters}, nil
}

// Close waits for the reads in hand and closes the connections.
func (db *DB) Close() { db.pool.Close() }
