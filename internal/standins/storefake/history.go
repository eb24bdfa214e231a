package storefake

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"time"
)

// Size is how much history to generate.
type Size struct {
	Users, Orders, Products int
	Days                    int // from the first row to now, by the clock. Zero means 1095.
}

// Check reports every impossible setting of s, all at once.
func (s Size) Check() error {
	var errs []error
	if s.Users < 0 || s.Orders < 0 || s.Products < 0 || s.Days < 0 {
		errs = append(errs, fmt.Errorf("users %d, orders %d, products %d, days %d: expected 0 or more", s.Users,
			s.Orders, s.Products, s.Days))
	}
	if s.Orders > 0 && (s.Users == 0 || s.Products == 0) {
		errs = append(errs, fmt.Errorf("orders %d: expected at least 1 user and 1 product to order", s.Orders))
	}
	return errors.Join(errs...)
}

// generator writes history straight into the tables. The same seed, size, readings and instant of now give
// the same rows.
type generator struct {
	tables    *Tables
	read      *Readings
	seed      uint64
	moneyBits int  // of the floats that PostgreSQL keeps money in, or 0 if it is exact
	from      cell // the first instant of history
	now       cell
	unit      cell // of instants: a microsecond or a second
	prices    []cell
}

// generate fills empty tables with a shop's history up to now.
func generate(tables *Tables, clock *Clock, c *Config) {
	now := clock.Now()
	g := &generator{tables: tables, read: &c.Readings, seed: c.Seed, now: cellOf(now),
		from: cellOf(now.AddDate(0, 0, -cmp.Or(c.Size.Days, 1095))), unit: 1}
	if c.WholeSeconds {
		g.unit = second
	}
	if c.Database.DSN != "" {
		g.moneyBits = c.Database.Columns.floatBits()
	}
	g.products(c.Size.Products)
	g.users(c.Size.Users)
	g.orders(c.Size.Orders, c.Size.Users)
}

// after is an instant within d after at, but not after now.
func (g *generator) after(chance *rand.Rand, at cell, d time.Duration) cell {
	return min((at + cell(chance.Float64()*float64(d.Microseconds()))).floorTo(g.unit), g.now)
}

// between is an instant of history; the shop grows, so later ones are likelier.
func (g *generator) between(chance *rand.Rand, from cell) cell {
	return (from + cell(math.Sqrt(chance.Float64())*float64(g.now-from))).floorTo(g.unit)
}

func (g *generator) products(n int) {
	chance := rand.New(rand.NewPCG(g.seed, streamProducts))
	for id := range int64(n) {
		created := g.after(chance, g.from, time.Duration(g.now-g.from)*time.Microsecond/4)
		updated := created
		if chance.Float64() < .4 {
			updated = g.between(chance, created)
		}
		cells := g.enter(chance, Products, newProduct(chance, id+1, created.time(), updated.time()))
		g.prices = append(g.prices, cells[g.tables.byName[Products].res.index("retail_price")])
	}
}

func (g *generator) users(n int) {
	chance := rand.New(rand.NewPCG(g.seed, streamUsers))
	for id := range int64(n) {
		created := g.between(chance, g.from)
		updated := created
		if chance.Float64() < .3 {
			updated = g.between(chance, created)
		}
		g.enter(chance, Users, newUser(chance, id+1, created.time(), updated.time()))
	}
}

// enter adds one row made of Go values.
func (g *generator) enter(chance *rand.Rand, resource string, row Row) []cell {
	t := g.tables.byName[resource]
	made, err := g.tables.words.cellsOf(t.res, row)
	if err != nil {
		panic(err) // of rows that this file makes: a mistake in it
	}
	return g.add(chance, t, made...)
}

// add adds one row made of cells.
func (g *generator) add(chance *rand.Rand, t *table, made ...cell) []cell {
	p, cells := t.grow()
	copy(cells, made)
	scatter(chance, g.read.Nulls, cells)
	g.tables.words.conform(t.res, cells, g.moneyBits)
	t.enter(p)
	return cells
}

var (
	states    = []string{Shipped, Complete, Processing, Cancelled, Returned}
	stateOdds = []float64{.30, .25, .20, .15, .10}
	itemOdds  = []float64{.70, .20, .05, .05} // of 1, 2, 3, 4 items or units
	upToFour  = []int{1, 2, 3, 4}
)

// journey holds the instants of an order's parcel.
type journey struct{ shipped, delivered, returned, last cell }

// travel makes up the journey of an order that has come to state, or to the state before it if that lies
// after now.
func (g *generator) travel(chance *rand.Rand, state string, created cell) (string, journey) {
	const days = 24 * time.Hour
	j := journey{shipped: null, delivered: null, returned: null}
	switch state {
	case Processing:
		j.last = g.after(chance, created, time.Hour)
		return state, j
	case Cancelled:
		j.last = g.after(chance, created, 2*days)
		return state, j
	}
	for _, step := range []struct {
		state string
		at    *cell
		days  int
	}{{Shipped, &j.shipped, 3}, {Complete, &j.delivered, 5}, {Returned, &j.returned, 3}} {
		from := created
		if j.last != 0 {
			from = j.last
		}
		at := g.after(chance, from, time.Duration(step.days)*days)
		if at >= g.now { // has not come about yet
			break
		}
		*step.at, j.last = at, at
		if step.state == state {
			return state, j
		}
	}
	switch {
	case j.shipped == null:
		j.last = created
		return Processing, j
	case j.delivered == null:
		return Shipped, j
	default:
		return Complete, j
	}
}

func (g *generator) orders(n, users int) {
	chance := rand.New(rand.NewPCG(g.seed, streamOrders))
	orders, shipments := g.tables.byName[Orders], g.tables.byName[Shipments]
	for id := range cell(n) {
		id++
		created := g.between(chance, g.from)
		state, j := g.travel(chance, pick(chance, states, stateOdds), created)
		if share := g.read.NewStatuses; share > 0 && chance.Float64() < share {
			state = one(chance, newStatuses)
		}
		total := g.items(chance, id, created, j.last, state)
		g.add(chance, orders, id, cell(1+chance.IntN(users)), g.tables.words.number(state), total, created, j.last)
		g.add(chance, shipments, id, id, j.shipped, j.delivered, j.returned, created, j.last)
	}
}

// items adds the items of an order and returns their sum.
func (g *generator) items(chance *rand.Rand, order, created, updated cell, state string) cell {
	items, words := g.tables.byName[OrderItems], g.tables.words
	if state != Cancelled && state != Returned {
		updated = created
	}
	total := null
	for range pick(chance, upToFour, itemOdds) {
		product := chance.IntN(len(g.prices))
		quantity := pick(chance, upToFour, itemOdds)
		amount := words.times(g.prices[product], int64(quantity))
		total = words.plus(total, amount)
		g.add(chance, items, cell(items.nextID), order, cell(product+1), g.prices[product], cell(quantity), amount,
			created, updated)
	}
	return total
}

// scatter makes values null, a share of them. A row's first and its last two fields are never null.
func scatter(chance *rand.Rand, nulls float64, cells []cell) {
	if nulls == 0 {
		return
	}
	for i := 1; i < len(cells)-2; i++ {
		if chance.Float64() < nulls {
			cells[i] = null
		}
	}
}
