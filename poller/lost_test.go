package poller

import (
	"context"
	"errors"
	"iter"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/storestream/storestream/internal/watermark"
	"github.com/storestream/storestream/schemas"
)

// lostOnce is a shop as a source that finds out once that what was read before does not count.
type lostOnce struct {
	*shop
	lost     *LostError
	requests []Request
}

func (l *lostOnce) Read(ctx context.Context, r Request) iter.Seq2[Batch, error] {
	return pushed(func(emit func(Batch) error) error { return l.push(ctx, r, emit) })
}

func (l *lostOnce) push(ctx context.Context, r Request, emit func(Batch) error) error {
	l.requests = append(l.requests, r)
	if lost := l.lost; lost != nil && r.Kind == Pass {
		l.lost = nil
		return lost
	}
	return l.shop.push(ctx, r, emit)
}

// openLost is an open shop with such a source.
func openLost(t *testing.T, change func(*Config)) *lostOnce {
	t.Helper()
	l := &lostOnce{}
	l.shop = openShop(t, 5, change)
	l.config.Source = l
	l.takeOver()
	l.shop.poll()
	return l
}

// The database's clock was ahead, and is set back: what it stamps from then on lies below settled.
func TestWhatWasWrittenBelowSettledIsReadWhereTheSourceSaysFromWhere(t *testing.T) {
	l := openLost(t, func(c *Config) { c.Sweep.Interval = 24 * time.Hour })
	for n := range 3 { // written an hour ahead of our clock, and passed by settled
		l.rows[int64(10+n)] = l.row(int64(10+n), time.Hour, 1)
	}
	l.shop.poll()
	l.settles = schemas.InstantOf(noon.Add(2 * time.Hour))
	for range 2 {
		l.now = l.now.Add(idleWrite)
		l.shop.poll()
	}
	l.settles = 0
	l.takeOver() // forgets them
	if l.mark.Settled <= l.rows[10].updatedAt {
		t.Fatalf("settled is %s", l.mark.Settled)
	}
	records := len(l.topic)

	below := l.row(1, 30*time.Minute, 2)
	l.rows[1] = below
	from := schemas.InstantOf(noon.Add(20 * time.Minute))
	l.lost = &LostError{Why: "its clock went back", From: from, Sweep: true}
	l.shop.poll()
	if l.mark.Settled != from || l.mark.Cursor != nil || l.mark.Floor != nil {
		t.Errorf("settled is %s, want %s", l.mark.Settled, from)
	}
	if l.mark.Sweep == nil || l.mark.Sweep.Request != -1 {
		t.Errorf("no sweep is asked for: %+v", l.mark.Sweep)
	}
	for range 3 {
		l.shop.poll()
	}
	l.wants(below)
	if len(l.topic) != records+1 {
		t.Errorf("published again: %+v", l.topic[records:])
	}
	if l.mark.Settled > from {
		t.Errorf("settled is %s", l.mark.Settled)
	}
}

func TestSettledDoesNotGoBackBelowTheStart(t *testing.T) {
	start := schemas.InstantOf(noon.Add(-2 * time.Hour))
	l := openLost(t, func(c *Config) { c.Start = start })
	l.lost = &LostError{Why: "its clock went back", From: start.Add(-time.Hour)}
	l.shop.poll()
	if l.mark.Settled != start {
		t.Errorf("settled is %s, the start %s", l.mark.Settled, start)
	}
}

