package config

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
)

// try reads the files that t names, and names the key that is at fault.
func (t TLS) try() (key string, err error) {
	if t.CAFile != "" {
		pem, err := os.ReadFile(t.CAFile)
		if err != nil {
			return "kafka.tls.ca_file", fmt.Errorf("the file cannot be read: %w", fileError(err))
		}
		if !x509.NewCertPool().AppendCertsFromPEM(pem) {
			return "kafka.tls.ca_file", errors.New("expected certificates in PEM form, found none")
		}
	}
	if t.CertFile != "" && t.KeyFile != "" {
		if _, err := tls.LoadX509KeyPair(t.CertFile, t.KeyFile); err != nil {
			return "kafka.tls.cert_file", fmt.Errorf("certificate and key cannot be used: %w", err)
		}
	}
	return "", nil
}
