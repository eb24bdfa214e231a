package poller

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/storestream/storestream/internal/watermark"
	"github.com/storestream/storestream/schemas"
)

func TestASweepFindsEachKindOfDifferenceCountsItAndRepairsIt(t *testing.T) {
	s := openShop(t, 50, func(c *Config) { c.Sweep.Tombstone = true })
	s.rows[1] = s.row(1, -time.Hour, 2)                // an update that did not touch updated_at
	s.rows[100] = s.row(100, -2*time.Hour, 1)          // it came far too late
	s.forge(s.published(s.row(2, -30*time.Minute, 9))) // somebody wrote what is not so
	s.forge(s.published(s.row(3, 24*time.Hour, 9)))    // and from the future
	s.forge(s.published(s.row(200, -time.Hour, 9)))    // and what never was
	delete(s.rows, 4)                                  // deleted
	s.forge(s.tombstone(5))                            // somebody took it out
	for id := range int64(20) {
		s.rows[300+id] = s.row(300+id, -3*time.Hour, 1) // more than one transaction takes
	}
	before := len(s.topic)
	got := *s.sweep()
	want := watermark.Swept{Request: 1, Began: got.Began, SourceRows: 70, TopicRows: 50,
		Missing: 22, Stale: 3, Extra: 2, Published: 25, Tombstones: 2}
	if got != want {
		t.Errorf("swept %+v, want %+v", got, want)
	}
	for _, row := range s.rows {
		s.wants(row)
	}
	for _, id := range []int64{4, 200} {
		if _, there := s.newest(id); there {
			t.Errorf("row %d is still in the topic", id)
		}
	}
	if n := len(s.topic) - before; n != 27 {
		t.Errorf("%d records written, want 27", n)
	}
	m := s.metrics.Resource("orders")
	for what, n := range map[prometheus.Collector]float64{
		m.LateRows: 25, m.SweepDifferences("missing"): 22, m.SweepDifferences("stale"): 3,
		m.SweepDifferences("extra"): 2,
	} {
		if got := testutil.ToFloat64(what); got != n {
			t.Errorf("%+v: %v, want %v", what, got, n)
		}
	}
	if got := s.sweep(); got.Missing+got.Stale+got.Extra != 0 || len(s.topic)-before != 27 {
		t.Errorf("the next sweep finds %+v", got)
	}
}

// The tombstone over such a record reads like the row's own to whoever keeps rows by key: so the row comes
// after it, in another transaction.
func TestARecordWhereItsKeyDoesNotBelongIsTakenOutAndItsRowPublishedAfterIt(t *testing.T) {
	s := openShop(t, 20, nil)
	for id := range int64(12) { // more than one transaction takes
		s.forge(record{Published: watermark.Published{ID: id, Partition: 3, Stray: true}})
	}
	// One of no row at all. It stays: sweep.deletes is report.
	s.forge(record{Published: watermark.Published{ID: 99, Partition: 3, Stray: true}})
	before := len(s.topic)
	got := s.sweep()
	if got.Stale != 12 || got.Published != 12 || got.Tombstones != 12 || got.Missing != 0 || got.Extra != 1 {
		t.Errorf("%+v", got)
	}
	last := map[int64]int{}
	for i, r := range s.topic[before:] {
		switch {
		case r.Stray && r.Tombstone && r.Partition == 3 && r.ID != 99:
			last[r.ID] = i
		case !r.Stray && last[r.ID] == 0 && r.ID != 0 && r.ID < 12:
			t.Errorf("row %d is published before the record in its wrong place is taken out", r.ID)
		}
	}
	for id := range int64(12) {
		s.wants(s.rows[id])
	}
	if len(last) != 12 {
		t.Errorf("%d are taken out, want 12", len(last))
	}
	if got := s.sweep(); got.Stale+got.Missing != 0 || got.Extra != 1 {
		t.Errorf("the next sweep finds %+v", got)
	}

	s.poller.cfg.Sweep.Tombstone = true
	if got := s.sweep(); got.Extra != 1 || got.Tombstones != 1 {
		t.Errorf("with tombstones asked for: %+v", got)
	}
	if got := s.sweep(); got.Extra != 0 {
		t.Errorf("the next sweep finds %+v", got)
	}
}