// Where the table is stays known, whatever else is given up: another one must not take its place meanwhile.
// Only a reset says that the next one is right.
func TestWhereTheTableIsIsForgottenByAResetThatNamesAnotherSchemaAlone(t *testing.T) {
	id := watermark.Identity{Schema: "public", Kind: "r", Table: 5, System: "7/5", Timeline: 2,
		Started: 9, Xmin: 4}
	place := watermark.Identity{Schema: "public", Kind: "r", Started: schemas.MinInstant}
	rest := id
	rest.Schema, rest.Kind = "mine", ""
	now := schemas.InstantOf(noon)
	for name, c := range map[string]struct {
		lost  *LostError
		names string
		want  watermark.Identity
	}{
		"a clock": {&LostError{Why: "its clock went back", From: now.Add(-time.Hour)}, "", id},
		"another history": {&LostError{Why: "another timeline", From: schemas.MaxInstant, Sweep: true}, "",
			place},
		"a reset":                        {nil, "", id},
		"a reset that confirms a schema": {nil, "mine", rest},
	} {
		l := openLost(t, nil)
		known := id
		l.mark.Identity, l.lost = &known, c.lost
		l.takeOver()
		if c.lost == nil {
			l.ask(watermark.Request{Kind: watermark.Reset, To: &now, Schema: c.names})
		}
		if err := l.work(); !errors.Is(err, ErrTakeover) || *l.mark.Identity != c.want {
			t.Errorf("%s: %v, %+v, expected %+v", name, err, l.mark.Identity, c.want)
		}
	}
}

// A takeover would lead to the same, at once and again and again.
func TestALostErrorThatChangesNothingIsAFailureLikeOthers(t *testing.T) {
	l := openLost(t, nil)
	l.lost = &LostError{Why: "another table", From: schemas.MaxInstant}
	var lost *LostError
	if err := l.work(); !errors.As(err, &lost) || errors.Is(err, ErrTakeover) {
		t.Errorf("%v", err)
	}
}

// Whoever takes over has to know that it came to this by the source, and not to ask for ever.
func TestATakeoverThatASourceAskedForSaysSo(t *testing.T) {
	l := openLost(t, nil)
	l.lost = &LostError{Why: "its clock went back", From: schemas.InstantOf(noon.Add(-time.Hour))}
	var lost *LostError
	if err := l.work(); !errors.As(err, &lost) || !errors.Is(err, ErrTakeover) {
		t.Errorf("%v", err)
	}
}

// PostgreSQL shows microseconds, the REST API seconds. What PostgreSQL shows after settled may lie before it
// there.
func TestARowOfSettledsSecondIsMetWhereTheSourceIsAnotherOneNow(t *testing.T) {
	l := openLost(t, func(c *Config) { c.Sweep.Interval = 24 * time.Hour })
	l.settles = schemas.InstantOf(noon.Add(500 * time.Millisecond))
	l.now = l.now.Add(idleWrite)
	l.shop.poll()
	records := len(l.topic)

	l.config.SourceName = "rest"
	l.takeOver()
	l.rows[77] = l.row(77, 0, 1) // stamped 900 ms after noon, and shown without the milliseconds
	if err := l.work(); !errors.Is(err, ErrTakeover) ||
		!strings.Contains(err.Error(), "from rest now, and was from postgres") {
		t.Errorf("%v", err)
	}
	if l.mark.Settled != schemas.InstantOf(noon) || l.mark.Floor != nil || l.mark.Sweep == nil {
		t.Errorf("settled is %s, floor %v, sweep %v", l.mark.Settled, l.mark.Floor, l.mark.Sweep)
	}
	l.mark.Sweep = nil // the shop is not read by two at once
	l.takeOver()
	for range 3 {
		if err := l.work(); err != nil {
			t.Error(err)
		}
	}
	l.wants(l.rows[77])
	if len(l.topic) != records+1 {
		t.Errorf("published again: %+v", l.topic[records:])
	}
	if l.mark.Source != "rest" {
		t.Errorf("the watermark says %q", l.mark.Source)
	}
}

