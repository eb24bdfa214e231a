// Package tlsfile makes the TLS side of a client from the files that a configuration names, and names those
// files if a handshake fails because of a certificate.
package tlsfile