func TestAnOlderStateIsPublishedOnlyWhenTheServiceHasShownItForAnOverlap(t *testing.T) {
	s := openShop(t, 10, nil)
	truth := s.rows[1]
	s.rows[1] = s.row(1, -2*time.Hour, 0) // a replica lags
	began, records := s.now, len(s.topic)
	s.askSweep()
	for s.now.Sub(began) < shopOverlap/2 {
		s.poll()
		s.now = s.now.Add(time.Second)
	}
	s.rows[1] = truth
	if got := s.sweep(); got.Published != 0 || len(s.topic) != records {
		t.Errorf("swept %+v, and %d records written", got, len(s.topic)-records)
	}

	s.forge(s.published(s.row(1, time.Minute, 9))) // now it is the topic that lies
	began = s.now
	if got := s.sweep(); got.Stale != 1 || got.Published != 1 {
		t.Errorf("swept %+v", got)
	}
	if waited := s.now.Sub(began); waited < shopOverlap {
		t.Errorf("published after %s", waited)
	}
	s.wants(truth)
}

// Somebody's record with an old stamp lies over ours: a lagging replica's row is newer than that one and yet
// older than what was published.
func TestAStateOlderThanWhatWasPublishedIsNotPublishedBecauseTheTopicWasTamperedWith(t *testing.T) {
	s := openShop(t, 10, nil)
	s.rows[1] = s.row(1, 0, 2)
	truth := s.rows[1]
	s.poll()
	s.forge(s.published(s.row(1, -5*time.Hour, 9)))
	s.rows[1] = s.row(1, -time.Hour, 1) // a replica lags
	id := s.askSweep()
	for range 10 {
		s.poll()
		s.now = s.now.Add(time.Second)
	}
	if r, _ := s.newest(1); r.Hash == s.rows[1].hash() {
		t.Error("an older state than was published before is in the topic")
	}
	s.rows[1] = truth
	s.await(id)
	s.wants(truth)
}

// A state that changes all the time is never confirmed: the sweep ends all the same, and says so.
func TestASweepDoesNotWaitForEverForAnOlderStateToRest(t *testing.T) {
	s := openShop(t, 10, nil)
	s.forge(s.published(s.row(1, time.Hour, 9)))
	id := s.askSweep()
	for n := uint64(2); s.mark.Request < id || s.mark.Sweep != nil; n++ {
		s.rows[1] = s.row(1, -time.Hour, n)
		s.poll()
		if s.now = s.now.Add(10 * time.Second); n > 1000 {
			t.Fatal("the sweep does not end")
		}
	}
	got := s.mark.Swept
	if got.Stale != 1 || got.Published != 0 || !strings.Contains(got.Left, "1 row came and went, or changed") {
		t.Errorf("swept %+v", got)
	}
}

// Over REST a row that was updated may be nowhere for as long as the overlap. A tombstone would be a lie.
func TestARowIsTakenForDeletedOnlyWhenItWasNotShownForAnOverlap(t *testing.T) {
	s := openShop(t, 10, func(c *Config) { c.Sweep.Tombstone = true })
	row := s.rows[1]
	delete(s.rows, 1)
	began := s.now
	s.askSweep()
	for s.now.Sub(began) < shopOverlap {
		s.poll()
		s.now = s.now.Add(time.Second)
	}
	s.rows[1] = row
	s.await(1)
	if got := s.mark.Swept; got.Tombstones != 0 || got.Extra != 0 {
		t.Errorf("swept %+v", got)
	}
	delete(s.rows, 1)
	if got := s.sweep(); got.Tombstones != 1 || got.Extra != 1 || got.Left != "" {
		t.Errorf("swept %+v", got)
	}
}

