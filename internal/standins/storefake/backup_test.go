package storefake_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/storestream/storestream/internal/standins/servers"
	"github.com/storestream/storestream/internal/standins/storefake"
)

func restore(t *testing.T, f *storefake.Fake, b *storefake.Backup) *storefake.Restored {
	t.Helper()
	did, err := f.Restore(t.Context(), b)
	if err != nil {
		t.Fatal(err)
	}
	return did
}

// restored changes rows after a backup, and restores it.
func restored(t *testing.T, f *storefake.Fake) {
	t.Helper()
	f.StartTraffic(2000)
	waitForChanges(t, f, 100)
	backup, err := f.Backup(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	then := map[string]string{}
	f.Quiesce()
	for range 2 { // a backup may be restored again
		waitFor := f.Changes()
		f.StartTraffic(2000)
		waitForChanges(t, f, 200)
		restore(t, f, backup)
		f.Quiesce()
		if f.Changes() <= waitFor {
			t.Error("the number of changes went back")
		}
		restore(t, f, backup) // traffic went on a little
		for _, name := range storefake.Names() {
			now := fmt.Sprint(f.Rows(name))
			if then[name] != "" && then[name] != now {
				t.Errorf("%s: the backup gave two states", name)
			}
			then[name] = now
		}
		for id, row := range f.Rows(storefake.Orders) {
			if row.Time("updated_at").After(backup.At) {
				t.Fatalf("order %d is of %v, after the backup at %v", id, row.Time("updated_at"), backup.At)
			}
		}
	}
	for range 300 { // the shop goes on
		if err := f.Step(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	checkInvariants(t, f)
}

func TestAServiceThatIsRestoredHasItsRowsOfThen(t *testing.T) {
	f := start(t, storefake.Config{Size: small})
	was := f.Rows(storefake.Users)
	backup, err := f.Backup(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	path := "/store-users?" + everything
	get(t, f, path) // a listing that is kept
	lost, err := f.Insert(t.Context(), storefake.Users, storefake.Row{"first_name": "A"})
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Delete(t.Context(), storefake.Users, 1); err != nil {
		t.Fatal(err)
	}
	get(t, f, path)
	if err := f.Touch(t.Context(), storefake.Users, 2); err != nil {
		t.Fatal(err)
	}
	did := restore(t, f, backup)
	if back := did.Back[storefake.Users]; len(back) != 2 || !back[2].Equal(was[2].Time("updated_at")) ||
		!slices.Equal(did.Gone[storefake.Users], []int64{lost}) {
		t.Errorf("the restore says %v went back and %v are gone", back, did.Gone)
	}
	if got := len(get(t, f, path).Data); got != len(was) ||
		fmt.Sprint(f.Rows(storefake.Users)) != fmt.Sprint(was) {
		t.Errorf("%d users after the restore, expected the %d of the backup", got, len(was))
	}
	again, err := f.Insert(t.Context(), storefake.Users, storefake.Row{"first_name": "B"})
	if err != nil || again != lost {
		t.Errorf("the next user has id %d, %v: expected %d once more", again, err, lost)
	}
	restored(t, f)
}

func TestARestoreIsTheSameInPostgreSQL(t *testing.T) {
	f := start(t, storefake.Config{Size: small, Database: storefake.Database{DSN: database(t)}})
	restored(t, f)
	requireSame(t, f, reader(t, f))
}

// Others write to the shop's tables as well, up to the moment in which a row goes back.
func TestARestoreSaysWhatItDidToRowsThatOthersHadWritten(t *testing.T) {
	dsn := database(t)
	f := start(t, storefake.Config{Size: small, Database: storefake.Database{DSN: dsn}})
	was := f.Rows(storefake.Orders)
	others, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer others.Close(context.Background())
	run := func(sql string) {
		t.Helper()
		if _, err := others.Exec(t.Context(), sql); err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
	}
	insert := "INSERT INTO orders (id, status, created_at, updated_at) VALUES (%d, 'Processing', now(), now())"
	run(fmt.Sprintf(insert, 1_000_000_001))
	backup, err := f.Backup(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	run(fmt.Sprintf(insert, 1_000_000_002))
	run("BEGIN")
	run("UPDATE orders SET updated_at = now() WHERE id IN (1, 2, 1000000001)")
	done := make(chan *storefake.Restored)
	go func() {
		defer close(done)
		if did, err := f.Restore(t.Context(), backup); err != nil {
			t.Error(err)
		} else {
			done <- did
		}
	}()
	for waits := 0; waits == 0; {
		err := others.QueryRow(t.Context(), "SELECT count(*) FROM pg_stat_activity "+
			"WHERE datname = current_database() AND wait_event_type = 'Lock'").Scan(&waits)
		if err != nil {
			t.Fatal(err)
		}
	}
	run("COMMIT") // the restore finds these rows changed
	did := <-done
	if did == nil {
		t.FailNow()
	}
	back := did.Back[storefake.Orders]
	if len(back) != 3 || !back[1].Equal(was[1].Time("updated_at")) ||
		!back[2].Equal(was[2].Time("updated_at")) || back[1_000_000_001].IsZero() {
		t.Errorf("went back: %v", back)
	}
	if gone := did.Gone[storefake.Orders]; !slices.Equal(gone, []int64{1_000_000_002}) {
		t.Errorf("are gone: %v", gone)
	}
	run("DELETE FROM orders WHERE id = 1000000001")
	requireSame(t, f, reader(t, f))
}

// A column that is renamed is written on, and has everything when it gets its name back.
func TestARenamedColumnIsWrittenOn(t *testing.T) {
	f := start(t, storefake.Config{Size: small, Database: storefake.Database{DSN: database(t)}})
	rename := func(fields ...string) {
		t.Helper()
		if err := f.RenameColumns(t.Context(), fields); err != nil {
			t.Fatal(err)
		}
	}
	rename("orders.status", "order_items.quantity", "users.city")
	for _, gone := range []string{"SELECT status FROM orders", "SELECT quantity FROM order_items"} {
		if _, err := reader(t, f).Exec(t.Context(), gone); err == nil {
			t.Errorf("%s: the column is there", gone)
		}
	}
	rename("orders.status") // the other one is back
	if _, err := reader(t, f).Exec(t.Context(), "SELECT quantity FROM order_items"); err != nil {
		t.Error(err)
	}
	for range 200 {
		if err := f.Step(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	rename()
	requireSame(t, f, reader(t, f))
}

func TestTheDatabasesNowIsTheServicesClock(t *testing.T) {
	// A cluster of its own: where the reader looks for now() counts for all databases.
	pg := servers.PostgresForTest(t, servers.PostgresConfig{})
	f := start(t, storefake.Config{Size: small, Start: begin, Speed: 60,
		Database: storefake.Database{DSN: pg.AdminDSN("postgres"), OwnClock: true}})
	conn := reader(t, f)
	near := func(what string) {
		t.Helper()
		before := f.Clock().Now()
		var now time.Time
		if err := conn.QueryRow(t.Context(), "SELECT now()").Scan(&now); err != nil {
			t.Fatal(err)
		}
		if now.Before(before) || now.After(f.Clock().Now()) {
			t.Errorf("%s: the database says %v, the service %v", what, now.UTC(), before)
		}
	}
	near("at the start")
	for _, d := range []time.Duration{10 * time.Minute, -3 * time.Hour, time.Second} {
		if err := f.StepClock(t.Context(), d); err != nil {
			t.Fatal(err)
		}
		near(fmt.Sprint("after a step of ", d))
	}
	id, err := f.Insert(t.Context(), storefake.Orders, storefake.Row{"user_id": int64(1)})
	if err != nil {
		t.Fatal(err)
	}
	var ahead bool
	if err := conn.QueryRow(t.Context(), "SELECT updated_at > now() FROM orders WHERE id = $1", id).
		Scan(&ahead); err != nil || ahead {
		t.Errorf("a row that was just written lies ahead of now(): %v, %v", ahead, err)
	}
}
