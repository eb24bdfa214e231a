// Package ownership says which instance of the group has a resource, whether a resource that nobody has is
// being handed over or abandoned, and whether one that somebody has is stalled.
//
//	group:      a ........ a | sharing ......... | b ........ b | none ....................
//	resource:   a's          | between owners    | b's          | between ... 30 s ... abandoned
//	watermark:  every 10 s   |                   | not for 2 min: stalled
//
// A group that an instance joins or leaves shares its resources out anew, which takes seconds. Nobody has
// them meanwhile, and rows wait. That is no reason for an alarm, and rows that are not delivered then are
// under way. Only where no instance runs at all, or where the instances leave a resource to nobody for longer
// than that can take, is it abandoned.
//
// That the group gives a resource to an instance does not say that anybody polls it. The instance may be long
// dead and the group not know it, it may hang, or its database may be down. In each case its watermark stands
// still, and every instance can see that. A living owner writes it every ten seconds, or with each poll where
// those are rarer, also while the service has asked it to wait; only while its source does not answer,
// or while it takes over, is it silent for longer.
package ownership

import (
	"context"
	"errors"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/storestream/storestream/producer"
	"github.com/storestream/storestream/schemas"
)

// HandoverPatience is how long a handover may take. A group waits ten seconds for a member that does not
// answer, after six for one that died.
const HandoverPatience = 30 * time.Second

// StalledAfter is how long the owner of a resource that is polled at this interval may leave its watermark
// alone. A statement that gets no answer is given up after 75 seconds, and tried again within 30.
func StalledAfter(interval time.Duration) time.Duration { return max(2*time.Minute, 3*interval) }

// Resource is who has one resource. The zero value: nothing is known yet.
type Resource struct {
	// Owner is the instance that has it, "" where nobody does.
	Owner string
	// Since is when Owner got it; zero: nobody has it.
	Since time.Time
	// Abandoned: nobody has it, and no instance is about to take it.
	Abandoned bool

	free time.Time // since when nobody has had it; zero: somebody has it, or nothing is known
	// written is what its watermark said last of its writing, and looked when. still adds up for how long it has
	// been seen to stand there under this owner.
	written schemas.Instant
	looked  time.Time // zero: the last look failed
	still   time.Duration
}

// Note takes what the group says at now: the owner, "" for nobody, and whether any instance runs.
func (r *Resource) Note(owner string, instances bool, now time.Time) {
	switch {
	case owner == "" && r.free.IsZero():
		r.Since, r.free = time.Time{}, now
	case owner != "" && (owner != r.Owner || r.Since.IsZero()):
		r.Since, r.free, r.still = now, time.Time{}, 0
	}
	r.Owner = owner
	r.Abandoned = owner == "" && (!instances || now.Sub(r.free) > HandoverPatience)
}

// longestGap is the longest time between two looks that counts as one in which nothing was written. Else a
// process that was stopped for minutes would take all others for stalled.
const longestGap = 15 * time.Second

// Wrote takes when the newest watermark was written, by its writer's clock, which need not agree with ours.
// MinInstant: there is none.
func (r *Resource) Wrote(written schemas.Instant, now time.Time) {
	switch {
	case written != r.written:
		r.written, r.still = written, 0
	case !r.looked.IsZero():
		r.still += min(now.Sub(r.looked), longestGap)
	}
	r.looked = now
}

// Missed takes that the watermarks could not be read: nobody knows whether this one was written.
func (r *Resource) Missed() { r.looked = time.Time{} }

// Stalled says that somebody has the resource, according to the consumer group, and leaves its watermark
// alone for longer than one does who polls it at this interval.
func (r *Resource) Stalled(interval time.Duration) bool {
	return r.Owner != "" && r.still > StalledAfter(interval)
}

// Between says that nobody has the resource, and that somebody is about to get it.
func (r *Resource) Between() bool { return !r.free.IsZero() && !r.Abandoned }

// Members is the instances of the group and what each has now, by the group's own word; none where nothing
// has ever run. producer.ErrSharing: the group is sharing its resources out.
func Members(ctx context.Context, cluster *producer.Cluster) ([]producer.Owner, error) {
	members, err := producer.Owners(ctx, cluster)
	if errors.Is(err, kerr.UnknownTopicOrPartition) {
		return nil, nil
	}
	return members, err
}

// ByResource is the owner of each resource that has one.
func ByResource(members []producer.Owner) map[string]string {
	owners := map[string]string{}
	for _, m := range members {
		for _, resource := range m.Owned {
			owners[resource] = m.Instance
		}
	}
	return owners
}