// blink lets row 1 be nowhere, be shown for ten seconds in a new version, and be nowhere again, for less than
// an overlap each time. So it goes over REST with a row that is updated now and then, and shows up some time
// after each update. It leaves the row where all reads show it.
func (s *shop) blink() {
	delete(s.rows, 1)
	for i := range 100 {
		switch i {
		case 30:
			s.rows[1] = row{id: 1, updatedAt: s.now, content: 77}
		case 40:
			delete(s.rows, 1)
		case 80:
			s.rows[1] = row{id: 1, updatedAt: s.now, content: 78}
		}
		s.poll()
		s.now = s.now.Add(time.Second)
	}
}

func TestARowThatAPollHasShownIsDeletedOnlyAnOverlapAfterThat(t *testing.T) {
	for name, ask := range map[string]func(*shop){
		"sweep": func(s *shop) { s.askSweep() },
		"erase": func(s *shop) { s.erase(1) },
		"both": func(s *shop) {
			s.askSweep()
			s.erase(1)
		},
	} {
		s := openShop(t, 10, func(c *Config) { c.Sweep.Tombstone = true })
		ask(s)
		s.blink()
		for _, r := range s.topic {
			if r.Tombstone && r.ID == 1 {
				t.Errorf("%s: a tombstone for a row that was never nowhere for an overlap (%+v)", name, s.mark.Swept)
			}
		}
		s.wants(s.rows[1])
	}
}

// A copy of the service that lags shows the older state at both looks, and a poll has met the newer one in
// between.
func TestAnOlderStateIsNotConfirmedWhereAPollHasMetANewerOneInBetween(t *testing.T) {
	s := openShop(t, 10, nil)
	older, newer := s.row(1, -2*time.Hour, 0), s.row(1, 40*time.Second, 3)
	s.rows[1] = older
	s.askSweep()
	for i := range 75 {
		switch i {
		case 40:
			s.rows[1] = newer
		case 45:
			s.rows[1] = older
		}
		s.poll()
		s.now = s.now.Add(time.Second)
	}
	s.wants(newer)
}

// What was published of it before does not count any more.
func TestARowThatComesBackAfterItsTombstoneIsPublished(t *testing.T) {
	s := openShop(t, 10, func(c *Config) { c.Sweep.Tombstone = true })
	s.rows[1] = s.row(1, 10*time.Minute, 2) // stamped ahead, so that the poller remembers it all the while
	s.poll()
	row := s.rows[1]
	delete(s.rows, 1)
	if got := s.sweep(); got.Tombstones != 1 {
		t.Fatalf("swept %+v", got)
	}
	s.rows[1] = row
	s.poll()
	s.wants(row)
}

func TestWhatTheServiceDoesNotShowIsNotAlwaysTakenForDeleted(t *testing.T) {
	for _, test := range []struct {
		name   string
		rows   int
		change func(*shop)
		says   string
	}{
		{"an empty answer", 5, func(s *shop) { clear(s.rows) }, "no row at all"},
		{"nothing but rows that cannot be published", 5, func(s *shop) {
			clear(s.rows)
			s.rows[900] = row{id: 900, updatedAt: s.now, bad: true}
		}, "no row at all"},
		{"more than a hundred of a small topic", 200, func(s *shop) { drop(s.rows, 101) },
			"does not have 101 of the topic's 200 rows"},
		{"more than a hundredth of a large topic", 11000, func(s *shop) { drop(s.rows, 111) },
			"does not have 111 of the topic's 11000 rows"},
		{"a row without a usable id", 50, func(s *shop) {
			s.rows[1] = row{id: 1, updatedAt: schemas.MinInstant, bad: true, nameless: true}
		}, "came without a usable id"},
		{"sweep.deletes: report", 50, func(s *shop) {
			delete(s.rows, 1)
			s.poller.cfg.Sweep.Tombstone = false
		}, "sweep.deletes: report"},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := openShop(t, test.rows, func(c *Config) { c.Sweep.Tombstone = true })
			test.change(s)
			got := s.sweep()
			if got.Extra == 0 || got.Tombstones != 0 || !strings.Contains(got.Left, test.says) {
				t.Errorf("swept %+v, want %q", got, test.says)
			}
			for _, r := range s.topic {
				if r.Tombstone {
					t.Fatalf("row %d has a tombstone", r.ID)
				}
			}
		})
	}
}

