package postgres_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/storestream/storestream/poller"
	"github.com/storestream/storestream/poller/postgres"
	"github.com/storestream/storestream/schemas"
)

const (
	withoutUser = "id, status, total_amount, created_at, updated_at"
	swapWithout = "CREATE TABLE other AS SELECT " + withoutUser + ` FROM orders;
		ALTER TABLE orders RENAME TO old; ALTER TABLE other RENAME TO orders; GRANT SELECT ON orders TO ` + role
	grantColumns = "REVOKE SELECT ON orders FROM " + role + `;
		GRANT SELECT (id, user_id, status, total_amount, created_at, updated_at) ON orders TO ` + role
)

// A column that went missing, whichever way and whatever reads next, would put null over good values.
func TestAColumnThatGoesMissingHoldsEveryReadUntilItIsBack(t *testing.T) {
	const view = `ALTER TABLE orders RENAME TO base; CREATE VIEW orders AS SELECT %s FROM base;
		GRANT SELECT ON orders TO ` + role
	for name, c := range map[string]struct{ before, gone, back string }{
		"renamed": {gone: "ALTER TABLE orders RENAME user_id TO customer",
			back: "ALTER TABLE orders RENAME customer TO user_id"},
		"dropped": {gone: "ALTER TABLE orders DROP COLUMN user_id",
			back: "ALTER TABLE orders ADD COLUMN user_id bigint; UPDATE orders SET user_id = 1"},
		"a table without it takes the name": {gone: swapWithout,
			back: "ALTER TABLE orders RENAME TO other; ALTER TABLE old RENAME TO orders"},
		"renamed in a view": {before: fmt.Sprintf(view, "*"), gone: "ALTER VIEW orders RENAME user_id TO customer",
			back: "ALTER VIEW orders RENAME customer TO user_id"},
		"a view without it takes the name": {gone: fmt.Sprintf(view, withoutUser),
			back: "DROP VIEW orders; ALTER TABLE base RENAME TO orders"},
		"with a grant on columns": {before: grantColumns,
			gone: "ALTER TABLE orders RENAME user_id TO customer",
			back: "ALTER TABLE orders RENAME customer TO user_id"},
	} {
		t.Run(name, func(t *testing.T) {
			s := openShop(t, ordersTable)
			s.exec(fmt.Sprintf(manyOrders, 300) + "; " + c.before)
			r := s.readerOf(postgres.SourceConfig{MaxRows: 100})
			r.poll()
			good := map[int64]uint64{}
			for id, row := range r.rows {
				good[id] = schemas.Hash(row.Value)
			}
			s.exec(c.gone)
			s.exec("UPDATE orders SET updated_at = clock_timestamp() WHERE id <= 200")
			for _, q := range []poller.Request{
				{Kind: poller.Pass}, {Kind: poller.Full, From: schemas.MinInstant},
				{Kind: poller.Lookup, Suspects: []poller.Suspect{{ID: 7}}}, {Kind: poller.Pass},
			} {
				r.isBlocked(q, "has no column user_id any more")
			}
			// A successor knows it from the watermark.
			r.source = s.readerOf(postgres.SourceConfig{MaxRows: 100}).source
			r.isBlocked(poller.Request{Kind: poller.Pass}, "has no column user_id any more")
			for id, row := range r.rows {
				if schemas.Hash(row.Value) != good[id] {
					t.Fatalf("order %d was read without its column", id)
				}
			}
			s.exec(c.back)
			r.poll()
			r.sameAs(s)
		})
	}
}

func (r *reader) isBlocked(q poller.Request, want string) {
	r.t.Helper()
	err := r.read(q)
	var blocked *poller.BlockedError
	if !errors.As(err, &blocked) || !strings.Contains(err.Error(), want) {
		r.t.Errorf("read %+v: %v, expected a BlockedError with %q", q.Kind, err, want)
	}
}

// In the middle of a pass, also of the first one: what it read before is known.
func TestAColumnThatGoesMissingWhileAPassReadsHoldsIt(t *testing.T) {
	s := openShop(t, ordersTable)
	s.exec(fmt.Sprintf(manyOrders, 600))
	r := s.readerOf(postgres.SourceConfig{MaxRows: 100})
	n := 0
	r.before = func(poller.Batch) error {
		if n++; n == 3 {
			s.exec("ALTER TABLE orders RENAME user_id TO customer")
		}
		return nil
	}
	r.isBlocked(poller.Request{}, "has no column user_id any more")
	s.exec("ALTER TABLE orders RENAME customer TO user_id")
	r.poll()
	r.sameAs(s)
}

func TestAColumnThatNeverWasThereIsNullAndOneThatTheSchemaDoesNotKnowIsNotMissed(t *testing.T) {
	s := openShop(t, ordersTable)
	s.exec("ALTER TABLE orders DROP COLUMN user_id; INSERT INTO orders VALUES (1, 'Complete', 1, now(), now())")
	r := s.reader()
	r.poll()
	if got := strings.Join(r.fields, " "); got != "id status total_amount created_at updated_at" {
		t.Errorf("a pass says that the table has %s", got)
	}
	r.fields = append(r.fields, "taken_out_of_the_schema")
	r.source = s.reader().source
	r.poll()
	r.sameAs(s)
}

func TestAColumnOfAnotherTypeOrThatMayNotBeReadHoldsAndSaysSo(t *testing.T) {
	s := openShop(t, ordersTable)
	s.exec(fmt.Sprintf(manyOrders, 100))
	s.exec(grantColumns)
	r := s.reader()
	r.poll()
	s.exec("REVOKE SELECT (user_id) ON orders FROM " + role)
	r.isBlocked(poller.Request{}, "may not read orders")
	s.exec("GRANT SELECT (user_id) ON orders TO " + role)
	r.poll()
	s.exec("ALTER TABLE orders ALTER user_id TYPE boolean USING true")
	r.isBlocked(poller.Request{}, "column user_id is")
	s.exec("ALTER TABLE orders ALTER user_id TYPE bigint USING 1")
	r.poll()
	r.sameAs(s)
}

// xmin is no column that such a grant names, so a statement that asks for it is refused at once.
func TestAGrantOnTheTableThatBecomesOneOnItsColumnsStopsNothing(t *testing.T) {
	s := openShop(t, ordersTable)
	s.exec(put(1, "now()"))
	r := s.readerOf(longOverlap)
	r.poll()
	s.exec(grantColumns)
	s.exec(put(2, "now()"))
	r.poll()
	r.has(2)
	s.exec("GRANT SELECT ON orders TO " + role)
	s.exec(put(3, "now()"))
	r.poll()
	r.sameAs(s)
}
