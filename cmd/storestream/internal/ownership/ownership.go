// Package ownership says which instance of the group has a resource, and whether a resource that nobody has
// is being handed over or abandoned.
//
//	group:      a ........ a | sharing ......... | b ........ b | none ....................
//	resource:   a's          | between owners    | b's          | between ... 30 s ... abandoned
//
// A group that an instance joins or leaves shares its resources out anew, which takes seconds. Nobody has
// them meanwhile, and rows wait. That is no reason for an alarm, and rows that are not delivered then are
// under way. Only where no instance runs at all, or where the instances leave a resource to nobody for longer
// than that can take, is it abandoned.
package ownership

import (
	"context"
	"errors"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/storestream/storestream/producer"
)

// HandoverPatience is how long a handover may take. A group waits ten seconds for a member that does not
// answer, after six for one that died.
const HandoverPatience = 30 * time.Second

// Resource is who has one resource. The zero value: nothing is known yet.
type Resource struct {
	// Owner is the instance that has it, "" where nobody does.
	Owner string
	// Since is when Owner got it; zero: nobody has it.
	Since time.Time
	// Abandoned: nobody has it, and no instance is about to take it.
	Abandoned bool

	free time.Time // since when nobody has had it; zero: somebody has it, or nothing is known
}

// Note takes what the group says at now: the owner, "" for nobody, and whether any instance runs.
func (r *Resource) Note(owner string, instances bool, now time.Time) {
	switch {
	case owner == "" && r.free.IsZero():
		r.Since, r.free = time.Time{}, now
	case owner != "" && (owner != r.Owner || r.Since.IsZero()):
		r.Since, r.free = now, time.Time{}
	}
	r.Owner = owner
	r.Abandoned = owner == "" && (!instances || now.Sub(r.free) > HandoverPatience)
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