// The service had its rows when they were read in full. When those that it lacked are looked for once more,
// it shows none at all: it is restored, or answers for another database.
func TestALastLookThatMeetsNoRowAtAllDeletesNothing(t *testing.T) {
	{
		s := openShop(t, 50, func(c *Config) { c.Sweep.Tombstone = true })
		s.rows[60] = row{id: 60, updatedAt: s.now, bad: true}
		s.poll()
		before := maps.Clone(s.rows)
		delete(before, 60)
		drop(s.rows, 10)
		confirmed := s.now.Add(shopOverlap)
		s.looks = func(Request) {
			if s.now >= confirmed {
				clear(s.rows)
			}
		}
		got := s.sweep()
		s.looks = nil
		if got.Extra == 0 || got.Tombstones != 0 || !strings.Contains(got.Left, "no row at all") {
			t.Errorf("swept %+v", got)
		}
		for _, row := range before {
			s.wants(row)
		}
		if len(s.letters) != 1 {
			t.Errorf("dead letters %v", s.letters)
		}

		s.rows = before // and back
		drop(s.rows, 10)
		if got := s.sweep(); got.Tombstones != 10 || got.Left != "" || len(s.letters) != 0 {
			t.Errorf("the next sweep %+v, dead letters %v", got, s.letters)
		}
	}
}

// The same while rows without a day are looked for, which the other looks cannot find.
func TestALookForRowsWithoutADayThatMeetsNoRowAtAllDeletesNothing(t *testing.T) {
	s := openShop(t, 10, func(c *Config) { c.Sweep.Tombstone = true })
	s.incomplete = true
	s.now = s.now.Add(24 * time.Hour) // its record in the topic tells another day
	s.rows[5] = row{id: 5, updatedAt: s.now, bad: true, dayless: true}
	s.poll()
	s.now = s.now.Add(time.Hour) // no pass meets it any more
	s.poll()
	rows := s.rows
	s.looks = func(r Request) {
		if s.rows = rows; r.Everywhere {
			s.rows = map[int64]row{}
		}
	}
	got := s.sweep()
	if got.Tombstones != 0 || len(s.letters) != 1 || !strings.Contains(got.Left, "no row at all") {
		t.Errorf("swept %+v, dead letters %v", got, s.letters)
	}
}

func drop(rows map[int64]row, n int) {
	for id := range int64(n) {
		delete(rows, id)
	}
}

// Somebody who knows may say so. An answer without any row is not believed even then.
func TestAnyNumberIsDeletedOnceSomebodyConfirmsIt(t *testing.T) {
	for left, want := range map[int]int{100: 400, 0: 0} {
		s := openShop(t, 500, func(c *Config) { c.Sweep.Tombstone = true })
		drop(s.rows, 500-left)
		if got := s.sweep(); got.Tombstones != 0 || left > 0 && !strings.Contains(got.Left, "--confirm-deletes") {
			t.Errorf("not confirmed, %d rows left: swept %+v", left, got)
		}
		s.await(s.confirms(400))
		if got := s.mark.Swept; got.Tombstones != want || (got.Left == "") != (want > 0) {
			t.Errorf("confirmed, %d rows left: swept %+v, want %d tombstones", left, got, want)
		}
		if got := s.sweep(); got.Extra != 500-left-want {
			t.Errorf("the next one, %d rows left: swept %+v", left, got)
		}
	}
}

// Somebody has confirmed that rows were deleted. What the service lacks a day later, or when the watermark by
// which the request was done is lost, may be others.
func TestAConfirmationIsGoodForAnHourAndNotBeforeAnythingWasRead(t *testing.T) {
	for name, wait := range map[string]func(*shop){
		"an hour":              func(s *shop) { s.now = s.now.Add(time.Hour) },
		"a watermark was lost": func(s *shop) { s.mark = watermark.New("orders") },
	} {
		s := openShop(t, 500, func(c *Config) { c.Sweep.Tombstone = true })
		s.poll()
		id := s.confirms(400)
		wait(s)
		s.takeOver()
		drop(s.rows, 400)
		if s.await(id); s.mark.Swept.Tombstones != 0 || !strings.Contains(s.mark.Swept.Left, "--confirm-deletes") {
			t.Errorf("%s: swept %+v", name, s.mark.Swept)
		}
	}
}

