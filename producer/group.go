package producer

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"go.uber.org/zap"

	"github.com/storestream/storestream/internal/wait"
)

// ErrRevoked is the cause of the end of an owner's context, beside that of the context that Run was given.
// The group gives the resource to another member, or went on without this one. Abort, close, and return
// within seconds.
var ErrRevoked = errors.New("the group takes the resource away")

const (
	// beats is how many heartbeats there are in a session timeout.
	beats = 4
	// revokeTimeout is how long we keep the group waiting for owners that are to stop. Then it goes on
	// without them, and their successors fence them.
	revokeTimeout = 5 * time.Second
	// rebalanceTimeout is how long a rebalance waits for members that do not come, such as one that was killed
	// while it joined: it stands between such a death and the handover.
	rebalanceTimeout = 2 * revokeTimeout
)

// Group is this instance's membership in the consumer group that shares the resources out (sharing). Run it
// once.
type Group struct {
	c            *Cluster
	resources    []string // that are enabled here
	finishWithin time.Duration
	own          func(ctx context.Context, resource string)

	// waiting, a string, is the reason why it owns nothing yet, or no longer. It is empty once the group has
	// given it a share, even an empty one.
	waiting atomic.Value
	// cl is nil before the group was joined and after it was left.
	cl atomic.Pointer[kgo.Client]

	mu      sync.Mutex
	left    bool              // no owner begins any more
	owners  map[string]*owner // the newest of each resource
	running sync.WaitGroup
}

// owner is an own function that was called.
type owner struct {
	cancel  context.CancelCauseFunc
	stopped bool          // it was cancelled
	done    chan struct{} // closed when it has returned
}

// NewGroup prepares a member of the group for the resources that are enabled here. Run joins.
//
// It calls own, in a goroutine, for each resource that falls to this instance, and again whenever the
// resource comes back. own returns when its context ends. If the cause is ErrRevoked, it returns within
// seconds, because the group waits. Otherwise the cause is that of Run's context: the instance
// stops, and own has finishWithin to finish. If own returns by itself, it is not called again before the
// resource has been elsewhere.
func NewGroup(c *Cluster, resources []string, finishWithin time.Duration,
	own func(ctx context.Context, resource string)) *Group {
	g := &Group{c: c, resources: resources, finishWithin: finishWithin, own: own,
		owners: make(map[string]*owner)}
	g.waiting.Store("kafka")
	return g
}

// Run joins the group. When ctx ends, it stops the owners, gives them finishWithin to finish as a member, and
// leaves the group. It returns when every own has returned. It waits for a broker that is not there. Its
// error is a *RefusedError for brokers or a watermark topic that cannot be used.
func (g *Group) Run(ctx context.Context) error {
	if err := g.ready(ctx); err != nil {
		return err
	}
	g.waiting.Store("the group " + g.c.cfg.Group + " to share the resources out")
	cl, err := g.join()
	if err != nil {
		return err
	}
	<-ctx.Done()
	g.mu.Lock()
	g.left = true
	g.mu.Unlock()
	g.stop(g.resources, context.Cause(ctx), g.finishWithin)
	// Leave the group, so that the other members need not wait for the session to time out.
	leaving, cancel := context.WithTimeout(context.WithoutCancel(ctx), revokeTimeout+closeTimeout)
	defer cancel()
	if err := cl.LeaveGroupContext(leaving); err != nil {
		g.c.log.Info("left the group without an answer", zap.Error(err))
	}
	g.cl.Store(nil)
	g.running.Wait()
	cl.Close()
	return nil
}

// ready waits for a broker, and for the watermark topic in it.
func (g *Group) ready(ctx context.Context) error {
	said := false
	for {
		err := g.c.haveTransactions(ctx)
		if err == nil {
			err = EnsureTopics(ctx, g.c)
		}
		if err == nil {
			return nil
		}
		if Refused(err) {
			return err
		}
		if ctx.Err() != nil {
			return nil //nolint:nilerr // the instance stops
		}
		g.waiting.Store("kafka: " + err.Error())
		if !said {
			said = true
			g.c.log.Warn("waiting for kafka", zap.Strings("brokers", g.c.cfg.Brokers), zap.Error(err))
		}
		_ = wait.For(ctx, time.Second)
	}
}

