//go:build kafka

package producer_test

import (
	"context"
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/storestream/storestream/internal/standins/servers"
)

// idle are the Apache Kafkas that a test has had and nothing is left on. To start one takes as long as most
// of these tests do.
var idle struct {
	sync.Mutex
	kafkas []*servers.Kafka
}

func TestMain(m *testing.M) {
	status := m.Run()
	for _, kafka := range idle.kafkas {
		if err := kafka.Stop(); err != nil {
			fmt.Fprintln(os.Stderr, "stop:", err)
			status = max(status, 1)
		}
	}
	os.Exit(status)
}

// plainStage is an Apache Kafka: what counts for fencing, settings and record times is what it does, not what
// the embedded broker does. The test has it for itself.
func plainStage(t *testing.T) *stage {
	t.Helper()
	kafka := idleKafka()
	if kafka == nil {
		var err error
		if kafka, err = servers.StartKafka(context.Background(), servers.KafkaConfig{}); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() { // when the test's own clients are closed
		if err := empty(kafka); err != nil {
			t.Logf("this broker goes to no other test: %v", err)
			if err := kafka.Stop(); err != nil {
				t.Errorf("stop: %v", err)
			}
			return
		}
		idle.Lock()
		defer idle.Unlock()
		idle.kafkas = append(idle.kafkas, kafka)
	})
	return setUp(t, nil, kafka.Brokers())
}

func idleKafka() *servers.Kafka {
	idle.Lock()
	defer idle.Unlock()
	n := len(idle.kafkas)
	if n == 0 {
		return nil
	}
	kafka := idle.kafkas[n-1]
	idle.kafkas = idle.kafkas[:n-1]
	return kafka
}

// empty deletes all topics and groups. A transaction that is open would be ended in the next test's topics.
func empty(kafka *servers.Kafka) error {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	cl, err := kgo.NewClient(kgo.SeedBrokers(kafka.Brokers()...))
	if err != nil {
		return err
	}
	defer cl.Close()
	admin := kadm.NewClient(cl)
	open, err := admin.ListTransactions(ctx, nil, []string{"Ongoing", "PrepareAbort", "PrepareCommit"})
	if err != nil {
		return err
	}
	if len(open) > 0 {
		return fmt.Errorf("transactions are open: %v", open.TransactionalIDs())
	}
	topics, err := admin.ListTopics(ctx)
	if err != nil {
		return err
	}
	deleted, err := admin.DeleteTopics(ctx, topics.Names()...)
	if err != nil {
		return err
	}
	if err := deleted.Error(); err != nil {
		return err
	}
	groups, err := admin.ListGroups(ctx)
	if err != nil {
		return err
	}
	gone, err := admin.DeleteGroups(ctx, groups.Groups()...)
	if err != nil {
		return err
	}
	return gone.Error()
}