func TestMoreThanTheNumberThatIsConfirmedIsHeld(t *testing.T) {
	s := openShop(t, 500, func(c *Config) { c.Sweep.Tombstone = true })
	drop(s.rows, 300)
	s.await(s.confirms(299))
	if got := s.mark.Swept; got.Tombstones != 0 || !strings.Contains(got.Left, "--confirm-deletes 300)") {
		t.Errorf("swept %+v", got)
	}
	if s.await(s.confirms(300)); s.mark.Swept.Tombstones != 300 {
		t.Errorf("swept %+v", s.mark.Swept)
	}
	delete(s.rows, 300) // what was confirmed is no part of the day's budget
	if got := s.sweep(); got.Tombstones != 1 {
		t.Errorf("the next one: swept %+v", got)
	}
}

func TestAConfirmationCountsForAllPartsOfASweepTogether(t *testing.T) {
	for confirmed, most := range map[int]int{600: 600, 400: 400} {
		s := openShop(t, 1200, func(c *Config) {
			c.Sweep.Tombstone, c.Sweep.ByID, c.Sweep.MaxSuspects = true, true, 250
		})
		for id := range int64(1200) {
			if id%2 == 0 {
				delete(s.rows, id)
			}
		}
		s.await(s.confirms(confirmed))
		got := s.mark.Swept
		if n := got.Tombstones; got.Extra != 600 || n > most || n == 0 || (n == 600) != (most == 600) {
			t.Errorf("%d confirmed: swept %+v", confirmed, got)
		}
	}
}

// The service has deleted its oldest rows. The first parts have no other rows.
func TestRowsOfAPartThatTheServiceHasDeletedWholeAreDeleted(t *testing.T) {
	for _, byID := range []bool{false, true} {
		s := openShop(t, 500, func(c *Config) {
			c.Sweep.Tombstone, c.Sweep.ByID, c.Sweep.MaxSuspects = true, byID, 100
		})
		for id := range int64(300) {
			delete(s.rows, id)
		}
		s.await(s.confirms(300))
		if got := s.mark.Swept; got.Tombstones != 300 || got.Left != "" {
			t.Errorf("by id %t: swept %+v", byID, got)
		}
	}
}

// A budget of each path, of each request or of each owner would be as many budgets.
func TestSweepsErasesAndTheirSuccessorsHaveOneBudgetOfDeletionsADay(t *testing.T) {
	s := openShop(t, 600, func(c *Config) { c.Sweep.Tombstone = true })
	drop(s.rows, 40)
	if got := s.sweep(); got.Tombstones != 40 {
		t.Fatalf("swept %+v", got)
	}
	s.takeOver()
	s.poll()
	drop(s.rows, 299)
	if got := s.sweep(); got.Tombstones != 0 || !strings.Contains(got.Left, "and 40 were today") {
		t.Errorf("swept %+v", got)
	}
	tombstones := func() (n int) {
		for _, r := range s.topic {
			if r.Tombstone {
				n++
			}
		}
		return n
	}
	for n := range int64(25) { // somebody forges requests
		if s.erase(40+8*n, 41+8*n, 42+8*n, 43+8*n, 44+8*n, 45+8*n, 46+8*n, 47+8*n); n%4 == 3 {
			s.pollFor(2 * shopOverlap)
			s.takeOver()
			s.poll()
		}
	}
	s.pollFor(2 * shopOverlap)
	if n := tombstones(); n != maxDeletes {
		t.Errorf("%d rows are deleted", n)
	}
	last := s.mark.Erased[len(s.mark.Erased)-1]
	if !strings.Contains(last.Left, fmt.Sprintf("storestream erase orders %d --confirm-deletes 1)", last.ID)) {
		t.Errorf("the last one: %+v", last)
	}
	if got := s.sweep(); got.Tombstones != 0 {
		t.Errorf("swept %+v", got)
	}
	s.ask(watermark.Request{Kind: watermark.Erases, ConfirmedDeletes: 1,
		Rows: []int64{298}})
	s.pollFor(2 * shopOverlap)
	if n := tombstones(); n != maxDeletes+1 {
		t.Errorf("with one confirmed %d rows are deleted", n)
	}
	s.now = s.now.Add(24 * time.Hour)
	s.erase(297)
	s.pollFor(2 * shopOverlap)
	if r, _ := s.newest(297); !r.Tombstone || s.mark.Deleted.Rows != 1 {
		t.Errorf("the day after: %+v, counted %+v", r, s.mark.Deleted)
	}
}

