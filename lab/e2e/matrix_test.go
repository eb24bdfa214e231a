package e2e

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/storestream/storestream/internal/standins/storefake"
)

var (
	matrixAll  = flag.Bool("matrix", false, "every plan of the matrix, not a sample (make test-matrix)")
	matrixSeed = flag.Uint64("matrix-seed", 1, "chooses the plans; with 0 the sample is another each time")
)

// variety is one service: a reading of the document, and its clock.
type variety struct {
	fake    storefake.Config
	overlap time.Duration
	midday  bool // the clock is moved over midnight twice, while the shop rests
	// database: orders and order_items come from PostgreSQL, otherwise over REST as all others.
	database bool
	// over ends what cannot last if the topics are to become the service; nil: nothing does.
	over    []func(*storefake.Readings)
	loaded  []func(*storefake.Readings) // readings that begin after the first load
	args    []string                    // of storestream, to cope
	steps   time.Duration               // the clock is set back by it, and later forward
	restore bool                        // the service is restored from a backup
	sweep   bool                        // a change may be late by ten minutes: a sweep brings it sooner
	revoke  bool                        // the key is revoked once
	asks    []ask                       // of a person, at the end of each round
	backup  *storefake.Backup
	backs   map[string]map[int64]time.Time // the rows that the restore took back, by resource
	said    []string
}

// ask returns the arguments of the command that a person gives at the end of a round. It returns nil if there
// is none.
type ask func(s *stack, round int) []string

type choice struct {
	name  string
	apply func(*variety)
}

func reading(name string, apply func(*storefake.Readings)) choice {
	return choice{name, func(v *variety) { apply(&v.fake.Readings) }}
}

// passing is a reading that ends before the shop falls silent.
func passing(name string, apply, over func(*storefake.Readings)) choice {
	return choice{name, func(v *variety) {
		apply(&v.fake.Readings)
		v.over = append(v.over, over)
	}}
}

// late is a reading under which rows show later, by at most a second of the service's clock.
func late(name string, apply func(*storefake.Readings)) choice {
	return choice{name, func(v *variety) {
		apply(&v.fake.Readings)
		v.overlap += 2 * time.Second
	}}
}

// framework is a service of a stack.
func framework(of storefake.Stack) choice {
	return choice{"habits of " + string(of), func(v *variety) {
		if err := of.Apply(&v.fake.Readings); err != nil {
			panic(err)
		}
	}}
}

// refusing is a service that refuses requests by what they ask for, until the shop falls silent. A sweep
// brings what was refused sooner than the next try would.
func refusing(name string, apply func(*storefake.Readings), refusals ...string) choice {
	return choice{name, func(v *variety) {
		r := &v.fake.Readings
		if v.sweep = true; apply != nil {
			apply(r)
		}
		for _, text := range refusals {
			refusal, err := storefake.ParseRefusal(text)
			if err != nil {
				panic(err)
			}
			r.Refusals = append(r.Refusals, refusal)
		}
		v.over = append(v.over, func(r *storefake.Readings) { r.Refusals = nil })
	}}
}

// eve is where a clock of its own begins: a moment before a midnight so long ago that by our clock, too, the
// day is over.
func eve() time.Time {
	return time.Now().UTC().Truncate(24 * time.Hour).Add(-60*24*time.Hour - 3*time.Second)
}

