package tlsfile

import (
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"
)

// HandshakeError is a certificate that one side does not accept.
type HandshakeError struct {
	Says string // what is wrong, and what to do
	Err  error
}

func (e *HandshakeError) Error() string { return e.Says }

// Unwrap returns what crypto/tls said.
func (e *HandshakeError) Unwrap() error { return e.Err }

// Explain turns an error of a connection whose handshake failed for a certificate into a *HandshakeError. It
// returns any other as it is, nil too.
func (f Files) Explain(err error) error {
	if errors.As(err, new(*HandshakeError)) {
		return err
	}
	var invalid x509.CertificateInvalidError
	var name x509.HostnameError
	var unknown x509.UnknownAuthorityError
	var plain tls.RecordHeaderError
	var op *net.OpError
	var says string
	switch {
	case errors.As(err, &invalid):
		says = f.invalid(invalid)
	case errors.As(err, &name):
		says = fmt.Sprintf("its certificate is for %s and not for %s: connect by a name that is in it, or have "+
			"one made with this name", names(name.Certificate), name.Host)
	case errors.As(err, &unknown):
		says = fmt.Sprintf("its certificate (%s) is signed by %s, which is not trusted: set %s to "+
			"the certificates of who signs it", subject(unknown.Cert), issuer(unknown.Cert), f.authorities())
	case errors.As(err, &plain):
		says = fmt.Sprintf("it does not speak TLS (%s): is this the port for TLS?", plain.Msg)
	case errors.As(err, &op) && op.Op == "remote error":
		// How crypto/tls marks an alert of the other side. The alert's own type is not exported.
		says = fmt.Sprintf("it ended the handshake (%v): %s", op.Err, f.asked())
	default:
		return err
	}
	return &HandshakeError{Says: says, Err: err}
}

func (f Files) invalid(e x509.CertificateInvalidError) string {
	if e.Reason != x509.Expired {
		return fmt.Sprintf("the certificate of %s cannot be used (%v): its owner has to replace it",
			subject(e.Cert), e)
	}
	if now := time.Now(); now.Before(e.Cert.NotBefore) {
		return fmt.Sprintf("the certificate of %s is valid from %s on, and here it is %s: is this machine's "+
			"clock right?", subject(e.Cert), date(e.Cert.NotBefore), date(now))
	}
	return fmt.Sprintf("the certificate of %s expired on %s: its owner has to renew it", subject(e.Cert),
		date(e.Cert.NotAfter))
}

// authorities is the setting that says who is trusted.
func (f Files) authorities() string {
	if f.Section == DSN {
		return "sslrootcert in " + DSN
	}
	return f.Section + ".ca_file"
}

// asked says what the other side may expect of our certificate.
func (f Files) asked() string {
	if f.Section == DSN {
		return "does it ask for a client's certificate, and trust who signed the one that sslcert in " + DSN +
			" names?"
	}
	if f.CertFile == "" {
		return fmt.Sprintf("it may ask for a client's certificate: set %s.cert_file and %s.key_file", f.Section,
			f.Section)
	}
	return fmt.Sprintf("does it trust who signed the certificate in %s.cert_file?", f.Section)
}

// expired is an error where our own certificate has.
func (f Files) expired(own *x509.Certificate) error {
	if time.Now().Before(own.NotAfter) {
		return nil
	}
	says := fmt.Sprintf("the server asks for a certificate, and the one in %s.cert_file expired on %s: renew it",
		f.Section, date(own.NotAfter))
	return &HandshakeError{Says: says, Err: x509.CertificateInvalidError{Cert: own, Reason: x509.Expired}}
}

func date(t time.Time) string { return t.UTC().Format("2006-01-02 15:04 UTC") }

// subject is what a certificate is known by, quoted: the text is somebody else's.
func subject(c *x509.Certificate) string {
	if c == nil {
		return "the server"
	}
	return fmt.Sprintf("%q", cmp.Or(c.Subject.CommonName, names(c)))
}

func issuer(c *x509.Certificate) string {
	if c == nil {
		return "somebody"
	}
	return fmt.Sprintf("%q", cmp.Or(c.Issuer.CommonName, c.Issuer.String()))
}

// names are those that a certificate is good for, the first few.
func names(c *x509.Certificate) string {
	const most = 5
	all := append([]string(nil), c.DNSNames...)
	for _, ip := range c.IPAddresses {
		all = append(all, ip.String())
	}
	switch {
	case len(all) == 0:
		return "no name"
	case len(all) > most:
		all = append(all[:most], "others")
	}
	return strings.Join(all, ", ")
}