func TestAsManyAsAHundredOrAHundredthAreTakenForDeleted(t *testing.T) {
	for rows, deleted := range map[int]int{101: 100, 11000: 110} {
		s := openShop(t, rows, func(c *Config) { c.Sweep.Tombstone = true })
		drop(s.rows, deleted)
		if got := s.sweep(); got.Tombstones != deleted || got.Left != "" {
			t.Errorf("%d of %d rows: swept %+v", deleted, rows, got)
		}
	}
}

func TestOneMoreThanAHundredOrAHundredthIsHeld(t *testing.T) {
	for rows, deleted := range map[int]int{102: 101, 11000: 111} {
		s := openShop(t, rows, func(c *Config) { c.Sweep.Tombstone = true })
		drop(s.rows, deleted)
		if got := s.sweep(); got.Tombstones != 0 || !strings.Contains(got.Left, "--confirm-deletes") {
			t.Errorf("%d of %d rows: swept %+v", deleted, rows, got)
		}
	}
}

func TestRowsThatTheSweepMeetsAndCannotPublishBecomeDeadLetters(t *testing.T) {
	s := openShop(t, 10, nil)
	s.rows[50] = row{id: 50, updatedAt: schemas.MinInstant, bad: true}
	s.rows[51] = row{id: 51, updatedAt: schemas.MinInstant, bad: true, nameless: true}
	s.rows[60] = s.row(60, -time.Hour, 1)
	huge := s.rows[60]
	huge.padding = 2000
	s.rows[60] = huge
	got := s.sweep()
	if got.DeadLetters != 3 || len(s.letters) != 3 || got.Published != 0 {
		t.Errorf("swept %+v, dead letters %v", got, s.letters)
	}
	if got := s.sweep(); got.DeadLetters != 3 || len(s.letters) != 3 {
		t.Errorf("the next one: swept %+v, dead letters %v", got, s.letters)
	}
	delete(s.rows, 51)
	s.now = s.now.Add(2 * shopOverlap)
	if s.sweep(); len(s.letters) != 2 {
		t.Errorf("the row without a usable id is gone, and the letters are %v", s.letters)
	}
}

// Over REST a row is looked for by its day. One without any cannot be, and yet it cannot be published.
func TestARowThatNoDayFindsBecomesADeadLetter(t *testing.T) {
	s := openShop(t, 10, nil)
	s.incomplete, s.byDay = true, true
	s.rows[50] = row{id: 50, updatedAt: schemas.MinInstant, bad: true}
	for range 2 {
		if s.sweep(); len(s.letters) != 1 {
			t.Errorf("dead letters %v", s.letters)
		}
	}
}

// Over REST a row without created_at is on no day that a full reading asks for. It is there all the same.
func TestARowWithoutADayIsNotDeletedAndKeepsItsDeadLetter(t *testing.T) {
	for _, when := range []string{"before the sweep", "while the source is read"} {
		t.Run(when, func(t *testing.T) {
			s := openShop(t, 10, func(c *Config) { c.Sweep.Tombstone = true })
			s.incomplete = true
			lose := func() {
				s.rows[5] = row{id: 5, updatedAt: s.now, bad: true, dayless: true}
			}
			if when == "before the sweep" {
				lose()
				s.poll()
				s.now = s.now.Add(time.Hour) // no pass meets it any more
				s.poll()
				s.takeOver() // the successor knows no more of the letter than that it is there
				s.poll()
				s.sweep()
			} else {
				id := s.askSweep()
				began, goOn := make(chan struct{}), make(chan struct{})
				s.read = func(context.Context) { close(began); <-goOn }
				s.poll()
				<-began
				s.read = nil
				lose()
				close(goOn)
				s.awaitSweep()
				s.await(id)
			}
			if _, there := s.newest(5); !there || len(s.letters) != 1 {
				t.Errorf("in the topic: %v, dead letters %v", there, s.letters)
			}
			delete(s.rows, 5)
			if s.sweep(); len(s.letters) != 0 {
				t.Errorf("it is deleted, and has its dead letter still")
			}
			if _, there := s.newest(5); there {
				t.Error("it is deleted, and stands in the topic still")
			}
		})
	}
}

