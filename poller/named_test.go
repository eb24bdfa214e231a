package poller

import (
	"context"
	"errors"
	"iter"
	"strings"
	"testing"
	"time"

	"github.com/storestream/storestream/internal/watermark"
	"github.com/storestream/storestream/schemas"
)

// erase asks for rows to be erased.
func (s *shop) erase(ids ...int64) {
	s.ask(watermark.Request{Kind: watermark.Erases, Rows: ids})
}

func (s *shop) pollFor(d time.Duration) {
	s.t.Helper()
	for end := s.now.Add(d); s.now < end; s.now = s.now.Add(time.Second) {
		s.poll()
	}
}

func TestARowIsErasedOnceTheServiceHasNotShownItForAnOverlap(t *testing.T) {
	s := openShop(t, 5, nil)
	delete(s.rows, 3)
	s.erase(3)
	s.pollFor(s.config.Overlap - 2*time.Second)
	if r, _ := s.newest(3); r.Tombstone || len(s.mark.Erased) > 0 || len(s.mark.Erase) != 1 {
		t.Fatalf("within the overlap: %+v, %+v", r, s.mark.Erase)
	}
	s.pollFor(10 * time.Second)
	if r, _ := s.newest(3); !r.Tombstone {
		t.Errorf("the topic holds %+v", r)
	}
	if got := s.mark.Erased; len(got) != 1 || got[0].ID != 3 || got[0].Left != "" || len(s.mark.Erase) > 0 {
		t.Errorf("the watermark says %+v, %+v", s.mark.Erase, got)
	}
	s.rows[3] = row{id: 3, updatedAt: s.now, content: 9} // its id is given out again
	s.pollFor(2 * time.Second)
	s.wants(s.rows[3])
}

// A sweep that fails is tried again after half an hour. A person waits for the erase.
func TestAnEraseBeginsAtOnceThoughASweepHasFailed(t *testing.T) {
	s := openShop(t, 5, nil)
	s.err = errors.New("500 internal_error")
	s.askSweep()
	s.pollFor(time.Hour)
	s.err = nil
	delete(s.rows, 3)
	s.erase(3)
	s.pollFor(s.config.Overlap + 10*time.Second)
	if r, _ := s.newest(3); !r.Tombstone {
		t.Errorf("the topic holds %+v, the watermark %+v, %+v", r, s.mark.Erase, s.mark.Erased)
	}
}

// The budget was used up while a row waits for its second look, and somebody confirms its deletion.
func TestAnErasureIsConfirmedByALaterRequest(t *testing.T) {
	s := openShop(t, 5, nil)
	delete(s.rows, 3)
	s.erase(3)
	s.pollFor(5 * time.Second)
	s.ask(watermark.Request{Kind: watermark.Erases, Rows: []int64{3}, ConfirmedDeletes: 1})
	for mark := &s.poller.state.mark; mark.Deleted.On(s.now) < maxDeletes; {
		mark.Deleted = mark.Deleted.Plus(s.now)
	}
	s.pollFor(s.config.Overlap + 10*time.Second)
	if r, _ := s.newest(3); !r.Tombstone {
		t.Errorf("the topic holds %+v, the watermark %+v, %+v", r, s.mark.Erase, s.mark.Erased)
	}
}

// noLookups is a service that cannot be read whole by updated_*.
type noLookups struct{ Source }

func (n noLookups) Read(ctx context.Context, r Request) iter.Seq2[Batch, error] {
	if r.Kind != Lookup {
		return n.Source.Read(ctx, r)
	}
	return func(yield func(Batch, error) bool) { yield(Batch{}, errors.New("2026-11-20 cannot be closed")) }
}

func TestAnEraseThatFailsAgainAndAgainDoesNotKeepSweepsFromTheirTurn(t *testing.T) {
	s := openShop(t, 5, func(c *Config) {
		source := c.Sweep.Source()
		c.Sweep.Source = func() Source { return noLookups{source} }
	})
	s.erase(3)
	s.pollFor(time.Minute)
	s.askSweep()
	s.pollFor(time.Hour)
	if s.mark.Swept == nil || len(s.mark.Erase) != 1 {
		t.Errorf("swept %+v, the watermark still has %+v", s.mark.Swept, s.mark.Erase)
	}
}

