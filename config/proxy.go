package config

import (
	"net/url"
	"strings"

	"github.com/storestream/storestream/internal/rotation"
)

// proxyVariables are those by which net/http finds a proxy.
var proxyVariables = []string{"HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy", "NO_PROXY",
	"no_proxy"}

// proxyVariable is one that is set. Its value may hold a login.
type proxyVariable struct{ name, value string }

// proxiesOf are those among environ, which is as os.Environ gives it.
func proxiesOf(environ []string) []proxyVariable {
	var all []proxyVariable
	for _, name := range proxyVariables {
		for _, e := range environ {
			if value, given := strings.CutPrefix(e, name+"="); given && value != "" {
				all = append(all, proxyVariable{name, value})
			}
		}
	}
	return all
}

// address is the proxy's, as net/http reads it; nil: the login and the host cannot be told apart for certain,
// or it is a list of hosts.
func (p proxyVariable) address() *url.URL {
	u, err := url.Parse(p.value)
	if err != nil || u.Scheme == "" || u.Host == "" {
		u, err = url.Parse("http://" + p.value)
	}
	if err != nil || u.User == nil || strings.Trim(u.Path, "/") != "" || u.RawQuery != "" || u.Fragment != "" {
		return nil
	}
	return u
}

// shown is the value without the login. A password with a / # ? or @ in it moves the borders of a URL, and
// then nothing of it is shown.
func (p proxyVariable) shown() string {
	if !strings.Contains(p.value, "@") {
		return p.value
	}
	if u := p.address(); u != nil && strings.Count(p.value, "@") == 1 {
		return u.Scheme + "://" + rotation.Mask + "@" + u.Host
	}
	return rotation.Mask
}

// user is whose login it is; "": nobody's that is known.
func (p proxyVariable) user() string {
	if u := p.address(); u != nil {
		return u.User.Username()
	}
	return ""
}

// hide hides the login. net/http repeats in an error an address that it cannot read.
func (p proxyVariable) hide(h *rotation.Hidden) {
	if !strings.Contains(p.value, "@") {
		return
	}
	h.Add(p.name+" as a whole", p.value)
	if u := p.address(); u != nil {
		password, _ := u.User.Password()
		h.Add(p.name, password)
	}
}
