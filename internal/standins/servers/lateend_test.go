package servers

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// kfake alone keeps every second of the members that died: whether it drops the answer to a connection that
// has ended is a matter of chance.
func TestAMemberThatDiesWhileItJoinsLeavesItsGroupWhenItsSessionEnds(t *testing.T) {
	b := BrokerForTest(t, BrokerConfig{Options: []kfake.Opt{
		kfake.BrokerConfigs(map[string]string{"group.min.session.timeout.ms": "100"}),
	}})
	var groups sync.WaitGroup
	for i := range 12 {
		m := &member{t: t, group: fmt.Sprintf("group-%d", i), session: time.Minute, client: clientOf(t, b)}
		other := &member{t: t, group: m.group, session: time.Second, client: clientOf(t, b)}
		groups.Go(func() { m.outlives(other) })
	}
	groups.Wait()
}

func clientOf(t *testing.T, b *Broker) *kgo.Client {
	t.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(b.Brokers()...))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	return client
}

// member is one of a group, by the requests that it sends.
type member struct {
	t       *testing.T
	group   string
	session time.Duration
	client  *kgo.Client
	id      string
}

// outlives lets other join beside m and die before m has joined anew, and waits for other to leave the group.
func (m *member) outlives(other *member) {
	m.enter()
	m.sync(m.join())
	other.enter()
	parked, die := context.WithCancel(m.t.Context())
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		_, _ = other.request().RequestWith(parked, other.client) // nobody is left to be told
	}()
	m.until("the other one waits for it to join", func(g kadm.DescribedGroup) bool {
		return g.State == "PreparingRebalance"
	})
	other.client.Close()
	die()
	<-gone
	m.sync(m.join())
	m.until("it is alone again", func(g kadm.DescribedGroup) bool { return len(g.Members) == 1 })
}

// enter gets m an id.
func (m *member) enter() {
	answer, err := m.request().RequestWith(m.t.Context(), m.client)
	if err != nil || answer.ErrorCode != kerr.MemberIDRequired.Code {
		m.t.Errorf("%s: %v, %v", m.group, err, kerr.ErrorForCode(answer.ErrorCode))
		return
	}
	m.id = answer.MemberID
}

func (m *member) request() *kmsg.JoinGroupRequest {
	join := kmsg.NewPtrJoinGroupRequest()
	join.Group, join.MemberID, join.ProtocolType = m.group, m.id, "consumer"
	join.SessionTimeoutMillis, join.RebalanceTimeoutMillis = int32(m.session.Milliseconds()), 60_000
	join.Protocols = []kmsg.JoinGroupRequestProtocol{{Name: "range", Metadata: make([]byte, 10)}}
	return join
}

// join returns the generation in which it is the group's leader.
func (m *member) join() int32 {
	answer, err := m.request().RequestWith(m.t.Context(), m.client)
	if err != nil || answer.ErrorCode != 0 || answer.LeaderID != m.id {
		m.t.Errorf("%s: %v, %+v", m.group, err, answer)
	}
	return answer.Generation
}

// sync shares nothing out.
func (m *member) sync(generation int32) {
	req := kmsg.NewPtrSyncGroupRequest()
	req.Group, req.MemberID, req.Generation = m.group, m.id, generation
	answer, err := req.RequestWith(m.t.Context(), m.client)
	if err != nil || answer.ErrorCode != 0 {
		m.t.Errorf("%s: %v, %+v", m.group, err, answer)
	}
}

// until waits for the group to be so.
func (m *member) until(what string, so func(kadm.DescribedGroup) bool) {
	admin := kadm.NewClient(m.client)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(30 * time.Second); time.Now().Before(deadline); <-tick.C {
		if groups, err := admin.DescribeGroups(m.t.Context(), m.group); err == nil && so(groups[m.group]) {
			return
		}
	}
	m.t.Errorf("%s: not within 30 s: %s", m.group, what)
}
