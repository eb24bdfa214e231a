// Package loopback recognises addresses of this machine. Only to those may a credential travel unencrypted.
package loopback

import (
	"net/netip"
	"strings"
)

// Is reports whether host, a name or an address without its port, is this machine by its text alone:
// localhost, 127.0.0.0/8 or ::1. It asks no resolver, because a name's address may change.
func Is(host string) bool {
	if strings.EqualFold(host, "localhost") {
		return true
	}
	address, err := netip.ParseAddr(strings.TrimSuffix(strings.TrimPrefix(host, "["), "]"))
	return err == nil && address.Unmap().IsLoopback()
}
