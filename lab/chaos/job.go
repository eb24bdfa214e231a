package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/storestream/storestream/internal/standins/storefake"
)

// job is another program that writes to the shop's tables, by SQL of its own: in transactions that it forgets
// to end, tens of thousands of rows at a time, values of megabytes. The stand-in's memory does not know its
// rows, and the job does not take the stand-in's locks. The judge reads the tables themselves.
type job struct {
	dsn     string
	journal *journal
	sparse  bool            // the tables have a fillFactor
	last    [2]atomic.Int64 // ids given out: of few and of many

	mu       sync.Mutex
	prepared int
}

// Ids of the job's rows: far above the shop's, and within an int4. Transactions that stay open write to few
// only, so that a bulk update of many does not wait for them.
const (
	few  = 0
	many = 1
)

var firstIDs = [2]int64{few: 1_000_000_000, many: 1_500_000_000}

// jobPatience bounds the wait for a database that is away.
const jobPatience = 45 * time.Second

// newJob returns nil if orders and items are read over REST.
func newJob(ctx context.Context, around *surroundings, j *journal) (*job, error) {
	if around.postgres == nil {
		return nil, nil
	}
	b := &job{dsn: around.postgres.AdminDSN(databaseName), journal: j, sparse: around.plan.service.sparse}
	for i, first := range firstIDs {
		b.last[i].Store(first)
	}
	// What an old transaction has written elsewhere holds settled back just the same.
	return b, b.exec(ctx, "CREATE TABLE elsewhere (id bigint)")
}

// connect waits for a database that is away.
func (b *job) connect(ctx context.Context) (*pgx.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, jobPatience)
	defer cancel()
	config, err := pgx.ParseConfig(b.dsn)
	if err != nil {
		return nil, err
	}
	config.DefaultQueryExecMode = pgx.QueryExecModeSimpleProtocol // columns have other types in each run
	for {
		conn, err := pgx.ConnectConfig(ctx, config)
		if err == nil || !until(ctx, time.Now().Add(200*time.Millisecond)) {
			return conn, err
		}
	}
}

// exec runs SQL on a connection of its own. Several statements are one transaction. It waits for a column
// that was renamed.
func (b *job) exec(ctx context.Context, sql string) error {
	conn, err := b.connect(ctx)
	if err != nil {
		return err
	}
	defer conn.Close(context.Background())
	for deadline := time.Now().Add(jobPatience); ; {
		_, err = conn.Exec(ctx, sql)
		const undefinedColumn = "42703"
		var refused *pgconn.PgError
		if !errors.As(err, &refused) || refused.Code != undefinedColumn || !time.Now().Before(deadline) ||
			!until(ctx, time.Now().Add(200*time.Millisecond)) {
			return err
		}
	}
}

// insert is the SQL for n new rows of the few, stamped when it runs.
func (b *job) insert(table string, n int) string {
	from := b.last[few].Add(int64(n)) - int64(n) + 1
	return b.put(table, from, from+int64(n)-1)
}

// put is the SQL that writes all rows of a range of ids, whether or not they are there. All get the same
// updated_at. The name of a table that is to become one of the shop's begins with that one's.
func (b *job) put(table string, from, to int64) string {
	set := "status = excluded.status"
	columns, values := "user_id, status, total_amount", "n, 'Processing', '12.50'"
	if strings.HasPrefix(table, storefake.OrderItems) {
		set = "quantity = excluded.quantity"
		columns, values = "order_id, product_id, sale_price, quantity, amount", "n, 1, '12.50', 2, '25'"
	}
	return fmt.Sprintf("WITH now AS MATERIALIZED (SELECT clock_timestamp() AS stamp) "+
		"INSERT INTO %s (id, %s, created_at, updated_at) "+
		"SELECT n, %s, stamp, stamp FROM now, generate_series(%d, %d) n "+
		"ON CONFLICT (id) DO UPDATE SET %s, updated_at = excluded.updated_at",
		table, columns, values, from, to, set)
}

// touch is the SQL that changes a few of the rows that no other transaction holds.
func (b *job) touch(table string) string {
	return fmt.Sprintf("UPDATE %[1]s SET updated_at = clock_timestamp() WHERE id IN (SELECT id FROM %[1]s "+
		"WHERE id BETWEEN %[2]d AND %[3]d ORDER BY random() LIMIT 3 FOR UPDATE SKIP LOCKED)",
		table, firstIDs[few], firstIDs[many]-1)
}

// How a transaction is forgotten.
const (
	idAlone      = "that holds an id alone, and in the end writes to"
	otherTable   = "that wrote to another table than"
	hasWritten   = "that has written to"
	bySavepoints = "that has written under savepoints to"
	isPrepared   = "that is prepared, with rows of"
)

// forgotten is a transaction that the job forgot to end.
type forgotten struct {
	job   *job
	conn  *pgx.Conn // nil if it is prepared
	name  string    // of a prepared one
	table string
	how   string
}

// forget opens a transaction and leaves it open. It returns nil if the database was away.
func (b *job) forget(ctx context.Context, how, table string) *forgotten {
	f := &forgotten{job: b, table: table, how: how}
	if err := f.open(ctx); err != nil {
		b.journal.say("forgetting a transaction: %v", err)
		if f.name == "" { // else it may have been prepared
			return nil
		}
	}
	return f
}