// dimensions are all that the document leaves open. The first value of each is the plainest.
var dimensions = [][]choice{
	{
		{"", nil}, framework(storefake.Python), framework(storefake.Node), framework(storefake.Java),
		framework(storefake.Dotnet), framework(storefake.PHP),
		reading("forms of no stack", func(r *storefake.Readings) {
			r.Habits = storefake.Habits{Times: storefake.TimesPostgres, Meta: storefake.MetaFloat,
				More: storefake.MoreAbsent, Empty: storefake.EmptyAbsent, Case: storefake.CasePascal,
				Errors: storefake.ErrorWord}
		}),
		reading("other forms of no stack", func(r *storefake.Readings) {
			r.Habits = storefake.Habits{Times: storefake.TimesBigQuery, Meta: storefake.MetaExponent,
				More: storefake.MoreString, Nulls: storefake.NullEmpty, Integers: storefake.IntegerFloat}
		}),
	},
	{{"", nil}, reading("fractions of seconds", func(r *storefake.Readings) { r.Habits.Fractions = true })},
	{
		{"", nil}, refusing("a row makes its page a 500", nil, "users/row:7=500", "orders/row:7=500"),
		refusing("no page past row 120", func(r *storefake.Readings) { r.MaxPage = 40 }, "past:120=422"),
		refusing("pages above 50 rows are a 504", nil, "rows:50=504"),
		refusing("dates out of range", nil, "before:1753=400", "after:9998=500", "future:0=406"),
	},
	{
		reading("by id", func(r *storefake.Readings) { r.Order = storefake.ByID }),
		reading("by updated_at", func(r *storefake.Readings) { r.Order = storefake.ByUpdated }),
		reading("newest first", func(r *storefake.Readings) { r.Order = storefake.ByUpdatedDesc }),
		{"some rows pinned first", func(v *variety) {
			v.fake.Readings.Order, v.sweep = storefake.ByPinned, true
		}},
		reading("arbitrary order", func(r *storefake.Readings) { r.Order = storefake.ByHash }),
		reading("another order each time", func(r *storefake.Readings) { r.Order = storefake.ByShuffle }),
	},
	{{"", nil}, reading("ties permuted", func(r *storefake.Readings) { r.PermuteTies = true })},
	{
		{"", nil}, reading("count of the page", func(r *storefake.Readings) { r.Count = storefake.CountPage }),
		{"count an estimate", func(v *variety) {
			v.fake.Readings.Count = storefake.CountEstimate
			v.args = append(v.args, "--set", "store.dialect.count=estimate")
		}},
	},
	{
		{"", nil}, reading("400 past the end",
			func(r *storefake.Readings) { r.PastEnd = storefake.PastEndBadRequest }),
		reading("404 past the end", func(r *storefake.Readings) { r.PastEnd = storefake.PastEndNotFound }),
		reading("the last page past the end", func(r *storefake.Readings) { r.PastEnd = storefake.PastEndLast }),
	},
	{
		{"", nil},
		reading("has_more on full pages", func(r *storefake.Readings) { r.HasMore = storefake.MoreFull }),
		passing("has_more for ever", func(r *storefake.Readings) { r.HasMore = storefake.MoreAlways },
			func(r *storefake.Readings) { r.HasMore = storefake.MoreFollows }),
	},
	{{"", nil}, passing("three pages at most", func(r *storefake.Readings) { r.MaxPages = 3 },
		func(r *storefake.Readings) { r.MaxPages = 0 })},
	{{"", nil}, reading("oversize refused",
		func(r *storefake.Readings) { r.Oversize = storefake.OversizeRefused })},
	{
		{"", nil}, reading("40 rows a page", func(r *storefake.Readings) { r.MaxPage = 40 }),
		reading("15 rows a page", func(r *storefake.Readings) { r.MaxPage = 15 }),
		passing("40 rows a page, often fewer", func(r *storefake.Readings) { r.MaxPage, r.PageTurns = 40, 60 },
			func(r *storefake.Readings) { r.PageTurns = 0 }),
	},
	{
		{"", nil},
		reading("page_size as asked for", func(r *storefake.Readings) { r.PageWord = storefake.PageAsked }),
		reading("no page_size", func(r *storefake.Readings) { r.PageWord = storefake.PageAbsent }),
	},
	{{"", nil}, reading("short pages", func(r *storefake.Readings) { r.ShortPages = .2 })},
	{{"", nil}, reading("empty pages", func(r *storefake.Readings) { r.EmptyPages = .1 })},
	{
		{"", nil},
		reading("429", func(r *storefake.Readings) { r.Limit.PerSecond, r.Limit.Burst = 200, 40 }),
		reading("503", func(r *storefake.Readings) {
			r.Limit.PerSecond, r.Limit.Burst, r.Limit.Status = 200, 40, 503
		}),
		reading("403 for the rate", func(r *storefake.Readings) {
			r.Limit.PerSecond, r.Limit.Burst, r.Limit.Status = 200, 40, 403
		}),
	},
	{
		{"", nil}, reading("Retry-After a date",
			func(r *storefake.Readings) { r.Limit.RetryAfter = storefake.RetryAfterDate }),
		reading("Retry-After 0", func(r *storefake.Readings) { r.Limit.RetryAfter = storefake.RetryAfterZero }),
		reading("no Retry-After", func(r *storefake.Readings) { r.Limit.RetryAfter = storefake.RetryAfterAbsent }),
	},
	{{"", nil}, reading("HTML refusals", func(r *storefake.Readings) { r.Limit.HTML = true })},
	{
		{"", nil}, reading("keys for 2 s", func(r *storefake.Readings) { r.Keys.Lifetime = 2 * time.Second }),
		reading("keys for 100 requests", func(r *storefake.Readings) { r.Keys.Requests = 100 }),
		{"403 for a key that was revoked", func(v *variety) {
			v.fake.Readings.Habits.KeyStatus, v.revoke = 403, true
		}},
	},
	{
		{"", nil}, reading("padded money", func(r *storefake.Readings) { r.MoneyForm = storefake.MoneyPadded }),
		reading("money as text", func(r *storefake.Readings) { r.MoneyForm = storefake.MoneyString }),
		reading("money with exponents", func(r *storefake.Readings) { r.MoneyForm = storefake.MoneyExponent }),
	},
	{{"", nil}, reading("extra fields", func(r *storefake.Readings) { r.ExtraFields = true })},
	{{"", nil}, reading("nulls", func(r *storefake.Readings) { r.Nulls = .1 })},
	{{"", nil}, reading("new statuses", func(r *storefake.Readings) { r.NewStatuses = .05 })},
	{
		{"", nil}, reading("deletes", func(r *storefake.Readings) { r.Deletes = .05 }),
		reading("deletes, and their ids again", func(r *storefake.Readings) { r.Deletes, r.UsedIDs = .05, .5 }),
	},
	{
		{"", nil}, {"a field vanishes", (*variety).losesFields},
		{"a field vanishes, and columns of the database", func(v *variety) { v.losesFields(); v.database = true }},
	},
	{
		{"", nil}, late("two replicas", func(r *storefake.Readings) { r.Replicas, r.ReplicaLag = 2, time.Second }),
		late("four replicas", func(r *storefake.Readings) { r.Replicas, r.ReplicaLag = 4, time.Second }),
	},
	{
		{"", nil}, late("a cache without a trace", func(r *storefake.Readings) {
			r.Cache = storefake.Cache{For: time.Second, NoAge: true, NewDate: true, Deaf: true}
		}),
		passing("a cache with Age", func(r *storefake.Readings) {
			r.Cache = storefake.Cache{For: time.Hour, Deaf: true}
		}, func(r *storefake.Readings) { r.Cache = storefake.Cache{} }),
		reading("a cache that heeds no-cache", func(r *storefake.Readings) { r.Cache.For = time.Hour }),
	},
	{{"", nil}, reading("no Date header", func(r *storefake.Readings) { r.NoDate = true })},
	{
		{"", nil}, reading("days 5 h early", func(r *storefake.Readings) { r.DayOffset = 5 * time.Hour }),
		reading("days 5 h late", func(r *storefake.Readings) { r.DayOffset = -5 * time.Hour }),
	},
	{
		{"", nil},
		reading("of creation 7 h earlier", func(r *storefake.Readings) { r.CreatedOffset = 7 * time.Hour }),
		reading("of creation 5 h later", func(r *storefake.Readings) { r.CreatedOffset = -5 * time.Hour }),
	},
	{
		{"", nil},
		reading("to_ dates are midnights",
			func(r *storefake.Readings) { r.UpdatedToMidnight, r.CreatedToMidnight = true, true }),
		reading("updated_to is a midnight", func(r *storefake.Readings) { r.UpdatedToMidnight = true }),
		reading("created_to is a midnight", func(r *storefake.Readings) { r.CreatedToMidnight = true }),
	},
	{{"", nil}, reading("rows show a second late", func(r *storefake.Readings) { r.Delay = time.Second })},
	{
		{"", nil},
		{"clock 3 h ahead", func(v *variety) { v.fake.Offset = 3 * time.Hour }},
		{"clock 3 h behind", func(v *variety) { v.fake.Offset = -3 * time.Hour }},
		{"clock of its own, days end", func(v *variety) { v.fake.Start, v.midday = eve(), true }},
		{"clock of its own, 20 times as fast", func(v *variety) {
			v.fake.Start, v.fake.Speed, v.overlap, v.midday = eve().Add(-time.Minute), 20, 15*time.Second, true
		}},
	},
	{{"", nil}, {"whole seconds", func(v *variety) { v.fake.WholeSeconds = true }}},
	{{"", nil}, {"clock set back", func(v *variety) {
		v.steps, v.overlap = time.Second, v.overlap+2*time.Second
	}}},
	{{"", nil}, {"wrong dates", func(v *variety) {
		v.fake.Faults.Shares = map[storefake.Fault]float64{storefake.WrongDate: .1}
		v.fake.Faults.DateOff = 26 * time.Hour
	}}},
	{{"", nil}, {"restored from a backup", func(v *variety) { v.restore = true }}},
	{
		{"", nil}, asking("replays of ranges", func(s *stack, round int) []string {
			from, to := s.daysAgo(6-round), s.daysAgo(1)
			if round == 1 { // what changes now, too
				return []string{"replay", "--all", "--from", from}
			}
			return []string{"replay", "--all", "--from", from, "--to", to}
		}),
		asking("replays by id", func(_ *stack, round int) []string { // of rows that flicker, too
			return []string{"replay", storefake.Names()[round], "--ids", "1,3,5,7,9,11,13,15,17,19,1000000"}
		}, func(_ *stack, round int) []string {
			return []string{"replay", storefake.Names()[2+round], "--ids", "2,4,6,8,10,12,14,16,18,20"}
		}),
		asking("a reset, and its end", func(s *stack, round int) []string {
			return [][]string{{"watermark", "reset", "--all", "--to", s.daysAgo(6)}, {"replay", "cancel", "--all"},
				nil}[round]
		}),
		asking("a pause over the kill", func(_ *stack, round int) []string {
			return [][]string{{"pause", "--all"}, {"resume", "--all"}, nil}[round]
		}),
	},
}