// A sweep that has passed some of the rows begins anew.
func TestASweepInHandBeginsAnewWhereRowsMayHaveChangedBehindIt(t *testing.T) {
	s := shopOfParts(t, nil)
	l := &lostOnce{shop: s}
	s.config.Source = l
	s.takeOver()
	for id := range int64(10) {
		s.rows[id] = s.row(id, -time.Hour, 2) // no poll sees it
	}
	id := s.askSweep()
	s.inParts(1)
	l.lost = &LostError{Why: "another server", From: schemas.InstantOf(noon.Add(-time.Hour)), Sweep: true}
	s.poll()
	if sweep := s.mark.Sweep; sweep == nil || sweep.Request != id || sweep.From != nil || sweep.Tried != nil {
		t.Errorf("the sweep goes on with %+v", s.mark.Sweep)
	}
	s.await(id)
}

// What a source has found out about the service is in the watermark from its next batch on.
func TestTheWatermarkKeepsWhatASourceHasFoundOut(t *testing.T) {
	l := openLost(t, nil)
	found := map[string]watermark.Proof{"days": {Value: "other", Since: 1}}
	for _, b := range []Batch{{Settled: schemas.MinInstant, Dialect: found}, {Settled: schemas.MinInstant}} {
		if err := l.poller.publish(one(b)); err != nil {
			t.Fatal(err)
		}
	}
	l.now = l.now.Add(idleWrite)
	l.shop.poll()
	if l.mark.Dialect["days"] != found["days"] {
		t.Errorf("the watermark has %+v", l.mark.Dialect)
	}
}

// The source tells which fields it has, and is told again, by a successor too. What the schema no longer has
// nobody expects. A pass that is not complete tells only if none told before.
func TestASourceIsToldWhichFieldsItHad(t *testing.T) {
	l := openLost(t, nil)
	l.config.Resource.Fields = []schemas.Field{{Name: "id"}, {Name: "status"}}
	for _, fields := range [][]string{{"id", "status", "gone"}, {"id"}} {
		err := l.poller.publish(one(Batch{Settled: schemas.MinInstant, Done: &Done{Fields: fields}}))
		if err != nil {
			t.Fatal(err)
		}
	}
	l.now = l.now.Add(idleWrite)
	l.shop.poll()
	l.takeOver()
	l.requests = nil
	l.askSweep()
	for range 3 {
		l.shop.poll()
	}
	for _, r := range l.requests {
		if !slices.Equal(r.Fields, []string{"id", "status"}) {
			t.Errorf("a read of kind %d expects %v", r.Kind, r.Fields)
		}
	}
	if len(l.requests) == 0 || len(l.mark.Fields) != 3 {
		t.Errorf("%d reads, the watermark has %v", len(l.requests), l.mark.Fields)
	}
	err := l.poller.publish(one(Batch{Settled: schemas.MinInstant,
		Done: &Done{Complete: true, Fields: []string{"status"}}}))
	if err != nil || !slices.Equal(l.poller.state.mark.Fields, []string{"status"}) {
		t.Errorf("after a complete pass the watermark has %v (%v)", l.poller.state.mark.Fields, err)
	}
}

// A source may leave out what is bad and hand over the rest: then rows are published while it is blocked.
func TestTheWatermarkSaysWhetherRowsGoOnWhileItIsBlocked(t *testing.T) {
	s := openShop(t, 0, nil)
	p := s.poller
	p.state.noteTrouble(watermark.Trouble{Why: "a transaction is open", Since: s.clock().Add(-time.Hour),
		Publishes: true}, p.cfg.Clock())
	began := s.clock() // of the block: settled stood still before, and that is another thing
	for _, publishes := range []bool{true, false, true} {
		blocked := &BlockedError{What: "none of 20 rows read together can be published", Publishes: publishes}
		if err := p.writer.reportFailure(blocked, s.poller.cfg.now()); err != nil {
			t.Fatal(err)
		}
		if told := p.state.mark.Trouble; told == nil || told.Publishes != publishes ||
			told.LeavesOut != publishes || !told.Blocked() || told.Since != began {
			t.Errorf("trouble: %+v, expected since %s", told, began)
		}
		s.now = s.now.Add(time.Second)
	}
}

