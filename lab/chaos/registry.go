package main

import (
	"context"
	"net/url"
	"path/filepath"

	"github.com/storestream/storestream/internal/standins/servers"
)

// registry is the schema registry that storestream reaches through a proxy, and the harness past it.
type registry struct {
	proxy    *proxy
	embedded *servers.Registry // nil if the registry is Apicurio
	direct   string            // the URL past the proxy
	stop     func() error
}

func startRegistry(ctx context.Context, kind, dir string) (*registry, error) {
	r := &registry{}
	if kind == apicurio {
		a, err := servers.StartApicurio(ctx, servers.ApicurioConfig{Dir: filepath.Join(dir, "apicurio")})
		if err != nil {
			return nil, err
		}
		r.direct, r.stop = a.URL(), a.Stop
	} else {
		e, err := servers.StartRegistry(0)
		if err != nil {
			return nil, err
		}
		r.embedded, r.direct, r.stop = e, e.URL, e.Stop
	}
	ports, err := servers.FreePorts(1)
	if err != nil {
		return nil, err
	}
	at, err := url.Parse(r.direct)
	if err != nil {
		return nil, err
	}
	r.proxy, err = newProxy("registry", ports[0], at.Host)
	return r, err
}

// url is the address through the proxy.
func (r *registry) url() string {
	at, err := url.Parse(r.direct)
	if err != nil {
		return r.direct // it was parsed before
	}
	at.Host = r.proxy.address()
	return at.String()
}