// asking is a person who asks for these at the end of each round. In the second round the process is killed.
func asking(name string, asks ...ask) choice {
	return choice{name, func(v *variety) { v.asks = asks }}
}

// daysAgo is so many days before the service's time, for a flag. The service's clock may be ahead of ours.
func (s *stack) daysAgo(n int) string {
	return s.fake.Clock().Now().Add(-time.Duration(n) * 24 * time.Hour).UTC().Format(time.RFC3339)
}

// sensible leaves out what the README does not promise: a service without a Date header whose clock is hours
// away from ours; pages that end early and no count that says so; a field that vanishes before
// any pass was complete, so that nobody can know that it was there; a service's clock that its database does
// not share.
func sensible(p plan) bool {
	v := varietyOf(p, 0)
	r := &v.fake.Readings
	incomplete := r.MaxPages > 0 || r.PageTurns > 0 || r.HasMore == storefake.MoreAlways ||
		r.Cache.For > time.Second || len(r.Refusals) > 0
	otherClock := v.fake.Offset != 0 || !v.fake.Start.IsZero() || v.steps > 0
	switch {
	case incomplete && len(v.loaded) > 0, v.database && otherClock,
		r.MaxPages > 0 && r.Count != storefake.CountTotal:
		return false
	}
	return !r.NoDate || v.fake.Offset == 0 && v.fake.Start.IsZero()
}

