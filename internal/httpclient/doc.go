// Package httpclient makes the HTTP clients of storestream: for the service, the schema registry and the
// endpoint of tokens. Only their TLS files and timeouts differ.
package httpclient
