package instance

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/storestream/storestream/cmd/storestream/internal/ownership"
	"github.com/storestream/storestream/internal/metrics"
	"github.com/storestream/storestream/internal/status"
	"github.com/storestream/storestream/internal/watermark"
	"github.com/storestream/storestream/poller"
	"github.com/storestream/storestream/producer"
	"github.com/storestream/storestream/schemas"
)

// groupMonitor reads the state of the whole group every few seconds: which instance has which resource, and
// the watermark of each. Its findings go to the page, and to the metrics of the resources that are not polled
// here.
//
// A resource's lag is reported by the instance that polls it, or polled it last, and by every instance that
// does not know of another owner. With an owner there is one lag. Without one, each instance computes the
// same from the watermark. So the maximum over the instances is right in both cases. An instance that cannot
// ask the group for a minute reports the lag too, as far as it knows. While the brokers are down no instance
// owns a resource, but the lag must grow. If only this instance is cut off, it reports too much and never too
// little.
//
// An owner that the group names may be long dead (package ownership describes how instances notice). So every
// instance reports the lag of a stalled resource in its log, metrics and page, even if another one has it.
type groupMonitor struct {
	// For the whole process.
	name    string // of this instance
	cluster *producer.Cluster
	owners  map[string]*owner // of the resources that are enabled here
	watch   *producer.Watch
	now     func() time.Time
	began   time.Time

	mu sync.Mutex
	// As of the last answer of the group.
	asked     time.Time // zero: it has not answered yet
	members   []producer.Owner
	ownership map[string]*ownership.Resource
	// As of the last look at the topics.
	marks       map[string]watermark.Watermark
	deadLetters map[string][]producer.DeadLetterReason
	latest      map[string][]producer.LatestLetter
	stalled     map[string]bool // resources that the log calls stalled
	// Of the last try of either.
	err     error
	failing time.Time // since when tries have failed; zero: the last one did not
}

const (
	// monitorEvery is how often the group is asked.
	monitorEvery = 5 * time.Second
	// doubtAfter is how long the group's last answer is believed.
	doubtAfter = time.Minute
)

func newGroupMonitor(c Config, owners map[string]*owner) *groupMonitor {
	m := &groupMonitor{name: c.Name, cluster: c.Cluster, owners: owners, watch: producer.NewWatch(c.Cluster),
		now: time.Now, began: time.Now(), ownership: map[string]*ownership.Resource{}, stalled: map[string]bool{}}
	for name := range owners {
		m.ownership[name] = &ownership.Resource{}
	}
	return m
}

// start monitors until the returned function is called, which waits for the end.
func (m *groupMonitor) start() (end func()) {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		ticker := time.NewTicker(monitorEvery)
		defer ticker.Stop()
		for ctx.Err() == nil {
			m.look(ctx)
			m.setMetrics()
			select {
			case <-ctx.Done():
			case <-ticker.C:
			}
		}
	}()
	return func() { cancel(); <-ended }
}

// look asks the group, and reads the topics on from the last look. If it fails, the earlier findings stay.
func (m *groupMonitor) look(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, 2*monitorEvery)
	defer cancel()
	members, err := producer.Owners(ctx, m.cluster)
	sharing := errors.Is(err, producer.ErrSharing)
	if sharing { // the group answers, and its last word stands
		err = nil
	}
	read := m.watch.Look(ctx)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.marks, m.deadLetters, m.latest = m.watch.Watermarks(), m.watch.DeadLetters(), m.watch.LatestLetters()
	m.err = cmp.Or(err, read)
	switch {
	case m.err == nil:
		m.failing = time.Time{}
	case m.failing.IsZero():
		m.failing = m.now()
	}
	if err == nil && !sharing {
		m.noteMembers(members)
	}
	m.noteWritten(read == nil)
}

// noteMembers notes the group's answer. The caller holds m.mu.
func (m *groupMonitor) noteMembers(members []producer.Owner) {
	slices.SortFunc(members, func(a, b producer.Owner) int { return strings.Compare(a.Instance, b.Instance) })
	m.asked, m.members = m.now(), members
	owners := ownership.ByResource(members)
	for name, o := range m.ownership {
		o.Note(owners[name], len(members) > 0, m.now())
	}
}

// noteWritten notes which watermarks were written since the last look, if they were read, and logs which
// resources become stalled or recover. The caller holds m.mu.
func (m *groupMonitor) noteWritten(read bool) {
	for name, o := range m.ownership {
		if !read {
			o.Missed()
			continue
		}
		mark, known := m.marks[name]
		if !known {
			mark = watermark.New(name)
		}
		o.Wrote(mark.Written, m.now())
		m.owners[name].sources.Dialect().Load(mark.Dialect)
		stalled, log := m.isStalled(name), m.owners[name].log
		switch {
		case stalled && !m.stalled[name]:
			log.Warn("stalled: its owner leaves the watermark alone", zap.String("owner", o.Owner),
				zap.Time("written", timeOf(mark.Written)))
		case !stalled && m.stalled[name]:
			log.Info("no longer stalled", zap.String("owner", o.Owner))
		}
		m.stalled[name] = stalled
	}
}

// isStalled says whether the owner of the resource leaves its watermark alone. The caller holds m.mu.
func (m *groupMonitor) isStalled(name string) bool {
	return m.ownership[name].Stalled(m.owners[name].settings.Interval)
}

