package storefake

import (
	"sync"
	"time"
)

const maxReplicas = 16

// replicas hand every change on to the copies of the rows, each of which makes it when its lag is over. All
// methods may be called at once.
type replicas struct {
	clock  *Clock
	tables *Tables // up to date
	seed   uint64

	mu     sync.Mutex // guards the fields below; held while a change is made, so that all copies see one order
	copies []*replica // of place 0 the tables that are up to date answer, unless it is the only one
}

// replica is a copy of the rows that lags behind.
type replica struct {
	tables *Tables
	lag    time.Duration
	due    []change // not yet made, the oldest first
}

// change is made in each copy on its own.
type change struct {
	at time.Duration // of Clock.age
	do func(*Tables)
}

// make makes a change in the tables that are up to date, and in the copies when they get to it.
func (r *replicas) make(do func(*Tables)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	do(r.tables)
	now := r.clock.age()
	for _, c := range r.copies {
		c.due = append(c.due, change{now, do})
		c.catchUp(now)
	}
}

// catchUp makes the changes that are due.
func (c *replica) catchUp(now time.Duration) {
	n := 0
	for n < len(c.due) && c.due[n].at <= now-c.lag {
		c.due[n].do(c.tables)
		n++
	}
	c.due = append(c.due[:0], c.due[n:]...)
}

// answering is the copy that answers a request, and its place.
func (r *replicas) answering(read *Readings, request uint64) (*Tables, int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.fit(read)
	if read.Replicas == 0 {
		return r.tables, 0
	}
	place := int(uint64(mix(int64(request), r.seed+2)) % uint64(read.Replicas))
	c := r.copies[place]
	if c.lag == 0 {
		return r.tables, place
	}
	c.catchUp(r.clock.age())
	return c.tables, place
}

// fit makes or drops copies until there are as many as the readings say. A new one is up to date, and begins
// to lag with the next change.
func (r *replicas) fit(read *Readings) {
	r.copies = r.copies[:min(len(r.copies), read.Replicas)]
	for len(r.copies) < read.Replicas {
		r.copies = append(r.copies, &replica{tables: r.tables.clone()})
	}
	for i, c := range r.copies {
		c.lag = read.ReplicaLag
		if len(r.copies) > 1 {
			c.lag = read.ReplicaLag * time.Duration(i) / time.Duration(len(r.copies)-1)
		}
	}
}
