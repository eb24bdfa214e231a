// Package ownership tells which instance of the group has a resource. A resource without an instance is being
// handed over or abandoned. A resource with one may be stalled.
//
//	group:      a ........ a | sharing ......... | b ........ b | none ....................
//	resource:   a's          | between owners    | b's          | between ... 30 s ... abandoned
//	watermark:  every 10 s   |                   | not for 2 min: stalled
//
// When an instance joins or leaves, the group rebalances, which takes seconds. Meanwhile no instance has the
// resources, and rows wait. That is no reason for an alarm, and rows that are not delivered then are under
// way. A resource is abandoned only if no instance runs at all, or if no instance takes it for longer than a
// rebalance can last.
//
// That the group gives a resource to an instance does not say that anybody polls it. The instance may be long
// dead and the group not know it, it may hang, or its database may be down. In each case its watermark stands
// still, and every instance can see that. A living owner writes it every ten seconds, or with each poll where
// those are rarer, also while the service has asked it to wait; only while its source does not answer,
// or while it takes over, is it silent for longer.
package ownership

import (
	"time"

	"github.com/storestream/storestream/internal/health"
	"github.com/storestream/storestream/schemas"
)

// Resource is the ownership of one resource. The zero value is unknown.
type Resource struct {
	// Owner is the instance that has it, or "".
	Owner string
	// Since is when Owner got it. It is zero without an owner.
	Since time.Time
	// Abandoned is set if no instance has it, or is about to take it.
	Abandoned bool

	free time.Time // since when no instance has had it; zero if one has it or that is unknown
	// written is what its watermark said last of its writing, and looked when. still adds up for how long it has
	// been seen to stand there under this owner.
	written schemas.Instant
	looked  time.Time // zero: the last look failed
	still   time.Duration
}

// Note notes the group's answer at now: the owner, or "", and whether any instance runs.
func (r *Resource) Note(owner string, instances bool, now time.Time) {
	switch {
	case owner == "" && r.free.IsZero():
		r.Since, r.free = time.Time{}, now
	case owner != "" && (owner != r.Owner || r.Since.IsZero()):
		r.Since, r.free, r.still = now, time.Time{}, 0
	}
	r.Owner = owner
	r.Abandoned = owner == "" && (!instances || now.Sub(r.free) > health.HandoverPatience)
}

// longestGap is the longest time between two looks that counts as time without a write. Otherwise a process
// that was stopped for minutes would take all others for stalled.
const longestGap = 15 * time.Second

// Wrote takes when the newest watermark was written, by its writer's clock, which need not agree with ours.
// MinInstant means that there is none.
func (r *Resource) Wrote(written schemas.Instant, now time.Time) {
	switch {
	case written != r.written:
		r.written, r.still = written, 0
	case !r.looked.IsZero():
		r.still += min(now.Sub(r.looked), longestGap)
	}
	r.looked = now
}

// Missed notes that the watermarks could not be read. So it is unknown whether this one was written.
func (r *Resource) Missed() { r.looked = time.Time{} }

// Silent returns for how long the owner has been seen to leave the watermark alone, 0 without an owner.
func (r *Resource) Silent() time.Duration {
	if r.Owner == "" {
		return 0
	}
	return r.still
}

// Between reports whether no instance has the resource and one is about to get it.
func (r *Resource) Between() bool { return !r.free.IsZero() && !r.Abandoned }

// ByResource is the owner of each resource that has one.
func ByResource(members []health.Member) map[string]string {
	owners := map[string]string{}
	for _, m := range members {
		for _, resource := range m.Owned {
			owners[resource] = m.Instance
		}
	}
	return owners
}
