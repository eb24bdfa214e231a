package main

import (
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/storestream/storestream/internal/standins/storefake"
)

// Where orders and order items are read from.
const (
	fromDatabase = "database" // PostgreSQL behind PgBouncer; the service's clock is ours
	fromREST     = "rest"     // REST; the service's clock runs fast, so that days end during the run
)

// Which broker, and which registry.
const (
	apacheKafka = "kafka"
	embedded    = "embedded"
	apicurio    = "apicurio"
)

// terms are the user's wishes for a run. The seed fills the empty strings.
type terms struct {
	seed     uint64
	length   time.Duration
	broker   string
	source   string
	registry string
	only     string // parts of mishaps' names, joined by commas; "" for all
}

// plan is everything about a run that its terms decide.
type plan struct {
	terms
	instances  int
	partitions int
	traffic    float64 // transactions a second
	service    service
	polling    polling
	events     []event
}

// service is how the stand-in is set up. Its start is relative, so that a plan is the same on every day.
type service struct {
	size         storefake.Size
	readings     storefake.Readings
	columns      storefake.Columns
	noIndex      bool
	sparse       bool // tables are large, and loaded in the order of their blocks
	wholeSeconds bool
	speed        float64       // of its clock
	behind       time.Duration // how far its clock is behind ours at the start
}

// polling is storestream's configuration, and the limits that its promise sets for the service's writers.
type polling struct {
	interval, restInterval time.Duration
	overlap, restOverlap   time.Duration
	requestsPerSecond      int
	memory                 memory
	// hold limits how long a transaction stays open after its first write. restHold is the limit for rows
	// that are read over REST: REST promises nothing for a row that becomes readable later than overlap.
	hold, restHold time.Duration
}

// memory is poll.memory, in KiB.
type memory int

func mebibytes(n int) memory { return memory(n << 10) }

// whole is that in MiB, rounded up as storestream's texts are.
func (m memory) whole() int { return (int(m) + 1<<10 - 1) >> 10 }

// tooManyRows is half as many again as fit.
func (m memory) tooManyRows() int { return int(m) << 10 / 24 * 3 / 2 }

// Streams of chance: another kind of mishap must not change the readings, and another request of an operator
// must not change the mishaps.
const (
	streamTerms = iota + 1
	streamReadings
	streamEvents
	streamLoad
	streamBeside
)

// newPlan draws a plan. The same terms give the same plan.
func newPlan(t terms) plan {
	d := draw{rand.New(rand.NewPCG(t.seed, streamTerms))}
	p := plan{terms: t}
	source, registry := oneOf(d, fromDatabase, fromDatabase, fromREST),
		oneOf(d, embedded, embedded, embedded, apicurio)
	if p.source == "" {
		p.source = source
	}
	if p.broker == embedded {
		registry = embedded // a run without Java
	}
	if p.registry == "" {
		p.registry = registry
	}
	p.instances = oneOf(d, 2, 2, 3)
	p.partitions = oneOf(d, 1, 3, 6)
	p.traffic = oneOf(d, 8., 15., 25.)
	p.drawService(draw{rand.New(rand.NewPCG(t.seed, streamReadings))})
	p.drawEvents(draw{rand.New(rand.NewPCG(t.seed, streamEvents))})
	p.drawBeside(draw{rand.New(rand.NewPCG(t.seed, streamBeside))})
	return p
}

// write prints the plan.
func (p *plan) write(w io.Writer) {
	p.writeTerms(w)
	for _, e := range p.events {
		fmt.Fprintf(w, "%10s %s\n", clockText(e.at), e)
	}
	for _, name := range kindNames() {
		if why := p.absent(name); why != "" {
			fmt.Fprintf(w, "     never %s: %s\n", plainName(name), why)
		}
	}
}

// writeTerms prints the terms that stay the same during the run.
func (p *plan) writeTerms(w io.Writer) {
	fmt.Fprintf(w, "seed %d for %s: orders and items from %s, broker %s, registry %s, %d instances, "+
		"%d partitions, %.0f changes a second\n",
		p.seed, p.length, p.source, p.broker, p.registry, p.instances, p.partitions, p.traffic)
	s := &p.service
	fmt.Fprintf(w, "service    %+v\n", s.size)
	fmt.Fprintf(w, "           %s\n", strings.TrimPrefix(fmt.Sprintf("%+v", s.readings), "storefake."))
	if p.source == fromDatabase {
		fmt.Fprintf(w, "database   %+v, no index on updated_at: %v, loaded by blocks: %v\n", s.columns, s.noIndex,
			s.sparse)
	}
	fmt.Fprintf(w, "clock      %.0f times as fast as ours, %s behind it, whole seconds: %v\n", s.speed, s.behind,
		s.wholeSeconds)
	o := &p.polling
	fmt.Fprintf(w, "polling    tables every %s with overlap %s, REST every %s with overlap %s and %d requests "+
		"a second; poll.memory %d KiB; transactions stay open for %s, those over REST for %s\n",
		o.interval, o.overlap, o.restInterval, o.restOverlap, o.requestsPerSecond, o.memory, o.hold, o.restHold)
}

// clockText is minutes and seconds, to the tenth.
func clockText(d time.Duration) string {
	return fmt.Sprintf("%d:%04.1f", int(d.Minutes()), (d % time.Minute).Seconds())
}

// draw is chance with the questions that plans ask.
type draw struct{ *rand.Rand }

func oneOf[T any](d draw, from ...T) T { return from[d.IntN(len(from))] }

// likely is true with probability p.
func (d draw) likely(p float64) bool { return d.Float64() < p }

// between is a duration in [from, to), in whole tenths of a second.
func (d draw) between(from, to time.Duration) time.Duration {
	const grain = 100 * time.Millisecond
	if to <= from {
		return from
	}
	return from + time.Duration(d.Int64N(int64((to-from)/grain)+1))*grain
}
