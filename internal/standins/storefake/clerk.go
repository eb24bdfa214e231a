package storefake

import (
	"context"
	"math/rand/v2"
)

// clerk makes one of traffic's changes, in one transaction.
type clerk struct {
	store  *Store
	book   *orderBook
	read   Readings
	chance *rand.Rand
	tx     *Tx
	// after, if set, is called when the change is committed.
	after func()
}

// deed is one kind of change: it writes into the clerk's transaction.
type deed func(context.Context) error

// choose draws a kind of change.
func (c *clerk) choose() deed {
	if share := c.read.Deletes; share > 0 && c.chance.Float64() < share {
		return c.deleteRow
	}
	move := func(s step) deed { return func(ctx context.Context) error { return c.move(ctx, s) } }
	return pick(c.chance, []deed{c.placeOrder, move(step{from: Processing, to: Shipped, stamp: "shipped_at"}),
		move(step{from: Shipped, to: Complete, stamp: "delivered_at"}),
		move(step{from: Processing, to: Cancelled, items: true}),
		move(step{from: Complete, to: Returned, stamp: "returned_at", items: true}),
		c.changePrice, c.moveHouse, c.signUp, c.addProduct},
		[]float64{.28, .20, .18, .04, .05, .10, .10, .03, .02})
}

// placeOrder inserts an order with its items and a shipment that has not left yet.
func (c *clerk) placeOrder(ctx context.Context) error {
	user, ok := c.store.tables.any(c.chance, Users)
	id := c.newID(Orders)
	if !ok {
		return nil
	}
	items, total := c.fillBasket(id)
	if len(items) == 0 {
		return nil
	}
	status := c.status(Processing)
	order := Row{"id": id, "user_id": user.ID(), "status": status, "total_amount": total}
	if err := c.insert(ctx, Orders, order); err != nil {
		return err
	}
	for _, item := range items {
		if err := c.insert(ctx, OrderItems, item); err != nil {
			return err
		}
	}
	if _, err := c.tx.Insert(ctx, Shipments, Row{"order_id": id}); err != nil {
		return err
	}
	c.after = func() { c.book.file(id, status) }
	return nil
}

// fillBasket makes up the items of an order, at today's prices, and their sum.
func (c *clerk) fillBasket(order int64) ([]Row, Money) {
	words := c.store.tables.words
	var items []Row
	total := null
	for range pick(c.chance, upToFour, itemOdds) {
		product, _ := c.store.tables.any(c.chance, Products)
		price, ok := product["retail_price"].(Money)
		if !ok {
			continue
		}
		quantity := int64(pick(c.chance, upToFour, itemOdds))
		unit, _ := words.packMoney(string(price)) // it comes from a row
		amount := words.times(unit, quantity)
		total = words.plus(total, amount)
		items = append(items, Row{"order_id": order, "product_id": product.ID(), "sale_price": price,
			"quantity": quantity, "amount": Money(words.appendMoney(nil, amount))})
	}
	if total == null {
		return nil, ""
	}
	return items, Money(words.appendMoney(nil, total))
}

// step is one step of an order, from a state to the next. It gives the state of the shipment after it, and
// says whether the items are written again too.
type step struct {
	from, to string
	stamp    string // field of the shipment, "" if none
	items    bool
}

// move moves an order that waits for this step.
func (c *clerk) move(ctx context.Context, s step) error {
	order := c.book.take(c.chance, s.from)
	if order == 0 {
		return nil
	}
	if c.store.locks.taken(rowKey{Orders, order}) { // a test holds it open, maybe for long
		c.book.file(order, s.from)
		return nil
	}
	err := c.moveOrder(ctx, order, s)
	if err != nil {
		c.book.file(order, s.from)
	}
	return err
}

func (c *clerk) moveOrder(ctx context.Context, order int64, s step) error {
	row, ok, err := c.tx.Get(ctx, Orders, order)
	if err != nil || !ok || row["status"] != s.from {
		return err // changed or deleted by another client: off the list for good
	}
	if c.anyAhead(order, s) || row.Time("updated_at").After(c.tx.At) {
		c.book.file(order, s.from) // changed since this transaction began: a shop does not step back in time
		return nil
	}
	status := c.status(s.to)
	if err := c.tx.Update(ctx, Orders, order, func(r Row) { r["status"] = status }); err != nil {
		return err
	}
	for _, id := range c.store.tables.belonging(Shipments, order) {
		err := c.updateIfThere(ctx, Shipments, id, func(r Row) {
			if s.stamp != "" {
				r[s.stamp] = c.tx.At
			}
		})
		if err != nil {
			return err
		}
	}
	if s.items {
		for _, id := range c.store.tables.belonging(OrderItems, order) {
			if err := c.updateIfThere(ctx, OrderItems, id, func(Row) {}); err != nil {
				return err
			}
		}
	}
	c.after = func() { c.book.file(order, status) }
	return nil
}

