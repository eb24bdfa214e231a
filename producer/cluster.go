package producer

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/plugin/kzap"
	"go.uber.org/zap"
)

// Cluster is the connection to a Kafka cluster: its brokers, the login, the names of its topics, and
// everything that the whole process shares of it. It is safe for concurrent use.
type Cluster struct {
	cfg     Config
	log     *zap.Logger
	options []kgo.Opt // of every client: its brokers and login
	dial    func(ctx context.Context, network, host string) (net.Conn, error)

	cl    *kgo.Client // for everything but transactions, the group and the requests
	admin *kadm.Client
	// decompressor is the client's, which refuses a batch of more than mostUnpacked.
	decompressor kgo.Decompressor
	requests     *Requests
}

// Open prepares the clients. It does not need a broker. The first call that needs one waits or returns an
// error.
func Open(cfg Config) (c *Cluster, err error) {
	cfg = cfg.withDefaults()
	c = &Cluster{cfg: cfg, log: cfg.Log.Named("kafka"), dial: dialing(cfg.TLS, cfg.SASL)}
	c.options = []kgo.Opt{
		kgo.SeedBrokers(cfg.Brokers...),
		kgo.Dialer(c.dial),
		kgo.ClientID("storestream"),
		// Info of the client is a line for each transaction.
		kgo.WithLogger(kzap.New(c.log.Named("client"), kzap.Level(kgo.LogLevelWarn))),
		// With the default of 5 s, three answers of "I am not the leader" cost 15 s.
		kgo.MetadataMinAge(250 * time.Millisecond),
		kgo.MaxDecompressBatchBytes(mostUnpacked),
		kgo.DisableClientMetrics(),
	}
	if cfg.Metrics != nil {
		c.options = append(c.options, kgo.WithHooks(telemetry{cfg.Metrics}))
	}
	c.options = append(c.options, cfg.SASL.options()...)
	if c.cl, err = c.client(kgo.RecordDeliveryTimeout(30*time.Second),
		kgo.RecordPartitioner(kgo.ManualPartitioner())); err != nil {
		return nil, err
	}
	c.admin = kadm.NewClient(c.cl)
	c.decompressor = c.cl.OptValue(kgo.WithDecompressor).(kgo.Decompressor)
	c.requests = newRequests(c)
	return c, nil
}

// client makes a client with the options of every client, and opts.
func (c *Cluster) client(opts ...kgo.Opt) (*kgo.Client, error) {
	cl, err := kgo.NewClient(slices.Concat(c.options, opts)...)
	if err != nil {
		return nil, fmt.Errorf("kafka client: %w", err)
	}
	return cl, nil
}

// Close ends the clients that Open made, and the reading of requests. Sessions and groups have to be closed
// before.
func (c *Cluster) Close() {
	c.requests.close()
	c.cl.Close()
}

// Tool is a command line of one of Kafka's own tools, for this cluster.
func (c *Cluster) Tool(name string, args ...string) string {
	words := []string{name, "--bootstrap-server", strings.Join(c.cfg.Brokers, ",")}
	if c.cfg.TLS != nil || c.cfg.SASL.Mechanism != "" {
		words = append(words, "--command-config", "FILE") // how to log in; only the user has that
	}
	return strings.Join(append(words, args...), " ")
}

// Ping asks for an answer from any broker.
func (c *Cluster) Ping(ctx context.Context) error {
	err := c.cl.Ping(ctx)
	if errors.Is(err, errNoToken) {
		return fmt.Errorf("kafka %v takes no login: %w", c.cfg.Brokers, err)
	}
	if err != nil { // io.EOF: so brokers refuse a login that they do not understand
		return fmt.Errorf("kafka %v does not answer: %w: expected a Kafka broker at kafka.brokers; perhaps "+
			"kafka.tls or kafka.sasl does not fit its listener", c.cfg.Brokers, err)
	}
	return nil
}

// haveTransactions returns a *RefusedError if a broker lacks a request of a transaction. Some services that
// speak Kafka's protocol have none, or sell them apart. No request before the first commit would show that.
func (c *Cluster) haveTransactions(ctx context.Context) error {
	req := kmsg.NewPtrApiVersionsRequest()
	req.ClientSoftwareName, req.ClientSoftwareVersion = "storestream", "0"
	answer, err := req.RequestWith(ctx, c.cl)
	if err == nil {
		err = kerr.ErrorForCode(answer.ErrorCode)
	}
	if err != nil {
		return fmt.Errorf("asking a broker which requests it has: ApiVersions: %w", err)
	}
	lacking := []string{kmsg.InitProducerID.Name(), kmsg.AddPartitionsToTxn.Name(), kmsg.EndTxn.Name()}
	for _, has := range answer.ApiKeys {
		name := kmsg.NameForKey(has.ApiKey)
		lacking = slices.DeleteFunc(lacking, func(key string) bool { return key == name })
	}
	if len(lacking) == 0 {
		return nil
	}
	return &RefusedError{Setting: fmt.Sprintf("the brokers at %s have no transactions: %s in ApiVersions",
		strings.Join(c.cfg.Brokers, ","), strings.Join(lacking, ", ")), Found: "missing",
		Expected: "there, because rows are published in transactions",
		Do:       "set kafka.brokers to brokers that have them, or take a tier of the service that does"}
}

// Requests gives access to the topic of requests.
func (c *Cluster) Requests() *Requests { return c.requests }

// Topic is the name of the data topic of a resource.
func (c *Cluster) Topic(resource string) string { return c.cfg.TopicPrefix + resource }

// Watermarks is the name of the watermark topic.
func (c *Cluster) Watermarks() string { return c.cfg.TopicPrefix + "watermarks" }

// requestsTopic is the name of the topic of requests.
func (c *Cluster) requestsTopic() string { return c.cfg.TopicPrefix + "requests" }

// DeadLetters is the name of the topic of rows that cannot be published.
func (c *Cluster) DeadLetters() string { return c.cfg.TopicPrefix + "dead_letters" }

// transactionalID belongs to the topic and not to the group. So two deployments that write the same topics
// fence each other instead of mixing.
func (c *Cluster) transactionalID(resource string) string { return "storestream-" + c.Topic(resource) }
