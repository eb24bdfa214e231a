package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/storestream/storestream/internal/standins/storefake"
)

// kind is one thing that goes wrong, or is done to storestream by its operator.
type kind struct {
	name string
	// weight is how many cards of this kind a deck holds. A deck is played to its end before the next one is
	// dealt.
	weight int
	// hits is the part that it makes busy. Two mishaps that hit the same part do not overlap. An instance is
	// hit by its number.
	hits target
	also target // another part that it makes busy, or nothing
	// It lasts from least to most, or is over at once if they are 0. takes is how long its repair may take on
	// top of that.
	least, most, takes time.Duration
	// beside lets other rounds go on while it lasts.
	beside  bool
	needs   *need // nil without any
	details func(draw, *plan, *event)
	// do makes it happen; undo, which may be nil, repairs it when its time is over. An error of either ends the
	// run, for chaos itself failed, unless it is a notPlayed.
	do func(ctx context.Context, s *stage, e event) (undo func() error, err error)
}

// need is a condition that a kind sets for the stage.
type need struct {
	what string
	met  func(*plan) bool
}

// notPlayed says why a mishap of the plan did not come about.
type notPlayed string

func (n notPlayed) Error() string { return string(n) }

type target int

const (
	nothing target = iota
	oneInstance
	everyInstance
	theBroker
	thePooler
	thePostgres
	theMemory
	theService
	theAnswers
	theRegistry
	theTables
	targets
)

// event is a mishap of the plan.
type event struct {
	kind   *kind
	at     time.Duration // since the instances were started
	length time.Duration

	// What some kinds need to know.
	instance  int
	how       string
	resources []string
	fault     storefake.Fault
	refusal   storefake.Refusal
	amount    float64
	readings  func(*storefake.Readings)
	back      time.Duration
	step      time.Duration
	number    int
	count     int
}

func (e event) String() string {
	text := e.kind.name
	if e.kind.hits == oneInstance {
		text += fmt.Sprintf(" of instance %d", e.instance+1)
	}
	if e.how != "" {
		text += " " + e.how
	}
	if len(e.resources) > 0 {
		text += " " + strings.Join(e.resources, ", ")
	}
	if e.fault != storefake.NoFault {
		text += fmt.Sprintf(" %s", e.fault)
	}
	if e.amount > 0 {
		text += fmt.Sprintf(" %.4g", e.amount)
	}
	if e.back > 0 {
		text += fmt.Sprintf(" back by %s", e.back)
	}
	if e.length > 0 {
		text += fmt.Sprintf(" for %s", e.length)
	}
	return text
}

// kinds is everything that may happen.
func kinds() []*kind { return slices.Concat(mishapKinds(), besideKinds) }

// mishapKinds are the mishaps, and what an operator asks for among them.
func mishapKinds() []*kind {
	return slices.Concat(instanceKinds, []*kind{brokenLoad}, brokerKinds, databaseKinds, sessionKinds,
		serviceKinds, answerKinds, clockKinds, restoreKinds, registryKinds, rowKinds, requestKinds)
}

// deck has the cards of all kinds that a plan may have. It is played to its end, and then shuffled anew.
type deck struct{ cards, left []*kind }

func (p *plan) newDeck(of []*kind) *deck {
	k := &deck{}
	for _, one := range of {
		if one.fits(p) && p.wants(one) {
			k.cards = append(k.cards, slices.Repeat([]*kind{one}, one.weight)...)
		}
	}
	return k
}

func (k *deck) deal(d draw) *kind {
	if len(k.left) == 0 {
		k.left = slices.Clone(k.cards)
		d.Shuffle(len(k.left), func(i, j int) { k.left[i], k.left[j] = k.left[j], k.left[i] })
	}
	card := k.left[0]
	k.left = k.left[1:]
	return card
}

