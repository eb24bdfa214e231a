package config

import (
	"net/url"
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

// maskURL masks a URL that has a login, a query or a fragment. It masks the whole text, because a / or a ? in
// a password moves the borders of a URL's parts.
func maskURL(text string) string {
	who, _, login := strings.Cut(text, "@")
	if login && strings.Contains(who, ":") || strings.Contains(text, "://") && strings.ContainsAny(text, "?#") {
		return rotation.Mask
	}
	return text
}
