package servers

import (
	"cmp"
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
	"slices"
	"time"
)

// Authority is a certificate authority of a test.
type Authority struct {
	File string // its own certificate, PEM
	Cert *x509.Certificate
	Pool *x509.CertPool // of that alone

	t   TB
	dir string
	key *ecdsa.PrivateKey
}

// CertificateConfig describes a certificate. The zero value is valid now, for 127.0.0.1 and localhost.
type CertificateConfig struct {
	Name                string   // its common name, "server" if empty
	Hosts               []string // names and addresses
	NotBefore, NotAfter time.Time
}

// Certificate is a certificate with its key.
type Certificate struct {
	CertFile, KeyFile string // PEM
	KeyStore          string // both in one file, as Apache Kafka reads them
	Pair              tls.Certificate
}

// AuthorityForTest makes an authority, whose certificates stand in dir, a folder that ends with the test.
func AuthorityForTest(t TB, dir string) *Authority {
	t.Helper()
	a := &Authority{t: t, dir: dir, Pool: x509.NewCertPool()}
	own := a.Issue(CertificateConfig{Name: "authority", NotAfter: time.Now().Add(90 * 24 * time.Hour)})
	a.File, a.Cert, a.key = own.CertFile, own.Pair.Leaf, own.Pair.PrivateKey.(*ecdsa.PrivateKey)
	a.Pool.AddCert(a.Cert)
	return a
}

// Issue signs a certificate, for servers and clients. Its files replace those of an earlier one of that name.
func (a *Authority) Issue(c CertificateConfig) Certificate {
	a.t.Helper()
	text := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()),
		Subject:      pkix.Name{CommonName: cmp.Or(c.Name, "server")},
		NotBefore:    time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
		KeyUsage:    x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		IsCA:        a.Cert == nil, BasicConstraintsValid: true,
	}
	if !c.NotBefore.IsZero() {
		text.NotBefore = c.NotBefore
	}
	if !c.NotAfter.IsZero() {
		text.NotAfter = c.NotAfter
	}
	if c.Hosts == nil {
		c.Hosts = []string{host, "localhost"}
	}
	for _, h := range c.Hosts {
		if ip := net.ParseIP(h); ip != nil {
			text.IPAddresses = append(text.IPAddresses, ip)
		} else {
			text.DNSNames = append(text.DNSNames, h)
		}
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	a.must(err)
	parent, signer := a.Cert, a.key
	if parent == nil {
		parent, signer = text, key
	}
	der, err := x509.CreateCertificate(rand.Reader, text, parent, &key.PublicKey, signer)
	a.must(err)
	private, err := x509.MarshalPKCS8PrivateKey(key)
	a.must(err)
	name, cert := text.Subject.CommonName, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	secret := pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private})
	made := Certificate{CertFile: a.write(name+".crt", cert), KeyFile: a.write(name+".key", secret),
		KeyStore: a.write(name+".pem", slices.Concat(secret, cert))}
	made.Pair, err = tls.LoadX509KeyPair(made.CertFile, made.KeyFile)
	a.must(err)
	return made
}

// Files returns the content of a client's folder: ca (the authority that it trusts), and cert and key of its
// own certificate.
func (a *Authority) Files(own Certificate) map[string]string {
	a.t.Helper()
	texts := map[string]string{}
	for name, path := range map[string]string{"ca": a.File, "cert": own.CertFile, "key": own.KeyFile} {
		text, err := os.ReadFile(path)
		a.must(err)
		texts[name] = string(text)
	}
	return texts
}

func (a *Authority) write(name string, text []byte) string {
	a.t.Helper()
	path := filepath.Join(a.dir, name)
	a.must(os.WriteFile(path, text, 0o600))
	return path
}

func (a *Authority) must(err error) {
	a.t.Helper()
	if err != nil {
		a.t.Fatalf("certificate authority: %v", err)
	}
}
