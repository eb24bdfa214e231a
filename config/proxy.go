package config

import (
	"maps"
	"net/url"
	"slices"
	"strings"

	"github.com/storestream/storestream/internal/rotation"
)

// proxiesOf returns the values of the variables by which net/http finds a proxy, by name.
func proxiesOf(environ []string) map[string]string {
	all := map[string]string{}
	for _, variable := range environ {
		switch name, value, _ := strings.Cut(variable, "="); strings.ToUpper(name) {
		case "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY":
			if value != "" {
				all[name] = value
			}
		}
	}
	return all
}

// Proxies returns the variables in force that name a proxy for requests to the service, the registry and the
// token endpoint.
func (c *Config) Proxies() []Entry {
	var entries []Entry
	for _, name := range slices.Sorted(maps.Keys(c.proxies)) {
		entries = append(entries, Entry{Key: name, Value: maskURL(c.proxies[name]), From: "environment " + name})
	}
	return entries
}

// proxyLogin returns the login in a proxy's address, or nil.
func proxyLogin(address string) *url.Userinfo {
	if !strings.Contains(address, "://") {
		address = "http://" + address
	}
	u, err := url.Parse(address)
	if err != nil {
		return nil
	}
	return u.User
}

// maskURL returns text without the user, the password, the query and the fragment of a URL. A / in a password
// moves the borders of the URL, so a URL with an @ after the host is masked as a whole.
func maskURL(text string) string {
	scheme, rest, ok := strings.Cut(text, "://")
	if !ok {
		if at := strings.LastIndex(text, "@"); at >= 0 && strings.Contains(text[:at], ":") {
			return rotation.Mask // user:password@host, without its scheme
		}
		return text
	}
	where := rest
	if i := strings.IndexAny(rest, "/?#"); i >= 0 {
		where = rest[:i]
	}
	path := rest[len(where):]
	if strings.Count(where, "@") > 1 || strings.Contains(path, "@") {
		return rotation.Mask
	}
	if _, host, found := strings.Cut(where, "@"); found {
		where = rotation.Mask + "@" + host
	}
	if i := strings.IndexAny(path, "?#"); i >= 0 {
		path = path[:i+1] + rotation.Mask
	}
	return scheme + "://" + where + path
}