// losesFields takes a field of each resource away, and gives it back.
func (v *variety) losesFields() {
	v.loaded = append(v.loaded, func(r *storefake.Readings) {
		r.Without = []string{"orders.status", "order_items.amount", "products.brand", "users.city",
			"shipments.order_id"}
	})
	v.over = append(v.over, func(r *storefake.Readings) { r.Without = nil })
}

func varietyOf(p plan, seed uint64) variety {
	v := variety{overlap: 2 * time.Second, fake: storefake.Config{Seed: seed,
		Size: storefake.Size{Users: 100, Orders: 200, Products: 80, Days: 30}}}
	for d, n := range p {
		if n < 0 {
			continue
		}
		if c := dimensions[d][n]; c.apply != nil {
			c.apply(&v)
			v.said = append(v.said, c.name)
		}
	}
	r := &v.fake.Readings
	if r.Limit.PerSecond == 0 {
		r.Limit = storefake.Limit{}
	}
	if r.EmptyPages > 0 || r.ShortPages > 0 {
		// Where page 0 is empty or short every day takes several pages, and closes late: by a count after
		// steadyPasses, else by chance, some 20 passes of two or three requests for each day, again for each day
		// of creation that the newest one is cut into, and in a sweep. With 30 days that is 90 sets and 5,000
		// requests for each of five resources, and 150 a second are all that a limit of 200 leaves: three minutes
		// for what the others do in seconds.
		v.fake.Size.Days = 8
		// Of small pages in random order a pass needs as many as there are rows, and meets few at once.
		v.fake.Size.Users, v.fake.Size.Orders, v.fake.Size.Products = 50, 80, 40
	}
	return v
}