// updateIfThere changes a row that another transaction may have deleted since it was found.
func (c *clerk) updateIfThere(ctx context.Context, resource string, id int64, change func(Row)) error {
	if _, ok, err := c.tx.Get(ctx, resource, id); err != nil || !ok {
		return err
	}
	return c.tx.Update(ctx, resource, id, change)
}

// anyAhead says whether something that a step would write has changed since this transaction began, by the
// clock. It waits for no lock: the transaction must soon write after it has begun.
func (c *clerk) anyAhead(order int64, s step) bool {
	for _, resource := range []string{Shipments, OrderItems} {
		if resource == OrderItems && !s.items {
			continue
		}
		for _, id := range c.store.tables.belonging(resource, order) {
			if row, _ := c.store.tables.Row(resource, id); row.Time("updated_at").After(c.tx.At) {
				return true
			}
		}
	}
	return false
}

func (c *clerk) changePrice(ctx context.Context) error {
	price, _ := newPrice(c.chance)
	return c.alter(ctx, Products, func(r Row) { r["retail_price"] = price })
}

func (c *clerk) moveHouse(ctx context.Context) error {
	return c.alter(ctx, Users, func(r Row) { moveHouse(c.chance, r) })
}

// alter changes any one row that no other client is changing.
func (c *clerk) alter(ctx context.Context, resource string, change func(Row)) error {
	row, ok := c.store.tables.any(c.chance, resource)
	if !ok || c.store.locks.taken(rowKey{resource, row.ID()}) {
		return nil
	}
	row, ok, err := c.tx.Get(ctx, resource, row.ID())
	if err != nil || !ok || row.Time("updated_at").After(c.tx.At) {
		return err
	}
	return c.tx.Update(ctx, resource, row.ID(), func(r Row) {
		change(r)
		c.takeValues(resource, r)
	})
}

func (c *clerk) signUp(ctx context.Context) error {
	id := c.newID(Users)
	return c.insert(ctx, Users, newUser(c.chance, id, c.tx.At, c.tx.At))
}

func (c *clerk) addProduct(ctx context.Context) error {
	id := c.newID(Products)
	return c.insert(ctx, Products, newProduct(c.chance, id, c.tx.At, c.tx.At))
}

// deleteRow deletes a row of any resource. What belongs to it stays, as in a service that cleans up
// carelessly.
func (c *clerk) deleteRow(ctx context.Context) error {
	resource := one(c.chance, resources).name
	row, ok := c.store.tables.any(c.chance, resource)
	if !ok || c.store.locks.taken(rowKey{resource, row.ID()}) {
		return nil
	}
	if _, ok, err := c.tx.Get(ctx, resource, row.ID()); err != nil || !ok {
		return err
	}
	return c.tx.Delete(ctx, resource, row.ID())
}

// newID is the next id, or with the readings' share one that was used before.
func (c *clerk) newID(resource string) int64 {
	if share := c.read.UsedIDs; share > 0 && c.chance.Float64() < share {
		if id, ok := c.store.tables.usedID(resource, c.tx.At); ok {
			return id
		}
	}
	return c.store.tables.newID(resource)
}

func (c *clerk) insert(ctx context.Context, resource string, row Row) error {
	c.takeValues(resource, row)
	_, err := c.tx.Insert(ctx, resource, row)
	return err
}

// status is a state, or with the readings' share one that the document does not name.
func (c *clerk) status(status string) string {
	if share := c.read.NewStatuses; share > 0 && c.chance.Float64() < share {
		return one(c.chance, newStatuses)
	}
	return status
}

// takeValues makes the readings' share of a row's values null.
func (c *clerk) takeValues(resource string, row Row) {
	share := c.read.Nulls
	if share == 0 {
		return
	}
	// in order: a seed means the same each time
	for _, f := range c.store.tables.byName[resource].res.fields[1:] {
		if f.name != "created_at" && f.name != "updated_at" && c.chance.Float64() < share {
			row[f.name] = nil
		}
	}
}