// A sweep that is due may wait for hours until those of other resources have read. An erase does not.
func TestARowToEraseComesBeforeASweepThatIsDue(t *testing.T) {
	turn := make(chan struct{}, 1)
	s := openShop(t, 5, func(c *Config) { c.Sweep.Turn = turn })
	turn <- struct{}{} // another resource sweeps
	s.askSweep()
	for _, id := range []int64{3, 4} {
		delete(s.rows, id)
		s.erase(id)
		s.pollFor(3 * shopOverlap)
	}
	if len(s.mark.Erase) != 0 || len(s.mark.Erased) != 2 {
		t.Errorf("still to be erased: %+v; erased %+v", s.mark.Erase, s.mark.Erased)
	}
}

// A topic may take minutes to read, or a registry may leave a schema that somebody wrote under unanswered.
func TestAnEraseThatReadsTheTopicIsNotWaitedForWhenTheInstanceStops(t *testing.T) {
	reading := make(chan struct{})
	s := openShop(t, 5, func(c *Config) {
		c.Sweep.Topic = func(ctx context.Context, _ []int64, _ func(int64) bool,
			_ func(watermark.Published) error) ([]int64, error) {
			close(reading)
			<-ctx.Done()
			return nil, context.Cause(ctx)
		}
	})
	s.erase(3)
	ctx, stop := context.WithCancelCause(t.Context())
	go func() { <-reading; stop(ErrStopping) }()
	if err := s.poller.Run(ctx); err != nil || len(s.mark.Erase) != 1 {
		t.Errorf("%v, the watermark says %+v", err, s.mark.Erase)
	}
}

// lettersOnly lets row 40 be one that never could be published.
func (s *shop) letterOnly() {
	s.rows[40] = row{id: 40, updatedAt: s.now, bad: true}
	s.poll()
	if len(s.letters) != 1 {
		s.t.Fatalf("dead letters %v", s.letters)
	}
}

func TestAnEraseTakesOutEveryCopyOfARow(t *testing.T) {
	for _, incomplete := range []bool{false, true} { // over REST a lookup is by day
		s := openShop(t, 5, func(c *Config) { c.Sweep.Tombstone = true })
		s.incomplete, s.byDay = incomplete, incomplete
		s.letterOnly()
		for partition := range int32(2) {
			s.forge(record{Published: watermark.Published{ID: 3, Partition: 1 + partition, Stray: true}})
		}
		delete(s.rows, 3)
		delete(s.rows, 40)
		s.now = s.now.Add(2 * shopOverlap) // no poll meets it any more
		s.erase(3, 40)
		s.pollFor(3 * s.config.Overlap)
		if got := s.mark.Erased; len(got) != 2 || got[0].Left+got[1].Left != "" || len(s.letters) > 0 {
			t.Errorf("incomplete %v: the watermark says %+v, %+v, dead letters %v", incomplete, s.mark.Erase, got,
				s.letters)
		}
		newest := map[int32]bool{}
		for _, r := range s.topic {
			if r.ID == 3 {
				newest[r.Partition] = r.Tombstone
			}
		}
		if len(newest) != 3 || !newest[0] || !newest[1] || !newest[2] {
			t.Errorf("incomplete %v: tombstones by partition: %v", incomplete, newest)
		}
	}
}

func TestALetterOfARowThatTheServiceHasIsNotErased(t *testing.T) {
	for _, incomplete := range []bool{false, true} {
		s := openShop(t, 5, nil)
		s.incomplete, s.byDay = incomplete, incomplete
		s.letterOnly()
		s.now = s.now.Add(2 * shopOverlap)
		s.erase(40)
		s.pollFor(3 * s.config.Overlap)
		if got := s.mark.Erased; len(got) != 1 || !strings.Contains(got[0].Left, "the service has it") ||
			len(s.letters) != 1 {
			t.Errorf("incomplete %v: %+v, dead letters %v", incomplete, got, s.letters)
		}
	}
}

// A stray alone is left over where an erase of before took out the row's own record.
func TestAnEraseTakesOutTheStraysOfARowThatIsDeletedAlready(t *testing.T) {
	s := openShop(t, 5, nil)
	s.incomplete = true
	s.forge(record{Published: watermark.Published{ID: 3, Partition: 1, Stray: true}})
	s.forge(s.tombstone(3))
	delete(s.rows, 3)
	s.erase(3)
	s.pollFor(2 * s.config.Overlap)
	if got := s.mark.Erased; len(got) != 1 || got[0].Left != "" || !s.topic[len(s.topic)-1].Stray {
		t.Errorf("%+v, the newest record is %+v", got, s.topic[len(s.topic)-1])
	}
}

