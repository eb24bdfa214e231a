package main

import (
	"context"
	"net/url"
	"path/filepath"

	"github.com/storestream/storestream/internal/standins/servers"
	"github.com/storestream/storestream/internal/standins/storefake"
)

const (
	databaseName   = "postgres"
	readerPassword = "student" // it guards invented rows on 127.0.0.1
)

// pooler is PgBouncer with a proxy before it.
type pooler struct {
	proxy   *proxy
	bouncer *servers.PgBouncer
}

func startPooler(ctx context.Context, p *servers.Postgres, dir string) (*pooler, error) {
	bouncer, err := servers.StartPgBouncer(ctx, servers.PgBouncerConfig{
		Postgres: p, Users: map[string]string{storefake.ReaderRole: readerPassword},
		Dir: filepath.Join(dir, "pgbouncer"),
	})
	if err != nil {
		return nil, err
	}
	ports, err := servers.FreePorts(1)
	if err != nil {
		return nil, err
	}
	front, err := newProxy("PgBouncer", ports[0], address(bouncer.Port))
	return &pooler{proxy: front, bouncer: bouncer}, err
}

// dsn is the DSN by which storestream reads, through the proxy.
func (p *pooler) dsn() string {
	u := url.URL{Scheme: "postgres", User: url.UserPassword(storefake.ReaderRole, readerPassword),
		Host: p.proxy.address(), Path: "/" + databaseName,
		RawQuery: "sslmode=disable"}
	return u.String()
}

func (p *pooler) stop() error {
	p.proxy.close()
	return p.bouncer.Stop()
}
