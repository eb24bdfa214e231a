package config

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
)

// Client is what a Kafka client takes; nil where TLS is off. Load has tried the files already, so it fails only when they have changed
// since.
func (t TLS) Client() (*tls.Config, error) {
	if !t.Enabled {
		return nil, nil
	}
	c := &tls.Config{MinVersion: tls.VersionTLS12, InsecureSkipVerify: t.InsecureSkipVerify} //nolint:gosec // the user's choice, named for what it is
	if key, err := t.load(c); err != nil {
		return nil, fmt.Errorf("%s: %w", key, err)
	}
	return c, nil
}

// load reads the files into c (nil: only tries them), and names the key that is at fault.
func (t TLS) load(c *tls.Config) (key string, err error) {
	if c == nil {
		c = &tls.Config{MinVersion: tls.VersionTLS12}
	}
	if t.CAFile != "" {
		pem, err := os.ReadFile(t.CAFile)
		if err != nil {
			return "kafka.tls.ca_file", fmt.Errorf("the file cannot be read: %w", fileError(err))
		}
		c.RootCAs = x509.NewCertPool()
		if !c.RootCAs.AppendCertsFromPEM(pem) {
			return "kafka.tls.ca_file", errors.New("expected certificates in PEM form, found none")
		}
	}
	if t.CertFile != "" && t.KeyFile != "" {
		pair, err := tls.LoadX509KeyPair(t.CertFile, t.KeyFile)
		if err != nil {
			return "kafka.tls.cert_file", fmt.Errorf("certificate and key cannot be used: %w", err)
		}
		c.Certificates = []tls.Certificate{pair}
	}
	return "", nil
}