func TestARowThatTheServiceHasIsNotErased(t *testing.T) {
	s := openShop(t, 5, nil)
	s.erase(2)
	s.pollFor(5 * time.Second)
	if got := s.mark.Erased; len(got) != 1 || got[0].Left != "the service has it" {
		t.Errorf("the watermark says %+v", got)
	}
	gone := s.rows[4] // on no page for a moment, as a row may be that is being updated
	delete(s.rows, 4)
	s.erase(4)
	s.pollFor(5 * time.Second)
	s.rows[4] = gone
	s.pollFor(s.config.Overlap + 10*time.Second)
	if got := s.mark.Erased; len(got) != 2 || got[1].Left != "the service has it" {
		t.Errorf("the watermark says %+v", got)
	}
	for _, r := range s.topic {
		if r.Tombstone {
			t.Errorf("row %d has a tombstone", r.ID)
		}
	}
}

func TestARowThatNobodyCanLookForIsNotErased(t *testing.T) {
	for want, change := range map[string]func(s *shop){
		"the topic holds no such row": func(s *shop) { s.erase(99) },
		"showed no row at all": func(s *shop) {
			clear(s.rows)
			s.erase(3)
		},
		"the service has it": func(s *shop) { // on the day of another change, which only passes meet
			s.incomplete = true
			s.rows[3] = row{id: 3, updatedAt: s.now.Add(24 * time.Hour), content: 7, bad: true, dayless: true}
			s.erase(3)
		},
		"without a usable id": func(s *shop) {
			s.rows[3] = row{id: 3, updatedAt: schemas.MinInstant, bad: true, nameless: true}
			s.erase(3)
		},
	} {
		s := openShop(t, 5, nil)
		delete(s.rows, 3)
		change(s)
		s.pollFor(2*s.config.Overlap + 5*time.Second)
		if got := s.mark.Erased; len(got) != 1 || !strings.Contains(got[0].Left, want) {
			t.Errorf("the watermark says %+v, want %q", got, want)
		}
		if r, _ := s.newest(3); r.Tombstone {
			t.Errorf("%s: erased", want)
		}
	}
}

// Since when a row was not shown is not in the watermark: the new owner may have another copy of the service.
func TestANewOwnerGoesOnWithAnErasureFromItsFirstLook(t *testing.T) {
	s := openShop(t, 5, nil)
	delete(s.rows, 3)
	s.erase(3)
	s.pollFor(s.config.Overlap - 2*time.Second)
	s.takeOver()
	s.pollFor(s.config.Overlap - 2*time.Second)
	if r, _ := s.newest(3); r.Tombstone {
		t.Error("erased before the new owner has looked for an overlap")
	}
	s.pollFor(10 * time.Second)
	if r, _ := s.newest(3); !r.Tombstone {
		t.Errorf("the topic holds %+v", r)
	}
}

// Of a service that is asked by day.
func TestARowThatHasLostItsCreatedAtIsNotErased(t *testing.T) {
	for _, bad := range []bool{false, true} {
		s := openShop(t, 5, nil)
		s.incomplete = true
		lost := s.rows[3]
		lost.dayless, lost.bad = true, bad
		s.rows[3] = lost
		s.erase(3)
		s.pollFor(2*s.config.Overlap + 5*time.Second)
		if got := s.mark.Erased; len(got) != 1 || got[0].Left != "the service has it" {
			t.Errorf("the watermark says %+v", got)
		}
		if r, _ := s.newest(3); r.Tombstone {
			t.Error("erased")
		}
	}
}

// A row's days were corrected, without a new updated_at that a poll would meet. Over REST no look by the days
// of its records shows it, but a reading of all rows does.
func TestARowThatOnlyAFullReadingShowsIsNotErased(t *testing.T) {
	for _, tombstone := range []bool{false, true} {
		s := openShop(t, 5, func(c *Config) { c.Sweep.Tombstone = tombstone })
		s.incomplete = true
		s.notFound = 3
		s.erase(3)
		s.pollFor(6 * s.config.Overlap)
		if got := s.mark.Erased; len(got) != 1 || got[0].Left != "the service has it" {
			t.Errorf("deletes %v: the watermark says %+v", tombstone, got)
		}
		if r, _ := s.newest(3); r.Tombstone {
			t.Errorf("deletes %v: erased", tombstone)
		}
	}
}

