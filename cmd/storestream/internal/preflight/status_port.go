package preflight

import (
	"context"
	"net"
	"net/http"
	"time"
)

// tryStatusPort tries the port of the status page. Where a running storestream has it, that is as it should
// be.
func tryStatusPort(ctx context.Context, c Config, f *findings) {
	listen := c.Settings.HTTP.Listen
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", listen)
	if err == nil {
		_ = l.Close() // it was only tried
		f.ok("", "%s is free for the status page", listen)
		return
	}
	if _, port, splitErr := net.SplitHostPort(listen); splitErr == nil && isStorestream(ctx, port) {
		f.ok("", "%s is a running storestream's", listen)
		return
	}
	f.fail("", err, "stop what has the port, or set http.listen to another one")
}

// isStorestream asks who answers at a port of this machine.
func isStorestream(ctx context.Context, port string) bool {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://127.0.0.1:"+port+"/healthz", nil)
	if err != nil {
		return false
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return false
	}
	defer resp.Body.Close()
	return resp.StatusCode == http.StatusOK && resp.Header.Get("Content-Security-Policy") != ""
}
