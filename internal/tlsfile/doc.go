// Package tlsfile makes the TLS side of a client from the files that a configuration names, and says of a
// handshake that failed what is wrong with which certificate, and what to do about it.
package tlsfile
