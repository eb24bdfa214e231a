package storefake

import (
	"context"
	"math/rand/v2"
)

// placeOrder inserts an order with its items and a shipment that has not left yet.
func (sh *shop) placeOrder(ctx context.Context, tx *Tx, chance *rand.Rand) (func(), error) {
	s := sh.store
	user, ok := s.any(chance, Users)
	id, err := s.newID(Orders)
	if err != nil || !ok {
		return nil, err
	}
	items, total := sh.fillBasket(chance, id)
	if len(items) == 0 {
		return nil, nil
	}
	status := s.newStatus(chance, Processing)
	order := Row{"id": id, "user_id": user.ID(), "status": status, "total_amount": total}
	if _, err := tx.Insert(ctx, Orders, s.nulled(chance, Orders, order)); err != nil {
		return nil, err
	}
	for _, item := range items {
		if _, err := tx.Insert(ctx, OrderItems, s.nulled(chance, OrderItems, item)); err != nil {
			return nil, err
		}
	}
	if _, err := tx.Insert(ctx, Shipments, Row{"order_id": id}); err != nil {
		return nil, err
	}
	return func() { sh.file(id, status) }, nil
}

// fillBasket makes up the items of an order, at today's prices, and what they come to.
func (sh *shop) fillBasket(chance *rand.Rand, order int64) ([]Row, Money) {
	words := sh.store.words
	var items []Row
	total := null
	for range pick(chance, upToFour, itemOdds) {
		product, _ := sh.store.any(chance, Products)
		price, ok := product["retail_price"].(Money)
		if !ok {
			continue
		}
		quantity := int64(pick(chance, upToFour, itemOdds))
		unit, _ := words.packMoney(string(price)) // it comes from a row
		amount := words.times(unit, quantity)
		total = words.plus(total, amount)
		items = append(items, Row{"order_id": order, "product_id": product.ID(), "sale_price": price, "quantity": quantity,
			"amount": Money(words.appendMoney(nil, amount))})
	}
	if total == null {
		return nil, ""
	}
	return items, Money(words.appendMoney(nil, total))
}

// move is one step of an order: from a state to the next, with what its shipment then says, and whether its items are written again too.
type move struct {
	from, to string
	stamp    string // field of the shipment, "" if none
	items    bool
}

// advance draws an order from list and moves it.
func (sh *shop) advance(ctx context.Context, tx *Tx, chance *rand.Rand, list *[]int64, m move) (func(), error) {
	order := sh.take(chance, list)
	if order == 0 {
		return nil, nil
	}
	if sh.store.locked(rowKey{Orders, order}) { // a test holds it open, maybe for long
		sh.file(order, m.from)
		return nil, nil
	}
	after, err := sh.moveOrder(ctx, tx, chance, order, m)
	if err != nil {
		sh.file(order, m.from)
	}
	return after, err
}

func (sh *shop) moveOrder(ctx context.Context, tx *Tx, chance *rand.Rand, order int64, m move) (func(), error) {
	s := sh.store
	row, ok, err := tx.Get(ctx, Orders, order)
	if err != nil || !ok || row["status"] != m.from {
		return nil, err // changed or deleted by somebody else: off the list for good
	}
	if row.Time("updated_at").After(tx.At) {
		sh.file(order, m.from) // changed since this transaction began: a shop does not step back in time
		return nil, nil
	}
	status := s.newStatus(chance, m.to)
	if err := tx.Update(ctx, Orders, order, func(r Row) { r["status"] = status }); err != nil {
		return nil, err
	}
	for _, id := range s.belonging(Shipments, order) {
		if err := tx.Update(ctx, Shipments, id, func(r Row) {
			if m.stamp != "" {
				r[m.stamp] = tx.At
			}
		}); err != nil {
			return nil, err
		}
	}
	for _, id := range s.belonging(OrderItems, order) {
		if !m.items {
			break
		}
		if err := tx.Update(ctx, OrderItems, id, func(Row) {}); err != nil {
			return nil, err
		}
	}
	return func() { sh.file(order, status) }, nil
}

func (sh *shop) ship(ctx context.Context, tx *Tx, chance *rand.Rand) (func(), error) {
	return sh.advance(ctx, tx, chance, &sh.processing, move{from: Processing, to: Shipped, stamp: "shipped_at"})
}

func (sh *shop) cancel(ctx context.Context, tx *Tx, chance *rand.Rand) (func(), error) {
	return sh.advance(ctx, tx, chance, &sh.processing, move{from: Processing, to: Cancelled, items: true})
}

func (sh *shop) deliver(ctx context.Context, tx *Tx, chance *rand.Rand) (func(), error) {
	return sh.advance(ctx, tx, chance, &sh.shipped, move{from: Shipped, to: Complete, stamp: "delivered_at"})
}

func (sh *shop) comeBack(ctx context.Context, tx *Tx, chance *rand.Rand) (func(), error) {
	return sh.advance(ctx, tx, chance, &sh.complete, move{from: Complete, to: Returned, stamp: "returned_at", items: true})
}

func (sh *shop) changePrice(ctx context.Context, tx *Tx, chance *rand.Rand) (func(), error) {
	price, _ := newPrice(chance)
	return nil, sh.alter(ctx, tx, chance, Products, func(r Row) { r["retail_price"] = price })
}

func (sh *shop) moveHouse(ctx context.Context, tx *Tx, chance *rand.Rand) (func(), error) {
	return nil, sh.alter(ctx, tx, chance, Users, func(r Row) { moveHouse(chance, r) })
}

// alter changes any one row that nobody else is changing.
func (sh *shop) alter(ctx context.Context, tx *Tx, chance *rand.Rand, resource string, change func(Row)) error {
	row, ok := sh.store.any(chance, resource)
	if !ok || sh.store.locked(rowKey{resource, row.ID()}) {
		return nil
	}
	row, ok, err := tx.Get(ctx, resource, row.ID())
	if err != nil || !ok || row.Time("updated_at").After(tx.At) {
		return err
	}
	return tx.Update(ctx, resource, row.ID(), func(r Row) {
		change(r)
		sh.store.nulled(chance, resource, r)
	})
}

func (sh *shop) signUp(ctx context.Context, tx *Tx, chance *rand.Rand) (func(), error) {
	id, err := sh.store.newID(Users)
	if err != nil {
		return nil, err
	}
	_, err = tx.Insert(ctx, Users, sh.store.nulled(chance, Users, newUser(chance, id, tx.At, tx.At)))
	return nil, err
}

func (sh *shop) addProduct(ctx context.Context, tx *Tx, chance *rand.Rand) (func(), error) {
	id, err := sh.store.newID(Products)
	if err != nil {
		return nil, err
	}
	_, err = tx.Insert(ctx, Products, sh.store.nulled(chance, Products, newProduct(chance, id, tx.At, tx.At)))
	return nil, err
}

// deleteRow deletes a row of any resource; what belongs to it stays, as in a service that cleans up carelessly.
func (sh *shop) deleteRow(ctx context.Context, tx *Tx, chance *rand.Rand) (func(), error) {
	resource := one(chance, resources).name
	row, ok := sh.store.any(chance, resource)
	if !ok || sh.store.locked(rowKey{resource, row.ID()}) {
		return nil, nil
	}
	if _, ok, err := tx.Get(ctx, resource, row.ID()); err != nil || !ok {
		return nil, err
	}
	return nil, tx.Delete(ctx, resource, row.ID())
}