// Whatever the document leaves open, rows change while they are read, days end, and storestream is killed.
// When the shop falls silent the topics equal the service, no key has stepped back and no version is there
// twice. `-matrix` runs plans in which any two readings meet; without it a few of them run.
func TestUnderEveryReadingOfTheDocumentTheTopicsBecomeTheService(t *testing.T) {
	skipIfMakeTestRunsIt(t)
	sizes := make([]int, len(dimensions))
	for d := range dimensions {
		sizes[d] = len(dimensions[d])
	}
	seed := *matrixSeed
	if seed == 0 {
		seed = rand.Uint64()
	}
	plans := allPairs(sizes, sensible, seed)
	t.Logf("-matrix-seed %d: %d plans", seed, len(plans))
	if !*matrixAll && all {
		plans = plans[:6]
	} else if !*matrixAll {
		plans = plans[:2]
	}
	shared := &stack{t: t, dir: t.TempDir()}
	shared.openBroker(setup{})
	for n, p := range plans {
		v := varietyOf(p, seed+uint64(n))
		t.Run(fmt.Sprintf("%d", n), func(t *testing.T) {
			t.Parallel()
			t.Log(strings.Join(v.said, ", "))
			followVariety(t, v, shared, fmt.Sprintf("plan%d.", n))
		})
	}
}

func followVariety(t *testing.T, v variety, shared *stack, prefix string) {
	t.Helper()
	yaml := "resources:\n"
	for _, resource := range storefake.Names() {
		source := "rest"
		if v.database && (resource == storefake.Orders || resource == storefake.OrderItems) {
			source = "postgres"
		}
		yaml += fmt.Sprintf("  %s: {source: %s, interval: 200ms, overlap: %s}\n", resource, source, v.overlap)
	}
	s := start(t, setup{noPostgres: !v.database, fake: v.fake, beside: shared, prefix: prefix, yaml: yaml})
	s.fake.StartTraffic(25)
	p := s.spawn(append([]string{"run"}, v.args...)...)
	if len(v.loaded) > 0 {
		// The shop rests until the first load is over. If chance alone closes a day, each row written meanwhile
		// makes the passes longer.
		s.changes(60)
		s.fake.StartTraffic(0)
		p.isReady()
		s.fake.StartTraffic(25)
		s.reads(v.loaded)
	}
	for round := range 3 {
		s.changes(60)
		if round == 1 {
			p.kill()
			p = s.spawn(append([]string{"run"}, v.args...)...)
		}
		s.flicker()
		v.befall(s, round)
		v.ask(s, round)
		if v.midday { // while the shop rests: an open transaction would stamp a day ago
			s.fake.Quiesce()
			s.fake.Clock().Advance(17 * time.Hour)
			s.fake.StartTraffic(25)
		}
	}
	s.changes(60)
	s.fake.StartTraffic(0)
	s.reads(v.over)
	if v.restore || v.sweep {
		s.sweep()
	}
	p.isReady()
	for _, resource := range storefake.Names() {
		s.becomesBut(resource, v.fake.Readings.Deletes > 0 || v.restore, v.backs[resource])
	}
}

// replaysEnd waits until a resource has accepted what was asked of it, and no replay is in hand. Replays wait
// for the end of the first load, which does not come if the service says of every day that it ends too early.
func (s *stack) replaysEnd(resource string) {
	s.t.Helper()
	eventually(s.t, "no replay of "+resource+" is in hand", func() (bool, string) {
		m, last := s.mark(resource), int64(-1)
		for _, a := range s.requests(resource) {
			last = a.ID
		}
		over := m.AsOf.Year() == 1 || m.Replay == nil && len(m.Parts) == 0
		return m.Request >= last && over, fmt.Sprintf("%d, %+v", last, m.Mark)
	})
}

