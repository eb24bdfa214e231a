package producer

import (
	"cmp"
	"time"

	"go.uber.org/zap"

	"github.com/storestream/storestream/internal/metrics"
	"github.com/storestream/storestream/internal/tlsfile"
	"github.com/storestream/storestream/schemas/registry"
)

// Config says which cluster, and how this instance behaves in it.
type Config struct {
	Brokers           []string // host:port
	TopicPrefix       string   // "store.": the data topic of orders is store.orders
	Partitions        int32    // of data topics that we create
	ReplicationFactor int16    // of topics that we create. -1 means the broker's default
	// TopicSettings override our own settings of topics that we create, except cleanup.policy.
	TopicSettings map[string]string
	Compression   string          // none, gzip, snappy, lz4, zstd; the default is snappy
	Group         string          // the consumer group whose members share the resources
	Instance      string          // names this process in watermarks and in the group
	TLS           *tlsfile.Client // nil: connections are not encrypted
	SASL          SASL
	Registry      *registry.Client
	AutoRegister  bool // register schemas that the registry does not have
	Log           *zap.Logger
	Metrics       *metrics.Kafka // of the clients; may be nil
	// Now is the clock. The default is time.Now.
	Now func() time.Time
	// SessionTimeout is how long the group waits for a heartbeat of an instance before it hands its resources
	// on. The default is 6 s. A broker refuses less than its group.min.session.timeout.ms (6 s by default)
	// and more than its group.max.session.timeout.ms (30 minutes). A takeover after kill -9 took 5.5 s with 6
	// s.
	SessionTimeout time.Duration
	// EraseWithin limits how long the topics that we create keep values that were deleted or replaced
	// (max.compaction.lag.ms). If it is 0, the broker's default applies, which has no limit.
	EraseWithin time.Duration
}

// withDefaults sets defaults. Package config checks what users set.
func (c Config) withDefaults() Config {
	c.Log = cmp.Or(c.Log, zap.NewNop())
	if c.Now == nil {
		c.Now = time.Now
	}
	c.SessionTimeout = cmp.Or(c.SessionTimeout, 6*time.Second)
	c.ReplicationFactor = cmp.Or(c.ReplicationFactor, -1)
	c.Compression = cmp.Or(c.Compression, "snappy")
	return c
}