// setMetrics sets the metrics of the resources that are not polled here, and of all resources whether they
// are stalled.
func (m *groupMonitor) setMetrics() {
	m.mu.Lock()
	defer m.mu.Unlock()
	silent := m.now().Sub(m.asked) > doubtAfter
	if silent && m.now().Sub(m.began) <= doubtAfter {
		return // just begun
	}
	for name, o := range m.owners {
		stalled := m.isStalled(name)
		o.metrics.Stalled.Set(metrics.Bool(stalled))
		if o.status.polling() {
			continue
		}
		mark, known := m.marks[name]
		if known && mark.Settled != schemas.MinInstant {
			o.metrics.Settled.Set(float64(mark.Settled) / 1e6)
		}
		if swept := mark.SweptSince(); known && swept != schemas.MinInstant {
			o.metrics.Swept.Set(float64(swept) / 1e6)
		}
		o.metrics.FirstLoad.Set(metrics.Bool(known && mark.AsOf == schemas.MinInstant))
		o.metrics.SweepLeft.Set(metrics.Bool(known && mark.SweepLeft()))
		o.metrics.SetSweepFound(mark.SweepFound()) // zeros if the watermark is unknown
		o.metrics.LettersInTopic.Set(float64(rows(m.deadLetters[name])))
		o.metrics.SettlingDelayed.Set(0)
		o.metrics.Blocked.Set(metrics.Bool(o.status.refused()))
		o.metrics.DedupBytes.Set(0)
		asOf := mark.KnownAsOf(schemas.InstantOf(m.now()))
		switch owner := m.ownership[name].Owner; {
		case !silent && !stalled && owner != "" && owner != m.name:
			o.metrics.Lag.Forget()
		case known && asOf != schemas.MinInstant && asOf.Time().After(o.metrics.Lag.Start()):
			o.metrics.Lag.Since(asOf.Time())
		default:
			o.metrics.Lag.Begin(m.began)
		}
	}
}

// rows counts the rows that have a dead letter.
func rows(reasons []producer.DeadLetterReason) (n int) {
	for _, r := range reasons {
		n += r.Count
	}
	return n
}

// addTo adds the state of the group to this instance's own.
func (m *groupMonitor) addTo(s *status.Snapshot) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, member := range m.members {
		s.Members = append(s.Members,
			status.Member{Instance: member.Instance, Enabled: member.Resources, Owned: member.Owned})
	}
	s.Notices = append(s.Notices, m.differences()...)
	for i := range s.Resources {
		m.addResource(&s.Resources[i])
	}
	if m.failing.IsZero() || m.now().Sub(m.failing) < monitorEvery || s.Waiting != "" {
		return
	}
	if slices.ContainsFunc(s.Resources, func(r status.Resource) bool { return r.Owned }) {
		s.Notices = append(s.Notices,
			"What other instances do is not known for certain now: "+status.FirstLine(m.err))
		return
	}
	s.Waiting = "kafka: " + status.FirstLine(m.err) // a member that lost its group joins again by itself
}

// addResource adds the state of a resource in the group and the topics to that of its owner here.
func (m *groupMonitor) addResource(r *status.Resource) {
	for _, reason := range m.deadLetters[r.Name] {
		r.Letters = append(r.Letters, status.Letter{Field: reason.Field, Error: reason.Err, Rows: reason.Count,
			IDs: reason.IDs, Latest: reason.Latest.UTC()})
	}
	for _, l := range m.latest[r.Name] {
		r.LatestLetters = append(r.LatestLetters, status.DeadLetter{ID: l.ID, At: l.At.UTC(), Field: l.Field,
			Error: l.Err})
	}
	group := m.ownership[r.Name]
	switch {
	case r.Owned:
		r.Owner = m.name
	case group.Owner != m.name: // else it is about to be ours, or no longer is
		r.Owner = group.Owner
	}
	r.Abandoned = !r.Owned && m.failing.IsZero() && group.Abandoned
	r.Stalled = m.isStalled(r.Name)
	if !m.owners[r.Name].status.polling() {
		r.DeadLetters = rows(m.deadLetters[r.Name])
	}
	mark, known := m.marks[r.Name]
	if known && !r.Owned {
		addTrouble(r, mark.Trouble)
	}
	if !known || !r.Settled.IsZero() || !r.AsOf.IsZero() {
		return
	}
	r.Settled, r.AsOf, r.Written = timeOf(mark.Settled), timeOf(mark.AsOf), timeOf(mark.Written)
	r.OtherPolicies, r.Settling = mark.Policies.Mixed(), settling(mark, m.owners[r.Name].settings, nil)
	r.Rows = mark.Rows
	r.Sweep, r.SweepInHand = lastSweep(mark), sweepInHand(mark, poller.SweepStatus{})
	if r.Owner == "" || r.Owned || r.Stalled {
		r.Good = r.AsOf
	}
}

// addTrouble adds the trouble that the owner of a resource that is not polled here wrote last.
func addTrouble(r *status.Resource, trouble *watermark.Trouble) {
	switch {
	case trouble == nil:
	case trouble.SettlingDelayed():
		r.Delayed, r.DelayedSince = status.FirstLine(errors.New(trouble.Why)), timeOf(trouble.Since)
	default:
		r.Error, r.FailedSince = status.FirstLine(errors.New(trouble.Why)), timeOf(trouble.Since)
	}
}

// differences names the instances that lack resources which others have. The group shares out all of them,
// and an instance that has not enabled a resource does not poll it.
func (m *groupMonitor) differences() []string {
	all := map[string]bool{}
	for _, member := range m.members {
		for _, resource := range member.Resources {
			all[resource] = true
		}
	}
	var notices []string
	for _, member := range m.members {
		var lacks []string
		for resource := range all {
			if !slices.Contains(member.Resources, resource) {
				lacks = append(lacks, resource)
			}
		}
		if len(lacks) > 0 {
			slices.Sort(lacks)
			notices = append(notices, fmt.Sprintf("Instance %s has not enabled %s, which others of its group have: "+
				"nobody polls what falls to it. Enable the same resources in all.",
				member.Instance, strings.Join(lacks, ", ")))
		}
	}
	return notices
}
