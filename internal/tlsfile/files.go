package tlsfile

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"

	"github.com/storestream/storestream/internal/rotation"
)

// Files are the files of one client. The zero value trusts the authorities that the system trusts, and has no
// certificate.
type Files struct {
	// Section is the section of the configuration that names them, such as "kafka.tls".
	Section            string
	CAFile             string // PEM, authorities that sign the servers' certificates; empty: the system's
	AlsoSystem         bool   // the system's authorities count beside those of CAFile
	CertFile, KeyFile  string // PEM, of the client's certificate; both or none
	InsecureSkipVerify bool   // any certificate of a server will do
}

// FileError is a file that cannot be used.
type FileError struct {
	Key string // the last part of the key that names it: ca_file, cert_file or key_file
	Err error  // without the content of the file
}

func (e *FileError) Error() string { return e.Key + ": " + e.Err.Error() }

// Open reads the files, and has them read again whenever a connection is made. rotated, if set, learns of
// changes and of unusable files. A *FileError says which file is unusable now.
func (f Files) Open(rotated *rotation.Set) (*Client, error) {
	switch {
	case f.CertFile != "" && f.KeyFile == "":
		return nil, &FileError{"key_file", errors.New("a certificate is set: expected the file of its key")}
	case f.CertFile == "" && f.KeyFile != "":
		return nil, &FileError{"cert_file", errors.New("a key is set: expected the file of its certificate")}
	}
	c := &Client{Files: f}
	config, err := rotation.New(rotated, f.Section, c.parse, input("cert_file", f.CertFile),
		input("key_file", f.KeyFile), input("ca_file", f.CAFile))
	if err != nil {
		return nil, err
	}
	c.config = config
	return c, nil
}

// input is the text of a file, or "" without one.
func input(key, path string) rotation.Input {
	return func() (string, error) {
		if path == "" {
			return "", nil
		}
		text, err := rotation.File(path)()
		if err != nil {
			err = &FileError{key, err}
		}
		return text, err
	}
}

// parse makes a configuration of the texts of certificate, key and authorities.
func (c *Client) parse(texts []string) (*tls.Config, error) {
	cert, key, authorities := []byte(texts[0]), []byte(texts[1]), []byte(texts[2])
	made := &tls.Config{
		MinVersion:         tls.VersionTLS12,
		InsecureSkipVerify: c.InsecureSkipVerify, //nolint:gosec // asked for by name in the configuration
		VerifyConnection: func(s tls.ConnectionState) error {
			c.shown.Store(&s.PeerCertificates)
			return nil
		},
	}
	if c.CertFile != "" {
		pair, err := tls.X509KeyPair(cert, key)
		if err == nil {
			_, err = Certificates(cert)
		}
		if err != nil {
			return nil, &FileError{"cert_file", fmt.Errorf("certificate and key cannot be used: %w", err)}
		}
		made.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
			return &pair, nil
		}
	}
	if c.CAFile != "" {
		all, err := Certificates(authorities)
		if err != nil {
			return nil, &FileError{"ca_file", err}
		}
		made.RootCAs = x509.NewCertPool()
		if c.AlsoSystem {
			if made.RootCAs, err = x509.SystemCertPool(); err != nil {
				return nil, &FileError{"ca_file", fmt.Errorf("the system's authorities cannot be read: %w", err)}
			}
		}
		for _, one := range all {
			made.RootCAs.AddCert(one)
		}
	}
	return made, nil
}

// Certificates returns the certificates in text, which has PEM form. It fails if one of them cannot be read.
// The standard library leaves that one out. So it would take the first half of a file that a program is still
// writing for the whole file.
func Certificates(text []byte) ([]*x509.Certificate, error) {
	begun := bytes.Count(text, []byte("-----BEGIN CERTIFICATE-----"))
	var all []*x509.Certificate
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		if block.Type != "CERTIFICATE" {
			continue
		}
		one, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, fmt.Errorf("certificate %d of %d cannot be read: %w", len(all)+1, begun, err)
		}
		all = append(all, one)
	}
	if begun == 0 || len(all) < begun {
		return nil, fmt.Errorf("%d certificates begin in it, and %d are whole: expected them in PEM form",
			begun, len(all))
	}
	return all, nil
}