// reads changes how the service reads its document.
func (s *stack) reads(changes []func(*storefake.Readings)) {
	s.t.Helper()
	if err := s.fake.SetReadings(func(r *storefake.Readings) {
		for _, change := range changes {
			change(r)
		}
	}); err != nil {
		s.t.Fatal(err)
	}
	if err := s.fake.RenameColumns(context.Background(), s.fake.Readings().Without); err != nil {
		s.t.Fatal(err)
	}
}

// befall is what happens to the service at the end of a round.
func (v *variety) befall(s *stack, round int) {
	s.t.Helper()
	ctx := context.Background()
	var err error
	switch round {
	case 0:
		s.fake.Clock().Advance(-v.steps)
		if v.revoke {
			s.fake.RevokeKey()
		}
	case 2:
		s.fake.Clock().Advance(v.steps)
	}
	switch {
	case v.restore && round == 1:
		v.backup, err = s.fake.Backup(ctx)
	case v.restore && round == 2:
		var did *storefake.Restored
		if did, err = s.fake.Restore(ctx, v.backup); err == nil {
			v.backs = did.Back
		}
	}
	if err != nil {
		s.t.Fatal(err)
	}
}

// ask gives the commands of a person at the end of a round.
func (v *variety) ask(s *stack, round int) {
	s.t.Helper()
	for _, ask := range v.asks {
		if args := ask(s, round); args != nil {
			s.expect(0, nil, append(args, "--yes")...)
		}
	}
}

// sweep asks for a sweep of every resource, and does not wait for it.
func (s *stack) sweep() {
	s.t.Helper()
	if out, errs, code := s.do("sweep", "--yes", "--all"); code != 0 {
		s.t.Fatalf("sweep: exit status %d: %s%s", code, out, errs)
	}
}

// flickered counts the changes of flicker.
var flickered atomic.Int64

// flicker changes rows of each resource several times within a moment, each time to something that no row was
// before: with instants of whole seconds these are changes with one updated_at.
func (s *stack) flicker() {
	s.t.Helper()
	for resource, field := range map[string]string{storefake.Orders: "user_id",
		storefake.OrderItems: "product_id", storefake.Products: "name", storefake.Users: "age",
		storefake.Shipments: "order_id"} {
		for id := range int64(5) {
			for range 3 {
				flickers := flickered.Add(1)
				value := any(1_000_000 + flickers)
				if resource == storefake.Products {
					value = fmt.Sprint("Flickering ", flickers)
				}
				err := s.fake.Do(context.Background(), func(tx *storefake.Tx) error {
					row, there, err := tx.Get(context.Background(), resource, id+1)
					if err != nil || !there || row.Time("updated_at").After(tx.At) {
						return err
					}
					return tx.Update(context.Background(), resource, id+1, func(r storefake.Row) { r[field] = value })
				})
				if err != nil {
					s.t.Fatal(err)
				}
			}
		}
	}
}

// becomes waits until a topic equals the service, apart from rows that the service has deleted where it
// deletes any, and looks at the order of its records.
func (s *stack) becomes(resource string, deletes bool) {
	s.t.Helper()
	s.becomesBut(resource, deletes, nil)
}

// becomesBut is becomes, but the records of rows that a restore took back may be in any order.
func (s *stack) becomesBut(resource string, deletes bool, back map[int64]time.Time) {
	s.t.Helper()
	var records []record
	eventually(s.t, "the topic of "+resource+" equals the service", func() (bool, string) {
		records = s.topic(resource)
		rows := s.fake.Rows(resource)
		kept := records
		if deletes {
			kept = nil
			for _, r := range records {
				if _, there := rows[r.id]; there {
					kept = append(kept, r)
				}
			}
		}
		found := s.differences(resource, kept)
		return len(found) == 0, summary(found)
	})
	s.replaysEnd(resource)
	records = s.topic(resource)
	replays := s.asked(resource, records)
	inOrderBut(s.t, resource, slices.DeleteFunc(records, func(r record) bool {
		_, went := back[r.id]
		return went
	}), replays)
}
