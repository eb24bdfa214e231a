package status

import (
	"crypto/tls"
	"fmt"

	"github.com/storestream/storestream/internal/rotation"
)

// encryption shows the certificate that c's files hold when a client connects: one that was renewed is in use
// at once.
func encryption(c Config) (*tls.Config, error) {
	const section = "http.tls"
	certificate, err := rotation.New(c.Rotation, section, func(texts []string) (*tls.Certificate, error) {
		pair, err := tls.X509KeyPair([]byte(texts[0]), []byte(texts[1]))
		if err != nil {
			return nil, fmt.Errorf("certificate and key cannot be used: %w", err)
		}
		return &pair, nil
	}, rotation.File(c.CertFile), rotation.File(c.KeyFile))
	if err != nil {
		return nil, fmt.Errorf("status server: %s: %w", section, err)
	}
	return &tls.Config{MinVersion: tls.VersionTLS12,
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return certificate.Get(), nil }}, nil
}
