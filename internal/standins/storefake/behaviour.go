package storefake

import (
	"maps"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync"
)

// Behaviour holds the readings and the faults of the service, which may change while it runs. All methods may
// be called at once.
type Behaviour struct {
	seed uint64

	mu        sync.Mutex // guards the fields below
	readings  Readings
	faults    Faults
	garbled   map[rowKey]Garbling
	onRequest func(*http.Request)
	chance    *rand.Rand
	served    uint64 // data requests, to salt choices that differ on each
}

func newBehaviour(seed uint64, readings Readings, faults Faults) *Behaviour {
	return &Behaviour{seed: seed, readings: readings, faults: faults, garbled: map[rowKey]Garbling{},
		chance: rand.New(rand.NewPCG(seed, streamFaults))}
}

// Readings in force.
func (b *Behaviour) Readings() Readings {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.readings
}

// SetReadings changes the readings in force from the next request on.
func (b *Behaviour) SetReadings(change func(*Readings)) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	r := b.readings
	r.Without, r.Refusals = slices.Clone(r.Without), slices.Clone(r.Refusals)
	change(&r)
	if err := r.Check(); err != nil {
		return err
	}
	b.readings = r
	return nil
}

// SetFaults changes the faults from the next request on.
func (b *Behaviour) SetFaults(change func(*Faults)) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	f := b.faults
	f.Shares = maps.Clone(f.Shares)
	change(&f)
	if err := f.Check(); err != nil {
		return err
	}
	b.faults = f
	return nil
}

// Garble breaks a row over REST. NotGarbled shows it as it is, even with Faults.GarbledRows.
func (b *Behaviour) Garble(resource string, id int64, g Garbling) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.garbled[rowKey{resource, id}] = g
}

// OnRequest calls hook with every request before it is handled, and the request waits for hook. So rows that
// hook changes have changed between two pages. Nil removes the hook. It is called from many goroutines.
func (b *Behaviour) OnRequest(hook func(*http.Request)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.onRequest = hook
}

// announce calls the hook for a request.
func (b *Behaviour) announce(r *http.Request) {
	b.mu.Lock()
	hook := b.onRequest
	b.mu.Unlock()
	if hook != nil {
		hook(r)
	}
}

// draw returns the fault for a data request, and the request's number. Faults.Choose may call the Fake, so no
// lock is held meanwhile.
func (b *Behaviour) draw(r *http.Request) (Fault, Faults, uint64) {
	b.mu.Lock()
	faults, number := b.faults, b.served
	b.served++
	b.mu.Unlock()
	fault := faults.draw(r, func() float64 {
		b.mu.Lock()
		defer b.mu.Unlock()
		return b.chance.Float64()
	})
	return fault, faults, number
}

// garbling returns a function that tells how a row is garbled. It is nil if no row is.
func (b *Behaviour) garbling(share float64) func(resource string, id int64) Garbling {
	b.mu.Lock()
	defer b.mu.Unlock()
	if share == 0 && len(b.garbled) == 0 {
		return nil
	}
	garbled := maps.Clone(b.garbled)
	return func(resource string, id int64) Garbling {
		if g, ok := garbled[rowKey{resource, id}]; ok {
			return g
		}
		if unit(id, b.seed) < share {
			return allGarblings[int(uint64(mix(id, b.seed+1))%uint64(len(allGarblings)))]
		}
		return NotGarbled
	}
}