// What could not be published when it was read in full may be well by now.
func TestARowThatIsWellAtTheLastLookBecomesNoDeadLetter(t *testing.T) {
	s := openShop(t, 10, nil)
	s.rows[50] = row{id: 50, updatedAt: s.now.Add(-time.Hour), bad: true}
	id := s.askSweep()
	s.poll()
	s.rows[50] = s.row(50, 0, 1)
	s.await(id)
	if len(s.letters) != 0 {
		t.Errorf("dead letters %v", s.letters)
	}
	s.wants(s.rows[50])
}

func TestASweepTakesOutTheDeadLettersOfRowsThatAreDeletedOrWell(t *testing.T) {
	s := openShop(t, 10, nil)
	hourAgo := s.now.Add(-time.Hour)
	for id := int64(20); id < 25; id++ {
		s.rows[id] = row{id: id, updatedAt: hourAgo, bad: true}
	}
	if s.sweep(); len(s.letters) != 5 {
		t.Fatalf("dead letters %v", s.letters)
	}
	delete(s.rows, 20)
	s.rows[21] = s.row(21, -time.Hour, 1) // well, and its update did not touch updated_at
	// The full read shows it well, and the last look does not: a replica lagged.
	s.rows[22] = s.row(22, -2*time.Hour, 1)
	s.forge(s.published(s.rows[22]))
	id := s.askSweep()
	s.poll()
	s.rows[22] = row{id: 22, updatedAt: hourAgo, bad: true}
	s.await(id)
	want := []string{"orders/22", "orders/23", "orders/24"}
	if got := slices.Sorted(maps.Keys(s.letters)); !slices.Equal(got, want) {
		t.Errorf("dead letters %v", got)
	}
	s.wants(s.rows[21])

	clear(s.rows) // an answer that is no answer says nothing of dead letters either
	if s.sweep(); len(s.letters) != 3 {
		t.Errorf("after an empty answer: letters %v", s.letters)
	}
}

// A letter that a poll writes while the sweep goes on is not one of a row that the sweep did not meet.
func TestADeadLetterWrittenDuringASweepStays(t *testing.T) {
	s := openShop(t, 10, nil)
	id := s.askSweep()
	s.forge(s.published(s.row(1, -30*time.Minute, 9))) // something to look at
	s.poll()
	s.rows[2] = row{id: 2, updatedAt: s.now, bad: true}
	s.await(id)
	if len(s.letters) != 1 {
		t.Errorf("dead letters %v", s.letters)
	}
}

// A row that is shown now and then, and never rests, is neither published nor taken for deleted. The sweep
// says so.
func TestARowThatComesAndGoesIsNotTakenForDeleted(t *testing.T) {
	s := openShop(t, 10, func(c *Config) { c.Sweep.Tombstone = true })
	s.forge(s.published(s.row(1, time.Hour, 9)))
	id := s.askSweep()
	for n := 0; s.mark.Request < id || s.mark.Sweep != nil; n++ {
		// A round comes an overlap after the one before: every other one meets the row.
		if delete(s.rows, 1); int(s.now.Sub(schemas.InstantOf(noon))/shopOverlap)%2 == 0 {
			s.rows[1] = s.row(1, -time.Hour, 5)
		}
		s.poll()
		if s.now = s.now.Add(10 * time.Second); n > 1000 {
			t.Fatal("the sweep does not end")
		}
	}
	if got := s.mark.Swept; got.Tombstones != 0 || !strings.Contains(got.Left, "1 row came and went") {
		t.Errorf("swept %+v", got)
	}
}

