package postgres

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"slices"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/storestream/storestream/internal/dsn"
	"github.com/storestream/storestream/internal/rotation"
)

const (
	// chunkDeadline is for one chunk as a whole, including the wait for a connection. The service cancels a
	// statement after 60 s, so an answer that has not come by then never will. A half-open connection answers
	// nothing for hours.
	chunkDeadline = 75 * time.Second
	// catalogueDeadline is for the small queries.
	catalogueDeadline = 20 * time.Second
	connectTimeout    = 10 * time.Second
	// pingTimeout is for the check whether an idle connection still works, before it is used.
	pingTimeout = 5 * time.Second
)

// Config says how to reach the database.
type Config struct {
	DSN            rotation.Secret
	MaxConnections int           // 0: 4
	Rotation       *rotation.Set // hears when user, password or certificates have changed; nil: nobody does
}

// DB is the connections to one database. All sources of a process share them.
type DB struct {
	pool       *pgxpool.Pool
	login      login
	parameters []string // names of the startup parameters that the DSN sets
	begin      []string // the first statements of each transaction
	searchPath []byte   // that the DSN sets. Nil keeps the role's
}

// Open checks the DSN and connects to nothing yet. If the database is down, the first read fails, and is
// tried again. No error contains any part of the DSN.
func Open(c Config) (*DB, error) {
	parsed, err := dsn.Parse(c.DSN.Get())
	if err != nil {
		return nil, fmt.Errorf("postgres.dsn: %w", err)
	}
	config, err := bounded(parsed)
	if err != nil {
		return nil, fmt.Errorf("postgres.dsn: %w", err)
	}
	login, err := newLogin(c, parsed)
	if err != nil {
		return nil, fmt.Errorf("postgres.dsn: %w", err)
	}
	config.BeforeConnect = login.use
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
	db := &DB{pool: pool, login: login, parameters: parameters, begin: beginTransaction(cc.RuntimeParams)}
	if path := parsed.Value("search_path"); path != "" {
		db.searchPath = []byte(path)
	}
	return db, nil
}

// endpoint is where a connection leads now.
func (db *DB) endpoint() *endpoint {
	cc := db.login.now.Get()
	return &endpoint{net.JoinHostPort(cc.Host, strconv.Itoa(int(cc.Port))), cc.User, cc.Database, db.parameters}
}

// bounded returns the settings of every connection to PostgreSQL: those of the DSN, with limits on the time
// that connecting takes and on the bytes that the server may send, from its first message on.
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

// Connect makes one connection, for a caller that checks its security. heard gets the bytes that the server
// sends.
func Connect(ctx context.Context, d dsn.DSN, heard *bytes.Buffer) (*pgconn.PgConn, *pgconn.Config, error) {
	config, err := bounded(d)
	if err != nil {
		return nil, nil, err
	}
	c := &config.ConnConfig.Config
	c.BuildFrontend = func(r io.Reader, w io.Writer) *pgproto3.Frontend {
		heard.Reset() // of the host before
		return boundServer(io.TeeReader(r, heard), w)
	}
	conn, err := pgconn.ConnectConfig(ctx, c)
	return conn, c, err
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

// Close waits for the reads in hand and closes the connections.
func (db *DB) Close() { db.pool.Close() }

// dropIdle closes the idle connections after err broke one: after a restart of the server all of them are
// dead, and each would cost a try.
func (db *DB) dropIdle(err error) {
	if !errors.As(err, new(*pgconn.ConnectError)) {
		db.pool.Reset()
	}
}

// takeRows gets the rows of a result, and the clock of the snapshot that they were read under.
type takeRows func(*clock, *pgconn.ResultReader) error

// snapshot runs q (nil: nothing) in one short transaction, in one round trip. It returns the clock of the
// snapshot that q was read under; t (nil: none) is the table that the clock looks at. take gets q's rows as
// they come off the connection. What it got is all there is only if snapshot returns no error: rows arrive
// before the error that says they are not all.
//
// Where q asks for it, it locks the table before it takes the snapshot. What puts other rows into a table
// without a trace of the old ones (TRUNCATE, an ALTER TABLE that rewrites it, another table that takes its
// name) locks others out until it commits. A query that has its snapshot already would wait for that, and
// then find a table in which that snapshot shows nothing. A LOCK waits before there is one.
func (db *DB) snapshot(
	ctx context.Context, limit time.Duration, t *table, q *statement, take takeRows,
) (*clock, error) {
	limited, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	c, err := db.transaction(limited, t, q, take)
	if err != nil && limited.Err() != nil && ctx.Err() == nil {
		err = &silentError{limit, err}
	}
	return c, err
}

func (db *DB) transaction(ctx context.Context, t *table, q *statement, take takeRows) (*clock, error) {
	held, err := db.pool.Acquire(ctx)
	if err != nil {
		return nil, err
	}
	defer held.Release()
	conn := held.Conn().PgConn()

	var batch pgconn.Batch
	before := db.begin
	if q != nil && q.locks {
		before = append(slices.Clip(before), "LOCK TABLE "+t.plainName+" IN ACCESS SHARE MODE")
	}
	for _, sql := range before {
		batch.ExecParams(sql, nil, nil, nil, nil)
	}
	clock, name := clockAloneSQL, []byte(nil)
	if t != nil {
		name = []byte(t.plainName)
		if t.identified {
			clock = clockTimelineSQL
		}
	}
	parameters := [][]byte{name, db.searchPath}
	batch.ExecParams(clock, parameters, []uint32{oidText, oidText}, binaryFormat, binaryFormat)
	if q != nil {
		batch.ExecParams(q.sql, q.values, q.oids, binaryFormat, binaryFormat)
	}
	for _, sql := range endTransaction {
		batch.ExecParams(sql, nil, nil, nil, nil)
	}

	asked := time.Now()
	results := conn.ExecBatch(ctx, &batch)
	c, err := readResults(results, asked, len(before), q != nil, take)
	if closed := results.Close(); closed != nil {
		err = closed // it has the server's own message; err may only say that an answer was missing
	}
	if !conn.IsClosed() && conn.TxStatus() != 'I' {
		// The transaction failed before COMMIT. A pooler that gets the connection back like that has to close its
		// own connection to the server.
		_ = conn.Exec(ctx, "ROLLBACK").Close() // whatever it answers is not kept
	}
	return c, err
}

// binaryFormat is the format of all parameters, and of all columns of a result.
var binaryFormat = []int16{1}

var errShort = errors.New("the server answered fewer statements than it was sent")

// readResults reads the answers of transaction's batch, which was sent after asked, in order.
func readResults(
	results *pgconn.MultiResultReader, asked time.Time, before int, query bool, take takeRows,
) (*clock, error) {
	for range before + 1 { // and clockSQL
		if !results.NextResult() {
			return nil, errShort
		}
	}
	c, err := readClock(results.ResultReader())
	if err != nil {
		return nil, err
	}
	c.asked, c.answered = asked, time.Now()
	if query {
		if !results.NextResult() {
			return nil, errShort
		}
		rows := results.ResultReader()
		err := take(c, rows)
		if _, closed := rows.Close(); closed != nil {
			err = closed
		}
		if err != nil {
			return nil, err
		}
	}
	for range endTransaction {
		if !results.NextResult() {
			return nil, errShort
		}
	}
	return c, nil
}
