package tlsfile

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
)

// HandshakeError is a certificate that one side does not accept.
type HandshakeError struct {
	Section string // of the settings that name the certificates
	Err     error
}

func (e *HandshakeError) Error() string {
	return fmt.Sprintf("%v: check %s, and the server's certificate", e.Err, e.Section)
}

// Unwrap returns crypto/tls's error.
func (e *HandshakeError) Unwrap() error { return e.Err }

// Explain turns the error of a handshake that failed because of a certificate into a *HandshakeError. It
// returns any other error as it is, nil too.
func (f Files) Explain(err error) error {
	var op *net.OpError
	refused := errors.As(err, &op) && op.Op == "remote error" // an alert of the other side
	if refused || errors.As(err, new(x509.CertificateInvalidError)) || errors.As(err, new(x509.HostnameError)) ||
		errors.As(err, new(x509.UnknownAuthorityError)) || errors.As(err, new(tls.RecordHeaderError)) {
		return &HandshakeError{f.Section, err}
	}
	return err
}