// The answer is empty at the second look alone: a table that is restored, a server that starts.
func TestAnEmptyAnswerDoesNotConfirmThatARowIsDeleted(t *testing.T) {
	s := openShop(t, 5, nil)
	delete(s.rows, 3)
	s.erase(3)
	s.pollFor(5 * time.Second)
	clear(s.rows)
	s.pollFor(2 * s.config.Overlap)
	if got := s.mark.Erased; len(got) != 1 || !strings.Contains(got[0].Left, "showed no row at all") {
		t.Errorf("the watermark says %+v", got)
	}
	if r, _ := s.newest(3); r.Tombstone {
		t.Error("erased")
	}
}

// Rows that no poll reads again, because their updated_at is old, are looked up on request. What can be
// published by now is published. Nothing is deleted, and the other rows are not read into the topic again.
func TestARetryPublishesRowsWithDeadLettersThatCanBeByNow(t *testing.T) {
	for name, ids := range map[string][]int64{"all": nil, "named": {4, 5, 6, 30, 31, 32}} {
		s := hourly(t, func(c *Config) { c.Sweep.Tombstone = true })
		for _, id := range []int64{5, 6, 30, 31, 32} {
			s.rows[id] = row{id: id, updatedAt: s.clock(), content: 2, bad: true}
		}
		s.pollFor(10 * shopOverlap)
		before := len(s.topic)
		for _, id := range []int64{5, 30} {
			s.rows[id] = row{id: id, updatedAt: s.rows[id].updatedAt, content: 2}
		}
		delete(s.rows, 6)
		delete(s.rows, 32)
		if s.pollFor(10 * shopOverlap); len(s.letters) != 5 || len(s.topic) != before {
			t.Fatalf("%s: polls have found it: %d letters, %d records", name, len(s.letters), len(s.topic)-before)
		}
		s.ask(watermark.Request{Kind: watermark.Retries, Rows: ids})
		s.awaitReplay()
		s.wants(s.rows[5])
		s.wants(s.rows[30])
		if newest, there := s.newest(6); !there || newest.Tombstone || len(s.topic) != before+2 {
			t.Errorf("%s: %d records, row 6: %+v", name, len(s.topic)-before, newest)
		}
		if _, there := s.letters["orders/31"]; !there || len(s.letters) != 1 {
			t.Errorf("%s: the letters are %v", name, s.letters)
		}
		got := s.result()
		if got.Rows != 2 || !strings.HasPrefix(got.Left, "1 row cannot be published yet") ||
			!strings.Contains(got.Left, "does not have 1 row of the topic") ||
			strings.Contains(got.Left, "no dead letter: 1 row") != (ids != nil) || s.mark.LastSweep > 0 && s.full > 0 {
			t.Errorf("%s: %+v, %d full readings", name, got, s.full)
		}
	}
}

// A row that is as its letter says needs no second look, so nobody waits an overlap for it. Rows without a
// letter are refused.
func TestARetryOfARowThatIsStillBadEndsWithItsFirstLook(t *testing.T) {
	s := hourly(t, nil)
	s.rows[30] = row{id: 30, updatedAt: s.clock(), content: 2, bad: true}
	s.pollFor(10 * shopOverlap)
	asked := s.now
	s.ask(watermark.Request{Kind: watermark.Retries, Rows: []int64{30}})
	s.awaitReplay()
	if got := s.result(); !strings.HasPrefix(got.Left, "1 row cannot be published yet") ||
		s.now.Sub(asked) >= shopOverlap {
		t.Errorf("after %s: %+v", s.now.Sub(asked), got)
	}
	s.ask(watermark.Request{Kind: watermark.Retries, Rows: []int64{4, -5}})
	s.awaitReplay()
	if got := s.result(); got.Left != "none of the rows has a dead letter" {
		t.Errorf("%+v", got)
	}
}

// A retry without anything to look up ends, and is no sweep.
func TestARetryWithoutDeadLettersEndsAtOnce(t *testing.T) {
	s := hourly(t, nil)
	s.rows[50] = s.row(50, -30*time.Hour, 1) // a sweep would find it
	before := len(s.topic)
	s.ask(watermark.Request{Kind: watermark.Retries})
	s.awaitReplay()
	if got := s.result(); got.Rows != 0 || got.Left != "" || len(s.topic) != before || s.full != 0 {
		t.Errorf("%+v, %d records, %d full readings", got, len(s.topic)-before, s.full)
	}
}
