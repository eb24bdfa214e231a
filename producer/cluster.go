package producer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/plugin/kzap"
	"go.uber.org/zap"
)

// Names of the topics that all resources share, without the prefix.
const (
	watermarksTopic = "watermarks"
	requestsTopic   = "requests"
	lettersTopic    = "dead_letters"
)

// Cluster is the Kafka cluster as storestream uses it. It is safe for concurrent use.
type Cluster struct {
	cfg    Config
	log    *zap.Logger
	common []kgo.Opt // of every client: where, and how to sign in

	cl    *kgo.Client // for everything but transactions and the group
	admin *kadm.Client

	mu        sync.Mutex
	pace      map[string]*pace // by resource: outlives sessions, or each new one would walk into the same timeout
	topics    map[string]topicInfo
	requests  *Requests
	closeOnce sync.Once
}

// Open checks cfg and prepares the clients. It does not need the broker to be there: the first call that does waits or says so.
func Open(cfg Config) (*Cluster, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, fmt.Errorf("kafka: %w", err)
	}
	c := &Cluster{cfg: cfg, log: cfg.Log.Named("kafka"), pace: make(map[string]*pace), topics: make(map[string]topicInfo)}
	c.common = []kgo.Opt{
		kgo.SeedBrokers(cfg.Brokers...),
		kgo.ClientID("storestream"),
		// Info of the client is a line for each transaction.
		kgo.WithLogger(clientLog{kzap.New(c.log.Named("client"), kzap.Level(kgo.LogLevelWarn))}),
		// With the default of 5 s, three answers of "I am not the leader" cost 15 s.
		kgo.MetadataMinAge(250 * time.Millisecond),
		kgo.DialTimeout(5 * time.Second),
		kgo.DisableClientMetrics(),
	}
	if cfg.Metrics != nil {
		c.common = append(c.common, kgo.WithHooks(telemetry{cfg.Metrics}))
	}
	if cfg.TLS.Enabled {
		opt, err := cfg.TLS.option()
		if err != nil {
			return nil, fmt.Errorf("kafka: %w", err)
		}
		c.common = append(c.common, opt)
	}
	if cfg.SASL.Mechanism != "" {
		mechanism, err := cfg.SASL.mechanism()
		if err != nil {
			return nil, fmt.Errorf("kafka: %w", err)
		}
		c.common = append(c.common, kgo.SASL(mechanism))
	}
	if c.cl, err = c.client(kgo.RecordDeliveryTimeout(30 * time.Second)); err != nil {
		return nil, err
	}
	c.admin = kadm.NewClient(c.cl)
	c.requests = newRequests(c)
	return c, nil
}

// client makes a client with the common options and opts.
func (c *Cluster) client(opts ...kgo.Opt) (*kgo.Client, error) {
	cl, err := kgo.NewClient(append(append([]kgo.Opt(nil), c.common...), opts...)...)
	if err != nil {
		return nil, fmt.Errorf("kafka client: %w", err)
	}
	return cl, nil
}

// Close ends what Open and the calls since have started. Sessions and memberships are closed by whoever has them.
func (c *Cluster) Close() {
	c.closeOnce.Do(func() {
		c.requests.close()
		c.cl.Close()
	})
}

// Ping asks for an answer from any broker.
func (c *Cluster) Ping(ctx context.Context) error {
	err := c.cl.Ping(ctx)
	if errors.Is(err, io.EOF) { // how brokers refuse a login that they do not understand
		err = fmt.Errorf("it closed the connection (%w): kafka.tls and kafka.sasl may not be what it expects", err)
	}
	if err != nil {
		return fmt.Errorf("kafka %v does not answer: %w", c.cfg.Brokers, err)
	}
	return nil
}

// Requests gives access to the topic of requests.
func (c *Cluster) Requests() *Requests { return c.requests }

// Topic is the name of the data topic of a resource.
func (c *Cluster) Topic(resource string) string { return c.cfg.TopicPrefix + resource }

// Watermarks is the name of the watermark topic.
func (c *Cluster) Watermarks() string { return c.cfg.TopicPrefix + watermarksTopic }

// RequestsTopic is the name of the topic of requests.
func (c *Cluster) RequestsTopic() string { return c.cfg.TopicPrefix + requestsTopic }

// DeadLetters is the name of the topic of what cannot be published.
func (c *Cluster) DeadLetters() string { return c.cfg.TopicPrefix + lettersTopic }

// transactionalID belongs to the topic, whatever the group: two deployments that write the same topics fence each other instead
// of mixing.
func (c *Cluster) transactionalID(resource string) string {
	return "storestream-" + c.cfg.TopicPrefix + resource
}
