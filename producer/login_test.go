package producer_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"

	"github.com/storestream/storestream/internal/servers"
	"github.com/storestream/storestream/producer"
)

const secret = "correct horse battery staple"

// authority is a certificate authority, whose certificates stand in a folder of the test.
type authority struct {
	t    *testing.T
	dir  string
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	file string
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	a := &authority{t: t, dir: t.TempDir()}
	a.cert, a.key, a.file, _ = a.issue("authority")
	return a
}

// issue signs a certificate for name, which is also good for 127.0.0.1; the authority's own is the first.
func (a *authority) issue(name string) (
	cert *x509.Certificate, key *ecdsa.PrivateKey, certFile, keyFile string) {
	a.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		a.t.Fatal(err)
	}
	text := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
		KeyUsage:    x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		IsCA:        a.cert == nil, BasicConstraintsValid: true,
	}
	parent, signer := a.cert, a.key
	if parent == nil {
		parent, signer = text, key
	}
	der, err := x509.CreateCertificate(rand.Reader, text, parent, &key.PublicKey, signer)
	if err != nil {
		a.t.Fatal(err)
	}
	if cert, err = x509.ParseCertificate(der); err != nil {
		a.t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		a.t.Fatal(err)
	}
	return cert, key, a.write(name+".crt", "CERTIFICATE", der), a.write(name+".key", "PRIVATE KEY", private)
}

func (a *authority) write(name, kind string, der []byte) string {
	a.t.Helper()
	path := filepath.Join(a.dir, name)
	if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
		a.t.Fatal(err)
	}
	return path
}

// behindLogin is a stage whose broker speaks TLS alone, asks for a client's certificate, and for a name and a
// password.
func behindLogin(t *testing.T, a *authority, mechanism string) *stage {
	t.Helper()
	_, _, cert, key := a.issue("broker")
	pair, err := tls.LoadX509KeyPair(cert, key)
	if err != nil {
		t.Fatal(err)
	}
	trusted := x509.NewCertPool()
	trusted.AddCert(a.cert)
	broker := servers.BrokerForTest(t, servers.BrokerConfig{Options: []kfake.Opt{
		kfake.TLS(&tls.Config{Certificates: []tls.Certificate{pair}, ClientAuth: tls.RequireAndVerifyClientCert,
			ClientCAs: trusted, MinVersion: tls.VersionTLS12}),
		kfake.EnableSASL(), kfake.Superuser(mechanism, "poller", secret),
	}})
	return setUp(t, broker, broker.Brokers())
}

// Every connection goes the guarded way: of the takeover, of transactions, of reading the log back, of the
// group and of the requests.
func TestABrokerBehindTLSAndAPasswordIsWrittenToAndReadFrom(t *testing.T) {
	for _, mechanism := range []string{"PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"} {
		t.Run(mechanism, func(t *testing.T) {
			a, l := newAuthority(t), newLedger(t)
			s := behindLogin(t, a, mechanism)
			_, _, cert, key := a.issue("storestream")
			login := func(c *producer.Config) {
				c.TLS = producer.TLS{Enabled: true, CAFile: a.file, CertFile: cert, KeyFile: key}
				c.SASL = producer.SASL{Mechanism: mechanism, Username: "poller", Password: secret}
			}
			cluster := s.cluster("a", login)
			l.run(cluster, "a")
			l.await("a alone", l.everythingOwned("a"))
			session := s.take(cluster)
			s.commit(session, next(session, s.order(1, "2026-11-20T10:00:00Z", "Shipped")))
			if seen := s.rebuilt(s.take(s.cluster("b", login))); len(seen) != 1 || seen[1].ID != 1 {
				t.Errorf("read back %+v, expected order 1", seen)
			}
			if _, err := cluster.Requests().Ask(s.ctx(), sweepOf("users")); err != nil {
				t.Error(err)
			}
			if err := cluster.Requests().CatchUp(s.ctx()); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestALoginThatTheBrokerRefusesIsSaidWithoutThePassword(t *testing.T) {
	a := newAuthority(t)
	s := behindLogin(t, a, "PLAIN")
	_, _, cert, key := a.issue("storestream")
	stranger := newAuthority(t)
	good := producer.Config{TLS: producer.TLS{Enabled: true, CAFile: a.file, CertFile: cert, KeyFile: key},
		SASL: producer.SASL{Mechanism: "PLAIN", Username: "poller", Password: secret}}
	for name, wrong := range map[string]struct {
		change func(*producer.Config)
		says   string
	}{
		"another password":      {func(c *producer.Config) { c.SASL.Password += "r" }, "kafka.sasl may not be"},
		"authority not trusted": {func(c *producer.Config) { c.TLS.CAFile = stranger.file }, "unknown authority"},
	} {
		err := s.cluster("a", func(c *producer.Config) {
			c.TLS, c.SASL = good.TLS, good.SASL
			wrong.change(c)
		}).Ping(s.ctx())
		if wantText(t, err, wrong.says); strings.Contains(err.Error(), secret) {
			t.Errorf("%s: %v contains the password", name, err)
		}
	}
}