func (f *forgotten) open(ctx context.Context) (err error) {
	if f.conn, err = f.job.connect(ctx); err != nil {
		return err
	}
	defer func() {
		if err != nil || f.name != "" {
			err = errors.Join(err, f.conn.Close(context.Background()))
			f.conn = nil
		}
	}()
	write := f.job.insert(f.table, 1+rand.IntN(4)) + "; " + f.job.touch(f.table)
	sql := "SELECT txid_current()"
	switch f.how {
	case otherTable:
		sql = "INSERT INTO elsewhere VALUES (1)"
	case hasWritten:
		sql = write
	case bySavepoints:
		sql = "SAVEPOINT a; " + write + "; RELEASE a; SAVEPOINT b; " + f.job.touch(f.table) +
			"; ROLLBACK TO b; SAVEPOINT c; " + f.job.insert(f.table, 2)
	case isPrepared:
		f.job.mu.Lock()
		f.job.prepared++
		f.name = fmt.Sprintf("forgotten_%d", f.job.prepared)
		f.job.mu.Unlock()
		sql = write + "; PREPARE TRANSACTION '" + f.name + "'"
	}
	work, cancel := context.WithTimeout(ctx, lockPatience)
	defer cancel()
	for _, statement := range strings.Split("BEGIN; "+sql, "; ") { // each with a time of its own
		if _, err := f.conn.Exec(work, statement); err != nil {
			return err
		}
	}
	return nil
}

// isOpen says whether the transaction is still there: a server that crashes takes it back, unless it is
// prepared.
func (f *forgotten) isOpen(ctx context.Context) bool {
	if f.conn == nil {
		return true
	}
	ctx, cancel := context.WithTimeout(ctx, lockPatience)
	defer cancel()
	return f.conn.Ping(ctx) == nil
}

// end commits the transaction or rolls it back. One with an id alone writes first.
func (f *forgotten) end(commit bool) {
	ctx, cancel := context.WithTimeout(context.Background(), jobPatience)
	defer cancel()
	last := "ROLLBACK"
	if commit {
		last = "COMMIT"
	}
	var err error
	if f.conn == nil {
		err = f.job.exec(ctx, last+" PREPARED '"+f.name+"'")
		var refused *pgconn.PgError
		for err != nil && !errors.As(err, &refused) && ctx.Err() == nil { // its outcome is still open
			err = f.job.exec(ctx, last+" PREPARED '"+f.name+"'")
		}
	} else {
		defer f.conn.Close(ctx)
		if f.how == idAlone {
			_, err = f.conn.Exec(ctx, f.job.insert(f.table, 3))
		}
		if err == nil {
			_, err = f.conn.Exec(ctx, last)
		}
	}
	if err != nil {
		f.job.journal.say("the forgotten transaction ended by itself: %v", err)
	}
}

// fill writes n rows of many, the same ones each time, in several statements.
func (b *job) fill(ctx context.Context, table string, n int) {
	const parts = 4
	for i := range parts {
		from, to := firstIDs[many]+int64(n*i/parts), firstIDs[many]+int64(n*(i+1)/parts)-1
		if err := b.exec(ctx, b.put(table, from, to)); err != nil {
			b.journal.say("bulk update of %s by another program: %v", table, err)
		}
	}
}

// widen inserts n rows of orders whose status takes size bytes. It returns their ids and a function that
// shortens them.
func (b *job) widen(ctx context.Context, n, size int) (ids []int64, shorten func(context.Context) error) {
	to := b.last[few].Add(int64(n))
	from := to - int64(n) + 1
	for id := from; id <= to; id++ {
		ids = append(ids, id)
	}
	set := func(ctx context.Context, value string) error {
		return b.exec(ctx, b.put(storefake.Orders, from, to)+"; UPDATE orders SET updated_at = clock_timestamp(), "+
			"status = "+value+fmt.Sprintf(" WHERE id BETWEEN %d AND %d", from, to))
	}
	if err := set(ctx, fmt.Sprintf("repeat('w', %d)", size)); err != nil {
		b.journal.say("wide rows: %v", err)
		return nil, func(context.Context) error { return nil }
	}
	return ids, func(ctx context.Context) error { return set(ctx, "'Processing'") }
}

// copyTable begins to swap a table: it makes a copy that has some new rows already.
func (b *job) copyTable(ctx context.Context, table, next string) error {
	with := ""
	if b.sparse {
		with = fmt.Sprintf(" WITH (fillfactor = %d)", fillFactor)
	}
	return b.exec(ctx, fmt.Sprintf("CREATE TABLE %[1]s (LIKE %[2]s INCLUDING ALL)%[4]s; "+
		"GRANT SELECT ON %[1]s TO %[3]s; ", next, table, storefake.ReaderRole, with)+b.insert(next, 3))
}

// How a table is written anew, into another file.
const (
	byCluster = "CLUSTER"
	byVacuum  = "VACUUM FULL"
)

// clusterSQL rewrites a table in the order of any of its indexes, whatever a swap has named them.
const clusterSQL = `DO $$ BEGIN EXECUTE (SELECT format('CLUSTER %%s USING %%I', indrelid::regclass, relname)
	FROM pg_index JOIN pg_class ON oid = indexrelid WHERE indrelid = '%s'::regclass ORDER BY random() LIMIT 1);
	END $$`

// rewrite writes a table anew. It does not wait for the table's lock. VACUUM needs a transaction of its own.
func (b *job) rewrite(ctx context.Context, how, table string) error {
	conn, err := b.connect(ctx)
	if err != nil {
		return err
	}
	defer conn.Close(context.Background())
	sql := how + " " + table
	if how == byCluster {
		sql = fmt.Sprintf(clusterSQL, table)
	}
	if _, err = conn.Exec(ctx, "SET lock_timeout = '300ms'"); err != nil {
		return err
	}
	_, err = conn.Exec(ctx, sql)
	return err
}
