package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/storestream/storestream/internal/status"
	"github.com/storestream/storestream/internal/watermark"
	"github.com/storestream/storestream/poller"
	"github.com/storestream/storestream/producer"
	"github.com/storestream/storestream/schemas"
)

// lookout learns every few seconds what the group as a whole does: which instance has which resource, and what the topics say of each. It is for
// the page, and for the metrics of resources that this instance does not poll.
//
// Which instance tells a resource's lag: whoever polls it, or polled it last, and every instance that does not know another one to have it. So with
// an owner there is one lag; without one each instance tells the same, from the watermark; and the maximum over the instances is right in both
// cases. An instance that cannot ask the group for a minute tells the lag too, of what it knows: while brokers are down nobody
// owns anything, and if just this instance is cut off, what it says is too much and never too little.
type lookout struct {
	in    *instance
	watch *producer.Watch
	now   func() time.Time
	began time.Time

	mu      sync.Mutex
	asked   time.Time // when the group last answered
	members []producer.Owner
	owners  map[string]string // resource to instance
	polled  map[string]polled // by resource: for how long nobody has had it
	marks   map[string]watermark.Watermark
	letters map[string][]producer.DeadLetterReason
	err     error     // of the last look
	failing time.Time // since when looks have failed; zero: the last one did not
}

const (
	groupEvery = 5 * time.Second
	// doubtAfter is how long what the group said last is taken for true.
	doubtAfter = time.Minute
)

func newLookout(in *instance) *lookout {
	return &lookout{in: in, watch: producer.NewWatch(in.cluster), now: time.Now, began: time.Now(), owners: map[string]string{}, polled: map[string]polled{}}
}

// run looks until ctx ends.
func (l *lookout) run(ctx context.Context) {
	ticker := time.NewTicker(groupEvery)
	defer ticker.Stop()
	for ctx.Err() == nil {
		l.look(ctx)
		l.tell()
		select {
		case <-ctx.Done():
		case <-ticker.C:
		}
	}
}

// look asks the group and reads what the topics have got since the last look. What it learned stays when it fails.
func (l *lookout) look(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, 2*groupEvery)
	defer cancel()
	members, err := producer.Owners(ctx, l.in.cluster)
	sharing := errors.Is(err, producer.ErrSharing)
	if sharing { // it answers, and what it said last stands
		err = nil
	}
	read := l.watch.Look(ctx)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.marks, l.letters, l.err = l.watch.Watermarks(), l.watch.DeadLetters(), cmp.Or(err, read)
	switch {
	case l.err == nil:
		l.failing = time.Time{}
	case l.failing.IsZero():
		l.failing = l.now()
	}
	if err != nil || sharing {
		return
	}
	slices.SortFunc(members, func(a, b producer.Owner) int { return strings.Compare(a.Instance, b.Instance) })
	l.asked, l.members, l.owners = l.now(), members, map[string]string{}
	for _, m := range members {
		for _, resource := range m.Owned {
			l.owners[resource] = m.Instance
		}
	}
	for name := range l.in.owners {
		p := l.polled[name]
		p.note(l.owners[name], len(members) > 0, l.now())
		l.polled[name] = p
	}
}

// tell sets the metrics of the resources that this instance does not poll.
func (l *lookout) tell() {
	l.mu.Lock()
	defer l.mu.Unlock()
	silent := l.now().Sub(l.asked) > doubtAfter
	if silent && l.now().Sub(l.began) <= doubtAfter {
		return // just begun: nothing is known yet
	}
	for name, o := range l.in.owners {
		if o.polls() {
			continue
		}
		mark, known := l.marks[name]
		if known && mark.Settled != schemas.MinInstant {
			o.metrics.Settled.Set(float64(mark.Settled) / 1e6)
		}
		o.metrics.LettersHeld.Set(float64(count(l.letters[name])))
		o.metrics.SettlingHeld.Set(0)
		o.metrics.SeenBytes.Set(0)
		switch owner := l.owners[name]; {
		case !silent && owner != "" && owner != instanceName():
			o.metrics.Lag.Forget()
		case known && mark.AsOf != schemas.MinInstant && mark.AsOf.Time().After(o.metrics.Lag.Start()):
			o.metrics.Lag.Since(mark.AsOf.Time())
		default:
			o.metrics.Lag.Begin(l.began)
		}
	}
}