// A sweep reads through replicas too. Of a second that settled has not passed, other content may be an older
// state; of one that it has passed it is an update that left updated_at alone.
func TestASweepWaitsForOtherContentOfASecondThatIsNotSettled(t *testing.T) {
	s := openShop(t, 3, nil)
	s.rows[1] = s.row(1, 0, 2)
	s.poll()
	records := len(s.topic)
	newer := s.rows[1]
	id := s.askSweep()
	s.poll()                   // the sweep has read
	s.rows[1] = s.row(1, 0, 1) // a replica lags
	s.forge(s.published(s.row(2, -time.Hour, 9)))
	for range 5 {
		s.poll()
		s.now = s.now.Add(time.Second)
	}
	s.rows[1] = newer
	s.await(id)
	s.wants(newer)
	for _, r := range s.topic[records:] {
		if r.ID == 1 {
			t.Errorf("published: %+v", r)
		}
	}
}

// A consumer that keeps rows by key takes the tombstone over a stray for the row's own, until the row comes.
func TestTombstonesOverStraysComeBeforeTheirRow(t *testing.T) {
	s := openShop(t, 10, nil)
	stray := s.published(s.rows[3])
	stray.Partition, stray.Stray = 2, true
	s.forge(stray)
	before := len(s.topic)
	s.sweep()
	if len(s.topic) != before+2 || !s.topic[before].Stray || !s.topic[before].Tombstone ||
		s.topic[before].Partition != 2 || s.topic[before+1].row != s.rows[3] {
		t.Errorf("the sweep wrote %+v", s.topic[before:])
	}
}

// The first reading of a sweep shows a row as one that cannot be published, and no look shows it.
func TestARowThatNoLookShowsAnyMoreKeepsItsRecordAndItsLetter(t *testing.T) {
	s := openShop(t, 10, func(c *Config) { c.Sweep.Tombstone = true })
	bad := s.row(1, time.Second, 2)
	bad.bad = true
	s.rows[1] = bad
	s.poll()
	s.now = s.now.Add(time.Hour)
	s.poll()
	bad.content = 3 // no poll meets it any more
	s.rows[1] = bad
	s.looks = func(Request) { delete(s.rows, 1) }
	got := s.sweep()
	if got.Tombstones != 0 || len(s.letters) != 1 || !strings.Contains(got.Left, "1 row came and went") {
		t.Errorf("swept %+v, dead letters %v", got, s.letters)
	}
}

// The service does not show some rows when all are read, and shows them when they are asked for. Whether it
// has others that it does not show, no sweep can tell. A row of the last overlap may only have come late.
func TestASweepSaysWhichRowsOnlyALookShows(t *testing.T) {
	const says = " of the topic did not come when all rows were read"
	t.Run("one part", func(t *testing.T) { onlyALookShows(t, 0, "3 rows"+says) })
	t.Run("parts", func(t *testing.T) { onlyALookShows(t, 2, "2 rows"+says, "; 1 row"+says) }) // of one reading
}

func onlyALookShows(t *testing.T, maxSuspects int, left ...string) {
	t.Helper()
	s := openShop(t, 10, func(c *Config) {
		c.Sweep.Tombstone, c.Sweep.MaxSuspects, c.Sweep.Scratch = true, maxSuspects, 1<<20
	})
	for id := range int64(3) {
		row := s.rows[id+1]
		row.dayless = true
		s.rows[id+1] = row
	}
	s.rows[20] = row{id: 20, updatedAt: s.now, dayless: true}
	s.poll()
	got := s.sweep()
	unsaid := func(text string) bool { return !strings.Contains(got.Left, text) }
	if got.Missing+got.Stale+got.Extra+got.Tombstones > 0 || slices.ContainsFunc(left, unsaid) {
		t.Errorf("swept %+v", got)
	}
	for id, row := range s.rows {
		row.dayless = false
		s.rows[id] = row
	}
	if got = s.sweep(); got.Left != "" {
		t.Errorf("the next sweep %+v", got)
	}
}
