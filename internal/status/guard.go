package status

import (
	"crypto/sha256"
	"crypto/subtle"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/storestream/storestream/internal/rotation"
)

// guard decides which requests are answered, before anything else sees them.
type guard struct {
	hosts []string        // lower case; "*": any
	token rotation.Secret // none: pages are open
}

// newGuard knows the names in hosts, and the name in addr, as in "status.shop.example:8080".
func newGuard(addr string, hosts []string, token rotation.Secret) *guard {
	g := &guard{token: token}
	host, _, _ := net.SplitHostPort(addr)
	for _, name := range append([]string{host}, hosts...) {
		if ip, err := netip.ParseAddr(hostname(name)); err != nil || !ip.IsUnspecified() {
			g.hosts = append(g.hosts, hostname(name))
		}
	}
	return g
}

// refuses answers requests that no proper reader sends: with a body, or with the name of another host. It
// never repeats a part of the request. It reports whether it has answered.
func (g *guard) refuses(w http.ResponseWriter, r *http.Request) bool {
	switch {
	case r.ContentLength != 0:
		w.Header().Set("Connection", "close")
		// net/http reads the rest of a body before it releases a connection.
		_ = http.NewResponseController(w).SetReadDeadline(time.Unix(1, 0))
		answer(w, http.StatusRequestEntityTooLarge, "expected a request without a body")
	case !g.knows(r):
		answer(w, http.StatusMisdirectedRequest, "this server is not known by the name in the request's Host: "+
			"use its address, or add the name to http.hosts")
	default:
		return false
	}
	return true
}

// asksForToken answers a request for a page whose sender does not have the token. It reports whether it has
// answered.
func (g *guard) asksForToken(w http.ResponseWriter, r *http.Request) bool {
	if g.admits(r) {
		return false
	}
	// A browser asks for a name and a password by the second one, and sends them with the page's own requests.
	w.Header().Add("WWW-Authenticate", `Bearer realm="storestream"`)
	w.Header().Add("WWW-Authenticate", `Basic realm="storestream", charset="UTF-8"`)
	answer(w, http.StatusUnauthorized, "expected http.token: as a bearer token, or as any user's password")
	return true
}

// admits reports whether the sender of r may read the pages.
func (g *guard) admits(r *http.Request) bool { return !g.token.IsSet() || g.hasToken(r) }

// knows reports whether the request's Host is a name of this server. If the name of another site was pointed
// at this server (DNS rebinding), its page sends that name, and runs in a browser behind the firewall.
func (g *guard) knows(r *http.Request) bool {
	host := hostname(r.Host)
	switch {
	case host == "": // HTTP/1.0, which no browser speaks: probes of old load balancers
		return true
	case host == "localhost", slices.Contains(g.hosts, host), slices.Contains(g.hosts, "*"):
		return true
	}
	ip, err := netip.ParseAddr(host)
	own, _ := netip.ParseAddrPort(fmt.Sprint(r.Context().Value(http.LocalAddrContextKey)))
	return err == nil && (ip.Unmap().IsLoopback() || ip.Unmap() == own.Addr().Unmap())
}

// trusts reports whether the sender of r may see the hosts, users and databases that an error names. Senders
// with the token may, and those on this machine.
func (g *guard) trusts(r *http.Request) bool {
	if g.hasToken(r) {
		return true
	}
	remote, err := netip.ParseAddrPort(r.RemoteAddr)
	return err == nil && remote.Addr().Unmap().IsLoopback()
}

// hasToken compares hashes, so that its duration does not reveal the token or its length. While the token's
// file cannot be used, it returns false.
func (g *guard) hasToken(r *http.Request) bool {
	token, err := g.token.Current()
	if err != nil || !g.token.IsSet() {
		return false
	}
	_, given, basic := r.BasicAuth()
	if scheme, rest, ok := strings.Cut(r.Header.Get("Authorization"), " "); !basic && ok &&
		strings.EqualFold(scheme, "Bearer") {
		given = strings.TrimSpace(rest)
	}
	expected, got := sha256.Sum256([]byte(token)), sha256.Sum256([]byte(given))
	return subtle.ConstantTimeCompare(expected[:], got[:]) == 1
}

// hostname is a Host without its port, the brackets of an IPv6 address and the dot of a whole name.
func hostname(host string) string {
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	host = strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
	return strings.ToLower(strings.TrimSuffix(host, "."))
}
