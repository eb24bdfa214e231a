package preflight

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/storestream/storestream/internal/dsn"
	"github.com/storestream/storestream/internal/rotation"
	"github.com/storestream/storestream/internal/tlsfile"
)

// trySecurity says by the settings which connections are in clear or go to servers that are not verified, and
// who may read the status page and the files with secrets. The parts that connect warn of certificates that
// end soon, and trySecurity of our own.
func trySecurity(_ context.Context, c Config, f *findings) {
	s := c.Settings
	for _, e := range s.Exposed() {
		f.add(Warning, e.Connection, e.Key+": "+e.Remedy(), "to %s %s", strings.Join(e.Hosts, ", "), e.Risk())
	}
	if len(f.all) == 0 {
		f.ok("", "each connection to another machine is encrypted, and its server verified")
	}
	if s.HTTP.InClear() {
		f.add(Warning, "status", "listen on 127.0.0.1, or set http.tls and http.token",
			"the status page at %s, and http.token if it is set, travel in clear beyond this machine", s.HTTP.Listen)
	}
	f.files(c)
}

// files looks at the files that hold our secrets, keys and certificates. The DSN names some, or lies in one.
func (f *findings) files(c Config) {
	inDSN := func(text string) {
		d, _ := dsn.Parse(text) // it was parsed before
		passwords, ok := d.PasswordFile()
		if !ok { // it is the password itself
			passwords = ""
		}
		for _, path := range []string{passwords, d["sslkey"], d["sslcert"]} {
			f.file("postgres.dsn", path)
		}
	}
	for _, e := range c.Settings.Entries() {
		path, isFile := strings.CutPrefix(e.Value, "file:")
		switch {
		case isFile, strings.HasSuffix(e.Key, ".key_file"), strings.HasSuffix(e.Key, ".cert_file"):
			f.file(e.Key, path)
		case e.Key == "postgres.dsn":
			inDSN(e.Value)
		}
		if strings.Contains(e.Value, rotation.Mask) && strings.HasPrefix(e.From, filepath.Base(c.File)+":") {
			f.file("file", c.File)
		}
	}
	inDSN(c.Settings.Postgres.DSN.Get())
}

// file warns of a file that everybody may read, unless it holds certificates alone, and of certificates that
// end soon. If there is no such file, loading the configuration has said so.
func (f *findings) file(about, path string) {
	info, err := os.Stat(path)
	if err != nil {
		return
	}
	text, _ := rotation.File(path)()
	chain, _ := tlsfile.Certificates([]byte(text))
	f.expiry(about, chain)
	if info.Mode().Perm()&0o004 != 0 && (len(chain) == 0 || strings.Contains(text, "PRIVATE KEY")) {
		f.add(Warning, about, "chmod 600 "+path+" (Kubernetes: defaultMode: 0400)",
			"everybody on this machine may read %s, which holds a secret", path)
	}
}

// tryStatusPort tries to listen on the status page's address. A running instance may have the port.
func tryStatusPort(ctx context.Context, c Config, f *findings) {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", c.Settings.HTTP.Listen)
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		f.add(Note, "", "if no instance of yours runs on this machine, stop the program that has it, or set "+
			"http.listen to another one", "%s is in use", c.Settings.HTTP.Listen)
	case err != nil:
		f.fail("", err)
	default:
		_ = l.Close() // it was only tried
		f.ok("", "%s is free for the status page", c.Settings.HTTP.Listen)
	}
}
