package main

import (
	"time"

	"github.com/storestream/storestream/producer"
)

// polled is what verify and the status page know of who polls a resource. The zero value: nothing yet.
//
// While a group shares its resources out anew nobody has them, for seconds, and rows wait: that they are not delivered meanwhile says nothing. So
// between two owners verify waits, and after a handover the new owner has its time from then on.
type polled struct {
	owner  string
	since  time.Time // the owner has had it; zero: nobody has it
	free   time.Time // nobody has had it; zero: somebody has it, or nothing is known
	nobody bool      // and nobody will
}

// handoverPatience is how long instances may leave a resource to nobody: a group waits ten seconds for a member that does not answer, after six for one
// that died.
const handoverPatience = 30 * time.Second

// note takes what the group says at now: the owner, "" for nobody, and whether there is any instance at all.
func (p *polled) note(owner string, instances bool, now time.Time) {
	switch {
	case owner == "" && p.free.IsZero():
		p.since, p.free = time.Time{}, now
	case owner != "" && (owner != p.owner || p.since.IsZero()):
		p.since, p.free = now, time.Time{}
	}
	p.owner = owner
	p.nobody = owner == "" && (!instances || now.Sub(p.free) > handoverPatience)
}

// between says that nobody has it, and somebody will.
func (p *polled) between() bool { return !p.free.IsZero() && !p.nobody }

func ownersOf(members []producer.Owner) map[string]string {
	owners := map[string]string{}
	for _, m := range members {
		for _, resource := range m.Owned {
			owners[resource] = m.Instance
		}
	}
	return owners
}
