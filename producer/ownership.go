package producer

import (
	"context"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"go.uber.org/zap"
)

// partitionOf is the partition that a key of the Java client's default partitioner goes to, of n.
func partitionOf(key string, n int) int32 {
	return homes(n)(&kgo.Record{Key: []byte(key)})
}

// homes returns the function that says in which partition, of n, a record with its key is written: by our own producers (newTransactional) and by the Java
// client. It is for one goroutine.
func homes(n int) func(*kgo.Record) int32 {
	p := kgo.StickyKeyPartitioner(nil).ForTopic("")
	return func(r *kgo.Record) int32 { return int32(p.Partition(r, n)) }
}

// assign takes in partitions that the group gave us.
func (m *Group) assign(ctx context.Context, parts map[string][]int32) {
	m.mu.Lock()
	m.waiting = ""
	for _, p := range parts[m.c.Watermarks()] {
		m.assigned[p] = true
	}
	m.mu.Unlock()
	m.look(ctx)
}

// look compares what should run here with what does, with the number of partitions that the watermark topic has now. When somebody adds partitions the
// names hash anew at once and the group follows some seconds later: meanwhile a resource may have no owner here, or for a moment two
// instances that count differently, of which one fences the other.
func (m *Group) look(ctx context.Context) {
	ask, cancel := context.WithTimeout(ctx, 3*time.Second)
	defer cancel()
	info, err := m.c.describe(ask, m.c.Watermarks(), false)
	m.mu.Lock()
	if err == nil {
		m.partitions = len(info.leaders)
	}
	moved := m.stop(func(resource string) bool { return !m.ours(resource) }, ErrRevoked)
	m.mu.Unlock()
	m.wait(moved)
	m.start()
}

// ours says whether resource falls to this instance. The caller holds m.mu.
func (m *Group) ours(resource string) bool {
	return m.partitions > 0 && m.assigned[partitionOf(resource, m.partitions)]
}

// start runs an owner for each resource that is ours and has none. One that is still busy stopping is waited for: a process does not fence itself. Nothing is
// started once the group was left.
func (m *Group) start() {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, resource := range m.resources {
		if m.left || !m.ours(resource) || m.owners[resource] != nil {
			continue
		}
		ctx, cancel := context.WithCancelCause(context.Background())
		o := &owner{cancel: cancel, done: make(chan struct{})}
		before := m.last[resource]
		m.owners[resource], m.last[resource] = o, o
		m.c.log.Info("owning", zap.String("resource", resource))
		m.running.Go(func() {
			defer close(o.done)
			defer cancel(nil)
			if before != nil {
				<-before.done
			}
			if ctx.Err() == nil {
				m.own(ctx, resource)
			}
		})
	}
}

// remove gives up partitions: cancels their owners and waits for them, so that the group hands the resources on when they are free.
func (m *Group) remove(parts map[string][]int32, why error) {
	m.mu.Lock()
	for _, p := range parts[m.c.Watermarks()] {
		delete(m.assigned, p)
	}
	stopped := m.stop(func(resource string) bool { return !m.ours(resource) }, why)
	m.mu.Unlock()
	m.wait(stopped)
}

// stop cancels the owners of the resources that which names. The caller holds m.mu.
func (m *Group) stop(which func(resource string) bool, why error) []*owner {
	var stopped []*owner
	for resource, o := range m.owners {
		if which(resource) {
			o.cancel(why)
			delete(m.owners, resource)
			stopped = append(stopped, o)
			m.c.log.Info("no longer owning", zap.String("resource", resource), zap.NamedError("reason", why))
		}
	}
	return stopped
}

// wait gives owners revokeTimeout to return. What is still at work then is fenced by its successor.
func (m *Group) wait(owners []*owner) {
	timeout := time.NewTimer(revokeTimeout)
	defer timeout.Stop()
	for _, o := range owners {
		select {
		case <-o.done:
		case <-timeout.C:
			m.c.log.Warn("an owner did not stop in time: going on without it", zap.Duration("waited", revokeTimeout))
			return
		}
	}
}