// Whoever asks whether everything is up to date while the database is down is not told so for a minute; and a
// failure that was over at once nobody needs to know of.
func TestTheWatermarkSaysThatPollsFailOnceTheyHaveForAWhile(t *testing.T) {
	s := openShop(t, 0, nil)
	if err := s.work(); err != nil {
		t.Fatal(err)
	}
	began, refused := s.poller.cfg.now(), errors.New("connection refused")
	fail := func() *watermark.Trouble {
		t.Helper()
		if err := s.poller.writer.reportFailure(refused, began); err != nil {
			t.Fatal(err)
		}
		return s.mark.Trouble
	}
	s.now = s.now.Add(9 * time.Second)
	if told := fail(); told != nil {
		t.Errorf("after nine seconds: %+v", told)
	}
	s.now = s.now.Add(time.Second)
	if told := fail(); told == nil || !told.Failing || told.Publishes || told.Why != "connection refused" ||
		told.Since != schemas.InstantOf(began) {
		t.Errorf("after ten seconds: %+v", told)
	}
	s.now = s.now.Add(time.Second)
	if err := s.work(); err != nil || s.mark.Trouble != nil {
		t.Errorf("a second later a poll succeeds: %+v, %v", s.mark.Trouble, err)
	}
}

// Every reader of the watermarks sees why a resource fails, and an error may repeat a secret.
func TestTheWatermarkShowsNoSecret(t *testing.T) {
	s := openShop(t, 0, func(c *Config) {
		c.Hide = func(text string) string { return strings.ReplaceAll(text, "hunter2", "***") }
	})
	began := s.poller.cfg.now()
	s.now = s.now.Add(time.Minute)
	if err := s.poller.writer.reportFailure(errors.New("no login with hunter2"), began); err != nil {
		t.Fatal(err)
	}
	if told := s.mark.Trouble; told == nil || told.Why != "no login with ***" {
		t.Errorf("%+v", told)
	}
}

// A resource that publishes nothing says so where everybody looks, not only on its owner's page.
func TestTheWatermarkSaysThatAResourceIsBlocked(t *testing.T) {
	s := openShop(t, 0, fewRows(20))
	s.settles = schemas.InstantOf(noon.Add(-shopOverlap))
	for id := range int64(50) {
		s.rows[id] = s.row(id, time.Duration(id)*time.Second, 1)
	}
	_ = s.blocked()
	publish, written := s.publishes, 0
	s.publishes = func(ctx context.Context, tx watermark.Transaction) error {
		written++
		return publish(ctx, tx)
	}
	for range 9 {
		blocked := s.blocked()
		if err := s.poller.writer.reportFailure(blocked, s.poller.cfg.now()); err != nil {
			t.Fatal(err)
		}
		s.now = s.now.Add(time.Second)
	}
	told := s.mark.Trouble
	if told == nil || told.Publishes || told.Since != schemas.InstantOf(noon) ||
		!strings.Contains(told.Why, "poll.memory is full") {
		t.Errorf("trouble: %+v", told)
	}
	if written != 1 {
		t.Errorf("%d watermarks within nine seconds", written)
	}
	err := s.poller.writer.reportFailure(errors.New("connection refused"),
		s.poller.cfg.now())
	if err != nil || s.mark.Trouble == nil {
		t.Errorf("another failure ends the block: %v", err)
	}
	s.takeOver() // what a predecessor said stands until it is known to be otherwise
	if err := s.poller.writer.commit(watermark.Transaction{}); err != nil || s.mark.Trouble == nil {
		t.Errorf("trouble: %+v, %v", s.mark.Trouble, err)
	}
	s.settles = schemas.InstantOf(noon.Add(time.Hour))
	for range 5 {
		s.now = s.now.Add(idleWrite)
		if err := s.work(); errors.Is(err, ErrTakeover) {
			s.takeOver()
		}
	}
	if s.mark.Trouble != nil {
		t.Errorf("trouble still: %+v", s.mark.Trouble)
	}
}