func (g *Group) join() (*kgo.Client, error) {
	type byTopic = map[string][]int32
	remove := func(_ context.Context, _ *kgo.Client, taken byTopic) {
		g.stop(shared(taken[g.c.Watermarks()]), ErrRevoked, revokeTimeout)
	}
	cl, err := g.c.client(
		kgo.ClientID(memberID(g.c.cfg.Instance, g.resources)),
		kgo.ConsumerGroup(g.c.cfg.Group),
		kgo.ConsumeTopics(g.c.Watermarks()),
		kgo.Balancers(sharing{kgo.CooperativeStickyBalancer(), g.c.Watermarks()}),
		// The group is for assignment alone, so the client fetches no records. It is no static member: that would
		// wait for its own ghost under a new id, and fence its twin under an equal one.
		kgo.DisableAutoCommit(),
		kgo.AdjustFetchOffsetsFn(func(context.Context, map[string]map[int32]kgo.Offset) (
			map[string]map[int32]kgo.Offset, error) {
			return nil, nil
		}),
		kgo.SessionTimeout(g.c.cfg.SessionTimeout), kgo.HeartbeatInterval(g.c.cfg.SessionTimeout/beats),
		kgo.RebalanceTimeout(rebalanceTimeout),
		kgo.WithHooks(g),
		kgo.OnPartitionsAssigned(func(_ context.Context, _ *kgo.Client, given byTopic) {
			g.start(shared(given[g.c.Watermarks()]))
			g.waiting.Store("") // not before it has owners: /readyz would take it for a standby
		}),
		kgo.OnPartitionsRevoked(remove),
		kgo.OnPartitionsLost(remove),
	)
	if err == nil {
		g.cl.Store(cl)
	}
	return cl, err
}

// Waiting is the reason why this instance does not own anything yet, or no longer. It is empty while the
// instance is a member of the group.
func (g *Group) Waiting() string { return g.waiting.Load().(string) }

// Owned returns the resources that are this instance's now.
func (g *Group) Owned() []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	var owned []string
	for _, r := range g.resources {
		if o := g.owners[r]; o != nil && !o.stopped {
			owned = append(owned, r)
		}
	}
	return owned
}

// Confirm returns nil when the group has just answered a heartbeat of the current generation: this instance
// is a member now, and not only in its own opinion. Call it right before every Take. A process that was
// stopped for a minute believes that it owns a resource that its successor owns, and Take would fence the
// successor. While the group is being rebalanced, Confirm waits until ctx ends.
func (g *Group) Confirm(ctx context.Context) error {
	err := retry(ctx, 500*time.Millisecond, func() error {
		cl := g.cl.Load()
		if cl == nil {
			return kerr.UnknownMemberID
		}
		req := kmsg.NewPtrHeartbeatRequest()
		req.Group = g.c.cfg.Group
		if req.MemberID, req.Generation = cl.GroupMetadata(); req.Generation < 0 {
			return kerr.UnknownMemberID
		}
		answer, err := req.RequestWith(ctx, cl)
		if err != nil {
			return err
		}
		return kerr.ErrorForCode(answer.ErrorCode)
	})
	if err != nil {
		return fmt.Errorf("asking group %s whether this instance is still a member: %w", g.c.cfg.Group, err)
	}
	return nil
}

// start runs an owner for each of the resources that is enabled here and has none. It waits for one that is
// still busy stopping: a process does not fence itself.
func (g *Group) start(resources []string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, resource := range resources {
		before := g.owners[resource]
		if g.left || !slices.Contains(g.resources, resource) || before != nil && !before.stopped {
			continue
		}
		ctx, cancel := context.WithCancelCause(context.Background())
		o := &owner{cancel: cancel, done: make(chan struct{})}
		g.owners[resource] = o
		g.c.log.Info("owning", zap.String("resource", resource))
		g.running.Go(func() {
			defer close(o.done)
			defer cancel(nil)
			if before != nil {
				<-before.done
			}
			if ctx.Err() == nil {
				g.own(ctx, resource)
			}
		})
	}
}

// stop cancels the owners of the resources and waits for them, up to a limit, so that the group hands the
// resources on when they are free. If an owner is still at work then, its successor fences it.
func (g *Group) stop(resources []string, why error, limit time.Duration) {
	g.mu.Lock()
	var stopped []*owner
	for _, resource := range resources {
		if o := g.owners[resource]; o != nil && !o.stopped {
			o.stopped = true
			o.cancel(why)
			g.c.log.Info("no longer owning", zap.String("resource", resource), zap.NamedError("reason", why))
			stopped = append(stopped, o)
		}
	}
	g.mu.Unlock()
	timeout := time.NewTimer(limit)
	defer timeout.Stop()
	for _, o := range stopped {
		select {
		case <-o.done:
		case <-timeout.C:
			g.c.log.Warn("an owner did not stop in time: going on without it", zap.Duration("waited", limit))
			return
		}
	}
}

// OnGroupManageError implements kgo.HookGroupManageError. It tells why a session of the group ended. The
// client joins again by itself.
func (g *Group) OnGroupManageError(err error) {
	if errors.Is(err, kerr.InvalidSessionTimeout) {
		err = fmt.Errorf("the brokers refuse kafka.session_timeout, %s: %w", g.c.cfg.SessionTimeout, err)
	}
	g.waiting.Store("kafka: " + err.Error())
	g.c.log.Warn("out of the group, joining again", zap.String("group", g.c.cfg.Group), zap.Error(err))
}
