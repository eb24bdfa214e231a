package instance

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/storestream/storestream/cmd/storestream/internal/overview"
	"github.com/storestream/storestream/cmd/storestream/internal/ownership"
	"github.com/storestream/storestream/internal/health"
	"github.com/storestream/storestream/internal/status"
	"github.com/storestream/storestream/internal/wait"
	"github.com/storestream/storestream/internal/watermark"
	"github.com/storestream/storestream/producer"
	"github.com/storestream/storestream/schemas"
)

// monitor reads the state of the whole group every few seconds: which instance has which resource, and the
// watermark of each. Its findings go to the page and to the metrics.
//
// A resource's lag is reported by the instance that polls it, or polled it last, and by every instance that
// does not know of another owner. With an owner there is one lag. Without one, each instance computes the
// same from the watermark. So the maximum over the instances is right in both cases. An instance that gets no
// answer for a minute reports the lag too, as far as it knows. While the brokers are down no instance
// owns a resource, but the lag must grow. If only this instance is cut off, it reports too much and never too
// little.
//
// An owner that the group names may be long dead (package ownership describes how instances notice). So every
// instance reports the lag of a stalled resource in its log, metrics and page, even if another one has it.
type monitor struct {
	// For the whole process.
	name    string // of this instance
	cluster *producer.Cluster
	owners  map[string]*owner // of the resources that are enabled here
	watch   *producer.Watch
	now     func() time.Time
	began   time.Time

	mu sync.Mutex
	// looked is when the group and the topics answered last, zero if they have not yet. err is the failure of
	// the last try, or nil.
	looked time.Time
	err    error
	// As of the last answer of the group.
	members   []health.Member
	ownership map[string]*ownership.Resource
	// As of the last look at the topics, at the time read, zero if they have not answered yet.
	read        time.Time
	marks       map[string]watermark.Watermark
	deadLetters map[string][]watermark.DeadLetters
	stalled     map[string]bool // resources that the log calls stalled
}

const (
	// monitorEvery is how often the group is asked.
	monitorEvery = 5 * time.Second
	// If no look succeeds for saidAfter, the page shows the error. The group's last answer counts for
	// doubtAfter.
	saidAfter  = 3 * monitorEvery
	doubtAfter = time.Minute
)

func newMonitor(c Config, owners map[string]*owner) *monitor {
	m := &monitor{name: c.Name, cluster: c.Cluster, owners: owners, watch: producer.NewWatch(c.Cluster),
		now: time.Now, began: time.Now(), ownership: map[string]*ownership.Resource{},
		stalled: map[string]bool{}}
	for name := range owners {
		m.ownership[name] = &ownership.Resource{}
	}
	return m
}

// start monitors until the returned function is called, which waits for the end.
func (m *monitor) start() (end func()) {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for ctx.Err() == nil {
			m.look(ctx)
			_ = wait.For(ctx, monitorEvery) // the loop sees that ctx is done
		}
	}()
	return func() { cancel(); <-ended }
}

// look asks the group, and reads the topics on from the last look. If it fails, the earlier findings stay.
func (m *monitor) look(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, 2*monitorEvery)
	defer cancel()
	members, err := producer.Members(ctx, m.cluster)
	sharing := errors.Is(err, producer.ErrSharing)
	if sharing { // the group answers, and its last word stands
		err = nil
	}
	read := m.watch.Look(ctx)
	m.mu.Lock()
	defer m.mu.Unlock()
	now := m.now()
	m.marks, m.deadLetters = m.watch.Watermarks(), m.watch.DeadLetters()
	if m.err = cmp.Or(err, read); m.err == nil && !sharing {
		m.looked = now
	}
	if err == nil && !sharing {
		slices.SortFunc(members, func(a, b health.Member) int { return strings.Compare(a.Instance, b.Instance) })
		m.members = members
		owners := ownership.ByResource(members)
		for name, o := range m.ownership {
			o.Note(owners[name], len(members) > 0, now)
		}
	}
	if read == nil {
		m.read = now
	}
	for name, o := range m.owners {
		if read != nil {
			m.ownership[name].Missed()
			continue
		}
		mark := m.mark(name)
		m.ownership[name].Wrote(mark.Written, now)
		o.sources.Dialect().Load(mark.Dialect)
		stalled := m.isStalled(name)
		if stalled && !m.stalled[name] {
			o.log.Warn("stalled: its owner leaves the watermark alone",
				zap.String("owner", m.ownership[name].Owner), zap.Stringer("written", mark.Written))
		} else if !stalled && m.stalled[name] {
			o.log.Info("no longer stalled", zap.String("owner", m.ownership[name].Owner))
		}
		m.stalled[name] = stalled
	}
}

// mark returns the watermark of a resource as it was when the topics were last read, a new one if there was
// none. The caller holds m.mu.
func (m *monitor) mark(name string) watermark.Watermark {
	if mark, known := m.marks[name]; known {
		return mark
	}
	return watermark.New(name)
}

// isStalled says whether the owner of the resource leaves its watermark alone. The caller holds m.mu.
func (m *monitor) isStalled(name string) bool {
	return m.ownership[name].Silent() > health.StalledAfter(m.owners[name].settings.Interval)
}

// resource returns the facts of a resource: by the topics and the group, and by the poller if it is polled
// here. owned is set if the group has given it to this instance.
func (m *monitor) resource(name string, owned bool) health.Resource {
	m.mu.Lock()
	defer m.mu.Unlock()
	o, group, mark := m.owners[name], m.ownership[name], m.mark(name)
	l := o.now()
	if l.poller != nil {
		l.status = l.poller.Status()
		written := mark // with its writer, which the session adds to the poller's commits
		mark = l.status.Watermark
		mark.Instance, mark.Group = written.Instance, written.Group
	}
	now := schemas.InstantOf(m.now())
	if !owned && !m.read.IsZero() {
		now = schemas.InstantOf(m.read)
	}
	r := overview.New(mark, o.settings, now)
	r.DeadLetters, r.Owned = append(r.DeadLetters, m.deadLetters[name]...), owned
	r.Silent, r.Between = group.Silent(), group.Between()
	r.Abandoned = !owned && m.err == nil && group.Abandoned
	switch {
	case owned:
		r.Owner = m.name
	case group.Owner != m.name: // else it is about to be ours, or no longer is
		r.Owner = group.Owner
	}
	if l.poller != nil || owned {
		l.addTo(&r)
	}
	reports := group.Owner == "" || group.Owner == m.name || m.isStalled(name)
	if m.now().Sub(m.looked) > doubtAfter {
		reports = m.now().Sub(m.began) > doubtAfter
	}
	if l.poller != nil || reports {
		r.ReportLag(schemas.InstantOf(slices.MaxFunc([]time.Time{m.began, group.Since}, time.Time.Compare)))
	}
	r.Settling = l.settling(&mark, o.settings)
	return r
}

// addTo adds the state of the group to this instance's own.
func (m *monitor) addTo(s *status.Snapshot) {
	m.mu.Lock()
	defer m.mu.Unlock()
	s.Members = m.members
	if m.err == nil || m.now().Sub(m.looked) < saidAfter || s.Waiting != "" {
		return
	}
	if slices.ContainsFunc(s.Resources, func(r health.Resource) bool { return r.Owned }) {
		s.Notices = append(s.Notices,
			"The state of the other instances is uncertain: "+status.FirstLine(m.err))
		return
	}
	s.Waiting = "kafka: " + status.FirstLine(m.err) // a member that lost its group joins again by itself
}
