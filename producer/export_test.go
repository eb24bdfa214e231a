package producer

import (
	"context"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl"
)

// PartitionOf is the partition that a name belongs to.
func PartitionOf(key string, n int) int32 { return partitionsOf(n)(&kgo.Record{Key: []byte(key)}) }

// Abandon ends the session as the death of its process does.
func (s *Session) Abandon() {
	s.lost, s.open = true, false
	s.cl.Close()
}

// SetTransactionTimeout sets how long the broker lets a transaction stay open. It returns what it was.
func SetTransactionTimeout(now time.Duration) (before time.Duration) {
	before, transactionTimeout = transactionTimeout, now
	return before
}

// A test does not wait a minute for what died.
var _ = SetTransactionTimeout(10 * time.Second)

// Login is the mechanism that the clients of a process share.
func Login(s SASL) sasl.Mechanism { return newTokens(s) }

// SettingsOf are a topic's settings.
func SettingsOf(ctx context.Context, c *Cluster, topic string) (map[string]string, error) {
	return c.settings(ctx, topic)
}

// A test does not wait a second for another token.
func init() { tokenPause = 20 * time.Millisecond }

// ShortLogPause is between two looks at a log that seems to lack its end.
var ShortLogPause = &shortLogPause

// AwaitPartitions is what a transaction waits for before it commits.
var AwaitPartitions = awaitPartitions

// AbortIn ends a transaction that hangs.
var AbortIn = abortIn