func count(letters []producer.DeadLetterReason) (n int) {
	for _, r := range letters {
		n += r.Count
	}
	return n
}

// snapshot puts what is known of the group into s.
func (l *lookout) snapshot(s *status.Snapshot) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, m := range l.members {
		s.Members = append(s.Members, status.Member{Instance: m.Instance, Enabled: m.Resources, Owned: m.Owned})
	}
	s.Notices = append(s.Notices, l.differences()...)
	for i := range s.Resources {
		l.resource(&s.Resources[i])
	}
	if l.failing.IsZero() || l.now().Sub(l.failing) < groupEvery || s.Waiting != "" {
		return
	}
	if slices.ContainsFunc(s.Resources, func(r status.Resource) bool { return r.Owned }) {
		s.Notices = append(s.Notices, "What other instances do is not known for certain now: "+firstLine(l.err))
		return
	}
	s.Waiting = "kafka: " + firstLine(l.err) // a member that lost its group joins again by itself
}

// resource adds what the topics say of a resource to what its owner here says.
func (l *lookout) resource(r *status.Resource) {
	for _, reason := range l.letters[r.Name] {
		r.Letters = append(r.Letters, status.Letter{Field: reason.Field, Error: reason.Err, Rows: reason.Count, IDs: reason.IDs, Latest: reason.Latest.UTC()})
	}
	if r.Owned {
		r.Owner = instanceName()
	} else {
		r.Owner = l.owners[r.Name]
		if r.Owner == instanceName() { // about to be ours, or no longer
			r.Owner = ""
		}
		r.Abandoned = !l.asked.IsZero() && l.failing.IsZero() && l.polled[r.Name].nobody
	}
	if !l.in.owners[r.Name].polls() {
		r.DeadLetters = count(l.letters[r.Name])
	}
	mark, known := l.marks[r.Name]
	if !known || !r.Settled.IsZero() || !r.AsOf.IsZero() {
		return
	}
	r.Settled, r.AsOf, r.Rows, r.Written = timeOf(mark.Settled), timeOf(mark.AsOf), mark.Rows, timeOf(mark.Written)
	r.Sweep, r.SweepInHand = sweeps(mark, poller.SweepStatus{})
	if r.Owner == "" || r.Owned {
		r.Good = r.AsOf
	}
}

// differences says which instances lack resources that others have: the group shares out all of them, and what falls to such an instance nobody polls.
func (l *lookout) differences() []string {
	all := map[string]bool{}
	for _, m := range l.members {
		for _, resource := range m.Resources {
			all[resource] = true
		}
	}
	var said []string
	for _, m := range l.members {
		var lacks []string
		for resource := range all {
			if !slices.Contains(m.Resources, resource) {
				lacks = append(lacks, resource)
			}
		}
		if len(lacks) > 0 {
			slices.Sort(lacks)
			said = append(said, fmt.Sprintf("Instance %s has not enabled %s, which others of its group have: nobody polls what falls to it. Enable the same resources in all.",
				m.Instance, strings.Join(lacks, ", ")))
		}
	}
	return said
}

// firstLine is the text of err for the page: a stack or a list is for the log.
func firstLine(err error) string {
	const longest = 600
	line, _, more := strings.Cut(err.Error(), "\n")
	if len(line) > longest {
		line, more = strings.ToValidUTF8(line[:longest], ""), true
	}
	if more {
		line += " ... (the log has the rest)"
	}
	return line
}
