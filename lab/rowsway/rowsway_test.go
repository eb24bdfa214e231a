package rowsway

import (
	"fmt"
	"testing"
	"time"

	"github.com/storestream/storestream/internal/standins/servers"
	"github.com/storestream/storestream/internal/standins/storefake"
	"github.com/storestream/storestream/lab/budget"
	"github.com/storestream/storestream/lab/product"
)

// many is the number of rows in the larger answers. It is well above the number of times that a poll does
// anything for another reason than a row.
const many = 21

// batch is rows that come with one answer.
type batch struct {
	marker string // in each row's status
	rows   int
	bare   bool // all other fields that may be null are
}

func TestARowsWayIsWithinItsBudget(t *testing.T) {
	root, err := product.Root()
	if err != nil {
		t.Fatal(err)
	}
	limits, err := budget.Read(root)
	if err != nil {
		t.Fatal(err)
	}
	fs, err := readFunctions(root)
	if err != nil {
		t.Fatal(err)
	}
	path := build(t, root, t.TempDir())
	for source, library := range map[string]string{
		"rest":     "net/http.(*Transport).",
		"postgres": "github.com/jackc/pgx/v5/",
	} {
		t.Run(source, func(t *testing.T) {
			t.Parallel()
			w := follow(t, root, path, source, &traveler{fs: fs, library: library, program: newProgram(t)})
			w.print(t.Output(), source)
			sizes := map[string]int{source + "-functions": w.functions(), source + "-stack": len(w.deepest)}
			for name, is := range sizes {
				if says, ok := limits.Check(name, float64(is)); !ok {
					t.Errorf("%s %s", name, says)
				} else if says != "" {
					t.Logf("%s %s", name, says)
				}
			}
		})
	}
}

// follow sends rows of orders through a program that reads them from source.
func follow(t *testing.T, root, path, source string, tr *traveler) *way {
	t.Helper()
	defer tr.end()
	service, dsn := serve(t, source, tr)
	broker := servers.BrokerForTest(t, servers.BrokerConfig{})
	watch(broker, tr)
	settings := configuration(source, proxy(t, service.BaseURL(), tr), dsn, broker.Brokers()[0],
		servers.RegistryForTest(t).URL)

	load := batch{"rows-way-load", 5, false}
	replace(t, service, load)
	if err := service.StepClock(t.Context(), time.Since(service.Clock().Now())); err != nil {
		t.Fatal(err)
	}
	tr.travel(t, load, func() { tr.program.start(path, settings) })
	travel := func(b batch) *trip {
		trip := tr.travel(t, b, func() { replace(t, service, b) })
		if err := trip.readCoverage(root, tr.fs); err != nil {
			t.Fatal(err)
		}
		return trip
	}
	travel(batch{"rows-way-first", 1, false}) // with it or before it the first load ends
	one, more := travel(batch{"rows-way-one", 1, false}), travel(batch{"rows-way-many", many, false})
	bare := travel(batch{"rows-way-bare", many, true})
	tr.mu.Lock() // the program still polls
	defer tr.mu.Unlock()
	return newWay(one, more, bare, tr.answers)
}

// serve starts the service, ten days ago by its clock. Of PostgreSQL dsn leads through the watcher.
func serve(t *testing.T, source string, w watcher) (service *storefake.Fake, dsn string) {
	t.Helper()
	const password = "rows-way"
	config := storefake.Config{Start: time.Now().AddDate(0, 0, -10)}
	if source == "postgres" {
		database := servers.PostgresForTest(t, servers.PostgresConfig{})
		pooler := servers.PgBouncerForTest(t, servers.PgBouncerConfig{Postgres: database,
			Users: map[string]string{storefake.ReaderRole: password}})
		config.Database.DSN, config.Database.Password = database.AdminDSN("postgres"), password
		dsn = fmt.Sprintf("postgres://%s:%s@%s/postgres?sslmode=disable", storefake.ReaderRole, password,
			relay(t, fmt.Sprintf("127.0.0.1:%d", pooler.Port), w))
	}
	service, err := storefake.Start(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(service.Close)
	return service, dsn
}

// replace puts a batch in the place of all orders, in one transaction. So an answer has no other rows.
func replace(t *testing.T, service *storefake.Fake, b batch) {
	t.Helper()
	err := service.Do(t.Context(), func(tx *storefake.Tx) error {
		for id := range service.Rows(storefake.Orders) {
			if err := tx.Delete(t.Context(), storefake.Orders, id); err != nil {
				return err
			}
		}
		for range b.rows {
			row := storefake.Row{"status": b.marker}
			if !b.bare {
				row["user_id"], row["total_amount"] = int64(7), storefake.Money("12.5")
			}
			if _, err := tx.Insert(t.Context(), storefake.Orders, row); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
