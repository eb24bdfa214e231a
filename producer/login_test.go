package producer_test

import (
	"context"
	"crypto/tls"
	"fmt"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kfake"

	"github.com/storestream/storestream/internal/rotation"
	"github.com/storestream/storestream/internal/standins/servers"
	"github.com/storestream/storestream/internal/tlsfile"
	"github.com/storestream/storestream/producer"
	"github.com/storestream/storestream/schemas"
)

const secret = "correct horse battery staple"

// behindLogin is a stage whose broker speaks TLS alone, asks for a client's certificate, and for a name and a
// password; and how to get in.
func behindLogin(t *testing.T, mechanism string) (*stage, tlsfile.Files, producer.SASL) {
	t.Helper()
	a := servers.AuthorityForTest(t, t.TempDir())
	broker := servers.BrokerForTest(t, servers.BrokerConfig{Options: []kfake.Opt{
		kfake.TLS(&tls.Config{Certificates: []tls.Certificate{a.Issue(servers.CertificateConfig{}).Pair},
			ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: a.Pool, MinVersion: tls.VersionTLS12}),
		kfake.EnableSASL(), kfake.Superuser(mechanism, "poller", secret),
	}})
	own := a.Issue(servers.CertificateConfig{Name: "storestream"})
	return setUp(t, broker, broker.Brokers()),
		tlsfile.Files{Section: "kafka.tls", CAFile: a.File, CertFile: own.CertFile, KeyFile: own.KeyFile},
		producer.SASL{Mechanism: mechanism, Username: "poller", Password: rotation.Literal(secret)}
}

func opened(t *testing.T, files tlsfile.Files) *tlsfile.Client {
	t.Helper()
	client, err := files.Open(nil)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// everything is what run, sweep, verify and watermark reset do with Kafka. It ends with the first that fails.
func (s *stage) everything(ctx context.Context, c *producer.Cluster) error {
	session, err := producer.Take(ctx, c, s.orders())
	if err != nil {
		return fmt.Errorf("taking over: %w", err)
	}
	defer session.Close()
	if err := session.Commit(ctx, next(session, s.order(1, "2026-11-20T10:00:00Z", "Shipped"))); err != nil {
		return fmt.Errorf("publishing: %w", err)
	}
	if _, err := c.Requests().Ask(ctx, sweepOf("orders")); err != nil {
		return fmt.Errorf("asking for a sweep: %w", err)
	}
	return reads(ctx, c)
}

// reads is what the commands that change nothing do with Kafka. It ends with the first that fails.
func reads(ctx context.Context, c *producer.Cluster) error {
	if _, _, err := producer.ReadWatermarks(ctx, c); err != nil {
		return fmt.Errorf("reading watermarks: %w", err)
	}
	if _, err := producer.ReadDeadLetters(ctx, c, "orders"); err != nil {
		return fmt.Errorf("reading dead letters: %w", err)
	}
	set, err := schemas.Load("")
	if err != nil {
		return err
	}
	if err := producer.SameSchemas(ctx, c, set.Get("orders")); err != nil {
		return fmt.Errorf("reading rows: %w", err)
	}
	if err := c.Requests().CatchUp(ctx); err != nil {
		return fmt.Errorf("reading requests: %w", err)
	}
	if _, err := producer.Members(ctx, c); err != nil {
		return fmt.Errorf("who owns what: %w", err)
	}
	return nil
}

// worksBehind has an instance do everything with a login and own all resources, and another read back what it
// wrote.
func (s *stage) worksBehind(login func(*producer.Config)) {
	s.t.Helper()
	cluster, l := s.cluster("a", login), newLedger(s.t)
	l.run(cluster, "a")
	l.await("a alone", l.everythingOwned("a"))
	if err := s.everything(s.ctx(), cluster); err != nil {
		s.t.Error(err)
	}
	if seen := s.rebuilt(s.take(s.cluster("b", login))); len(seen) != 1 || seen[1].ID != 1 {
		s.t.Errorf("read back %+v, expected order 1", seen)
	}
}

// Every connection goes the guarded way: of the takeover, of transactions, of reading the log back, of the
// group and of the requests.
func TestABrokerBehindTLSAndAPasswordIsWrittenToAndReadFrom(t *testing.T) {
	for _, mechanism := range []string{"PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"} {
		t.Run(mechanism, func(t *testing.T) {
			s, files, login := behindLogin(t, mechanism)
			s.worksBehind(func(c *producer.Config) { c.TLS, c.SASL = opened(t, files), login })
		})
	}
}

func TestALoginThatTheBrokerRefusesIsSaidWithoutThePassword(t *testing.T) {
	s, files, login := behindLogin(t, "PLAIN")
	wrong, strange := login, files
	wrong.Password = rotation.Literal(secret + "r")
	strange.CAFile = servers.AuthorityForTest(t, t.TempDir()).File
	for _, c := range []struct {
		files tlsfile.Files
		login producer.SASL
		says  string
	}{
		{files, wrong, "kafka.sasl does not fit its listener"},
		{strange, login, "check kafka.tls, and the server's certificate"},
	} {
		cluster := s.cluster("a", func(p *producer.Config) { p.TLS, p.SASL = opened(t, c.files), c.login })
		err := cluster.Ping(s.ctx())
		if wantText(t, err, c.says); strings.Contains(err.Error(), secret) {
			t.Errorf("%v contains the password", err)
		}
	}
}

// Also where the configuration names brokers of this machine, and they name others: all connections are
// opened in the same way.
func TestAPasswordGoesToNoOtherMachineWithoutTLS(t *testing.T) {
	s := newStage(t)
	c := s.cluster("a", func(c *producer.Config) {
		c.SASL = producer.SASL{Mechanism: "PLAIN", Username: "poller", Password: rotation.Literal(secret)}
		c.Brokers = []string{"192.0.2.7:9092"}
	})
	err := c.Ping(s.ctx())
	wantText(t, err, "192.0.2.7:9092 is another machine", "PLAIN sends its secret unencrypted")
	if strings.Contains(err.Error(), secret) {
		t.Errorf("%v contains the password", err)
	}
}
