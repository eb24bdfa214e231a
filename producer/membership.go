package producer

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"go.uber.org/zap"
)

const (
	// sessionTimeout is how long the group waits for a sign of life before it hands an instance's resources on. A takeover after kill -9 took 5.5 s with it.
	sessionTimeout    = 6 * time.Second
	heartbeatInterval = 1500 * time.Millisecond
	// revokeTimeout is how long the group is kept waiting for owners that were told to stop. Then it goes on without: they are fenced.
	revokeTimeout = 5 * time.Second
	// rebalanceTimeout is how long a rebalance waits for members that do not come, such as one that was killed while it joined: it stands between such a death
	// and the handover.
	rebalanceTimeout = 2 * revokeTimeout
	// lookInterval is how often the watermark topic is looked at for partitions that somebody added.
	lookInterval = 5 * time.Second
)

// Group is this instance's place in the group that shares the resources out. Run it once.
type Group struct {
	c         *Cluster
	resources []string
	own       func(ctx context.Context, resource string)

	mu         sync.Mutex
	cl         *kgo.Client // nil before the group was joined and after it was left
	assigned   map[int32]bool
	partitions int
	owners     map[string]*owner // of what is ours now
	last       map[string]*owner // by resource, whether or not it has been told to stop
	left       bool
	waiting    string // what it waits for; "" once the group has given it a part, be it none
	running    sync.WaitGroup
}

// owner is a running own function.
type owner struct {
	cancel context.CancelCauseFunc
	done   chan struct{}
}

// NewGroup prepares a member of the group for the resources that are enabled here. Run joins, and calls own.
func NewGroup(c *Cluster, resources []string, own func(ctx context.Context, resource string)) *Group {
	return &Group{c: c, resources: resources, own: own, waiting: "kafka", assigned: make(map[int32]bool), owners: make(map[string]*owner), last: make(map[string]*owner)}
}

// Run joins the group and calls own, in a goroutine of its own, for each resource that falls to this instance, until ctx ends; it returns when the
// group is left and every own has returned. It waits for a broker that is not there. Its error is a *RefusedError for a watermark topic that cannot be used.
//
// A resource belongs to whoever is assigned the partition of the watermark topic that its name hashes to. own is called again whenever the resource
// comes back; it returns when its context ends, whose cause is ErrRevoked (abort, close, within seconds: the group waits) or ErrLostOwnership (close
// without an abort). When own returns of itself it is not called again before the resource has been elsewhere.
func (m *Group) Run(ctx context.Context) error {
	if err := m.ready(ctx); err != nil {
		return err
	}
	m.wants("the group " + m.c.cfg.Group + " to share the resources out")
	balancer := newBalancer(Member{m.c.cfg.Instance, m.resources})
	cl, err := m.c.client(
		kgo.ClientID("storestream-"+m.c.cfg.Instance),
		kgo.ConsumerGroup(m.c.cfg.Group),
		kgo.ConsumeTopics(m.c.Watermarks()),
		kgo.Balancers(balancer),
		// The group is for assignment alone. A static member would wait for its own ghost under a new id, and fence its twin under an equal one.
		kgo.DisableAutoCommit(),
		kgo.SessionTimeout(sessionTimeout), kgo.HeartbeatInterval(heartbeatInterval), kgo.RebalanceTimeout(rebalanceTimeout),
		kgo.MetadataMaxAge(lookInterval),
		kgo.WithHooks(groupErrors{m}),
		kgo.OnPartitionsAssigned(func(ctx context.Context, _ *kgo.Client, parts map[string][]int32) { m.assign(ctx, parts) }),
		kgo.OnPartitionsRevoked(func(_ context.Context, _ *kgo.Client, parts map[string][]int32) { m.remove(parts, ErrRevoked) }),
		kgo.OnPartitionsLost(func(_ context.Context, _ *kgo.Client, parts map[string][]int32) { m.remove(parts, ErrLostOwnership) }),
	)
	if err != nil {
		return err
	}
	cl.PauseFetchTopics(m.c.Watermarks()) // nothing is consumed
	m.mu.Lock()
	m.cl = cl
	m.mu.Unlock()
	for sleep(ctx, lookInterval) {
		m.look(ctx)
	}
	m.leave(cl)
	return nil
}

// ready waits for a broker, and for the watermark topic in it.
func (m *Group) ready(ctx context.Context) error {
	said := false
	for {
		err := EnsureTopics(ctx, m.c)
		if err == nil {
			return nil
		}
		if refused := (*RefusedError)(nil); errors.As(err, &refused) && !refused.MayPass {
			return err
		}
		if ctx.Err() != nil {
			return nil //nolint:nilerr // stopped while waiting: no failure
		}
		m.wants("kafka: " + err.Error())
		if !said {
			said = true
			m.c.log.Warn("waiting for kafka", zap.Strings("brokers", m.c.cfg.Brokers), zap.Error(err))
		}
		sleep(ctx, time.Second)
	}
}

// leave gives everything back and waits for the owners. The group is told, so that the others need not wait for the session to time out.
func (m *Group) leave(cl *kgo.Client) {
	ctx, cancel := context.WithTimeout(context.Background(), revokeTimeout+closeTimeout)
	defer cancel()
	if err := cl.LeaveGroupContext(ctx); err != nil {
		m.c.log.Info("left the group without an answer", zap.Error(err))
	}
	m.mu.Lock()
	m.cl, m.left = nil, true
	m.stop(func(string) bool { return true }, ErrRevoked)
	m.mu.Unlock()
	m.running.Wait()
	cl.Close()
}

// Waiting says what this instance waits for before it can own anything, "" once it is a member of the group.
func (m *Group) Waiting() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.waiting
}

func (m *Group) wants(what string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.waiting = what
}

// Owned is the resources that are this instance's now.
func (m *Group) Owned() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	var owned []string
	for _, r := range m.resources {
		if m.owners[r] != nil {
			owned = append(owned, r)
		}
	}
	return owned
}

// Confirm returns nil when the group has just answered a heartbeat of the current generation: this instance is a member now, not merely in its own
// opinion. To be called right before every Take: a process that was stopped for a minute believes that it owns what its successor owns, and Take
// fences whoever is there. While the group is being rebalanced it waits, until ctx ends.
func (m *Group) Confirm(ctx context.Context) error {
	for wait := 20 * time.Millisecond; ; wait = min(2*wait, 500*time.Millisecond) {
		err := m.heartbeat(ctx)
		if err == nil {
			return nil
		}
		if !sleep(ctx, wait) {
			return fmt.Errorf("asking group %s whether this instance is still a member: %w", m.c.cfg.Group, errors.Join(context.Cause(ctx), err))
		}
	}
}

func (m *Group) heartbeat(ctx context.Context) error {
	m.mu.Lock()
	cl := m.cl
	m.mu.Unlock()
	if cl == nil {
		return kerr.UnknownMemberID
	}
	req := kmsg.NewPtrHeartbeatRequest()
	req.Group = m.c.cfg.Group
	req.MemberID, req.Generation = cl.GroupMetadata()
	if req.Generation < 0 {
		return kerr.UnknownMemberID
	}
	answer, err := req.RequestWith(ctx, cl)
	if err != nil {
		return err
	}
	return kerr.ErrorForCode(answer.ErrorCode)
}

// groupErrors logs what ends a session of the group; the client joins again by itself.
type groupErrors struct{ m *Group }

func (g groupErrors) OnGroupManageError(err error) {
	g.m.c.log.Warn("out of the group, joining again", zap.String("group", g.m.c.cfg.Group), zap.Error(err))
}