// drawEvents deals rounds of one to three mishaps at once, with a calm after each, from decks that hold every
// kind.
func (p *plan) drawEvents(d draw) {
	deck := p.newDeck(mishapKinds())
	at := d.between(2*time.Second, 5*time.Second)
	if brokenLoad.fits(p) && p.wants(brokenLoad) { // the first load
		first := p.drawEvent(d, brokenLoad, 0)
		first.at = 0
		p.events = append(p.events, first)
		at += first.length
	}
	for at < p.length && len(deck.cards) > 0 {
		end, busy := at, map[target]bool{}
		for range oneOf(d, 1, 1, 2, 3) {
			k := deck.deal(d)
			e := p.drawEvent(d, k, at)
			if !free(busy, k.hits) || !free(busy, k.also) {
				continue // the card is lost: seldom, and it comes again with the next deck
			}
			busy[k.hits], busy[k.also] = true, true
			p.events = append(p.events, e)
			if !k.beside {
				end = max(end, e.at+e.length+k.takes)
			}
		}
		at = end + d.between(3*time.Second, 12*time.Second)
	}
	p.sort()
}

// drawBeside deals what an operator asks for beside the mishaps, one after the other, once the instances have
// begun. What has no room yet comes later.
func (p *plan) drawBeside(d draw) {
	deck := p.newDeck(besideKinds)
	for at := d.between(15*time.Second, 20*time.Second); at < p.length && len(deck.cards) > 0; {
		e := p.drawEvent(d, deck.deal(d), at)
		for !p.hasRoom(e) {
			e.at += time.Second
		}
		if e.at < p.length {
			p.events = append(p.events, e)
		}
		at += d.between(3*time.Second, 8*time.Second)
	}
	p.sort()
}

// hasRoom says whether nothing else in the plan makes the event's parts busy at its time.
func (p *plan) hasRoom(e event) bool {
	busy := map[target]bool{}
	for _, o := range p.events {
		if o.at < e.at+e.length+e.kind.takes && e.at < o.at+o.length+o.kind.takes {
			busy[o.kind.hits], busy[o.kind.also] = true, true
		}
	}
	return free(busy, e.kind.hits) && free(busy, e.kind.also)
}

func (p *plan) sort() {
	slices.SortStableFunc(p.events, func(a, b event) int { return int(a.at - b.at) })
}

// fits says whether the stage meets the kind's needs.
func (k *kind) fits(p *plan) bool { return k.needs == nil || k.needs.met(p) }

// wants says whether the plan was asked for this kind.
func (p *plan) wants(k *kind) bool {
	return slices.ContainsFunc(strings.Split(p.only, ","), func(text string) bool {
		return strings.Contains(k.name, text)
	})
}

func free(busy map[target]bool, t target) bool {
	switch t {
	case nothing:
		return true
	case oneInstance, everyInstance:
		return !busy[oneInstance] && !busy[everyInstance]
	default:
		return !busy[t]
	}
}

func (p *plan) drawEvent(d draw, k *kind, at time.Duration) event {
	e := event{kind: k, at: at + d.between(0, 3*time.Second), length: d.between(k.least, k.most),
		number: len(p.events)}
	if k.hits == oneInstance {
		e.instance = d.IntN(p.instances)
	}
	if k.details != nil {
		k.details(d, p, &e)
	}
	return e
}

// absent says why the plan has no mishap of a name. It returns "" if there is one.
func (p *plan) absent(name string) string {
	if slices.ContainsFunc(p.events, func(e event) bool { return e.kind.name == name }) {
		return ""
	}
	why := ""
	for _, k := range kinds() {
		switch {
		case k.name != name:
		case !k.fits(p):
			why = "it needs " + k.needs.what
		case !p.wants(k):
			why = "--only leaves it out"
		default:
			why = fmt.Sprintf("this seed has none within %s", p.length)
		}
	}
	return why
}

// kindNames are the names of all kinds, sorted.
func kindNames() []string {
	var names []string
	for _, k := range kinds() {
		names = append(names, k.name)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// plainName is a kind's name without the punctuation that leads to its details.
func plainName(name string) string { return strings.TrimRight(name, ":,") }

var (
	overDatabase = &need{"orders and items from the database",
		func(p *plan) bool { return p.source == fromDatabase }}
	overREST = &need{"orders and items from REST, with a service whose clock runs fast",
		func(p *plan) bool { return p.source == fromREST }}
	overLargeTables = &need{"orders and items from the database, in tables that are loaded by blocks",
		func(p *plan) bool { return p.service.sparse }}
	onApacheKafka = &need{"--broker=kafka", func(p *plan) bool { return p.broker == apacheKafka }}
)
