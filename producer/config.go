package producer

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl/plain"
	"github.com/twmb/franz-go/pkg/sasl/scram"
	"go.uber.org/zap"

	"github.com/storestream/storestream/internal/metrics"
	"github.com/storestream/storestream/schemas/registry"
)

// Config says which cluster, and how this instance behaves in it.
type Config struct {
	Brokers           []string // host:port
	TopicPrefix       string   // "store.": the data topic of orders is store.orders
	Partitions        int32    // of topics that we create
	ReplicationFactor int16    // of topics that we create; -1: the broker's default
	Group             string   // the consumer group whose members share the resources
	Instance          string   // names this process in watermarks and in the group
	TLS               TLS
	SASL              SASL
	Registry          *registry.Client
	AutoRegister      bool // register schemas that the registry does not have
	Log               *zap.Logger
	Metrics           *metrics.Kafka // of the clients; nil: nothing is counted
	// Now is the clock; nil: time.Now.
	Now func() time.Time
	// TransactionTimeout is how long the broker lets a transaction stay open; 0: 60 s. A broker refuses more
	// than its transaction.max.timeout.ms (15 minutes by default). It is also how long a crash here can hide
	// newer watermarks of other resources.
	TransactionTimeout time.Duration
	// SessionTimeout is how long the group waits for a sign of life of an instance before it hands its resources
	// on; 0: 6 s. A broker refuses less than its group.min.session.timeout.ms (6 s by default) and more than its
	// group.max.session.timeout.ms (30 minutes). A takeover after kill -9 took 5.5 s with 6 s.
	SessionTimeout time.Duration
}

// TLS of the connections to the brokers. Without a CA file the system's authorities are trusted.
type TLS struct {
	Enabled            bool
	CAFile             string // PEM
	CertFile, KeyFile  string // PEM, of a client certificate; both or none
	InsecureSkipVerify bool
}

// SASL of the connections to the brokers. Mechanism is empty (none), PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512.
type SASL struct {
	Mechanism, Username, Password string
}

// withDefaults fills in what may be left out. Its error says everything that is wrong with the rest.
func (c Config) withDefaults() (Config, error) {
	if c.Log == nil {
		c.Log = zap.NewNop()
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.TransactionTimeout == 0 {
		c.TransactionTimeout = time.Minute
	}
	if c.SessionTimeout == 0 {
		c.SessionTimeout = 6 * time.Second
	}
	if c.ReplicationFactor == 0 {
		c.ReplicationFactor = -1
	}
	var wrong []error
	expect := func(holds bool, format string, values ...any) {
		if !holds {
			wrong = append(wrong, fmt.Errorf(format, values...))
		}
	}
	expect(len(c.Brokers) > 0, "no brokers: expected at least one host:port")
	expect(c.Partitions > 0, "partitions is %d: expected 1 or more", c.Partitions)
	expect(c.Group != "", "the group is empty: expected the name of a consumer group")
	expect(c.Instance != "", "the instance has no name")
	expect(c.TransactionTimeout >= time.Second,
		"the transaction timeout is %s: expected 1s or more", c.TransactionTimeout)
	expect(c.SessionTimeout >= time.Second, "the session timeout is %s: expected 1s or more", c.SessionTimeout)
	expect(!strings.ContainsFunc(c.TopicPrefix, notInTopicNames),
		"topic prefix %q: a topic's name holds letters, digits, '.', '_' and '-'", c.TopicPrefix)
	return c, errors.Join(wrong...)
}

func notInTopicNames(r rune) bool {
	return !strings.ContainsRune("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-", r)
}

// options are those of a client that connects so; none where it is not enabled.
func (t TLS) options() ([]kgo.Opt, error) {
	if !t.Enabled {
		return nil, nil
	}
	conf := &tls.Config{
		MinVersion:         tls.VersionTLS12,
		InsecureSkipVerify: t.InsecureSkipVerify, //nolint:gosec // asked for by name in the configuration
	}
	if t.CAFile != "" {
		pem, err := os.ReadFile(t.CAFile)
		if err != nil {
			return nil, fmt.Errorf("reading the certificate authority: %w", err)
		}
		conf.RootCAs = x509.NewCertPool()
		if !conf.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("certificate authority %s: expected certificates in PEM form, found none", t.CAFile)
		}
	}
	if t.CertFile != "" || t.KeyFile != "" {
		pair, err := tls.LoadX509KeyPair(t.CertFile, t.KeyFile)
		if err != nil {
			return nil, fmt.Errorf("client certificate %q with key %q: %w", t.CertFile, t.KeyFile, err)
		}
		conf.Certificates = []tls.Certificate{pair}
	}
	return []kgo.Opt{kgo.DialTLSConfig(conf)}, nil
}

// options are those of a client that signs in so; none without a mechanism.
func (s SASL) options() ([]kgo.Opt, error) {
	scram := scram.Auth{User: s.Username, Pass: s.Password}
	switch strings.ToUpper(s.Mechanism) {
	case "":
		return nil, nil
	case "PLAIN":
		return []kgo.Opt{kgo.SASL(plain.Auth{User: s.Username, Pass: s.Password}.AsMechanism())}, nil
	case "SCRAM-SHA-256":
		return []kgo.Opt{kgo.SASL(scram.AsSha256Mechanism())}, nil
	case "SCRAM-SHA-512":
		return []kgo.Opt{kgo.SASL(scram.AsSha512Mechanism())}, nil
	}
	return nil, fmt.Errorf("sasl mechanism %q: expected PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512", s.Mechanism)
}
