package preflight

import (
	"context"
	"encoding/json"
	"net"
	"net/http"
	"time"

	"github.com/storestream/storestream/internal/status"
)

// tryStatusPort tries the port of the status page. Where a running storestream has it, that is as it should
// be, and what its resources fail with is said.
func tryStatusPort(ctx context.Context, c Config, f *findings) {
	listen := c.Settings.HTTP.Listen
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", listen)
	if err == nil {
		_ = l.Close() // it was only tried
		f.ok("", "%s is free for the status page", listen)
		return
	}
	_, port, splitErr := net.SplitHostPort(listen)
	resources, ok := runningAt(ctx, port)
	if splitErr != nil || !ok {
		f.fail("", err, "stop what has the port, or set http.listen to another one")
		return
	}
	f.ok("", "%s is a running storestream's", listen)
	for _, r := range resources {
		switch r.State {
		case status.Failing:
			f.add(Warning, r.Name, "", "it fails there: %s", r.Error)
		case status.Held:
			f.add(Note, r.Name, "", "settled stands still there: %s", r.Held)
		case status.Stalled:
			f.add(Warning, r.Name, "", "%s has it, by the group's word, and does not write its watermark", r.Owner)
		case status.Nobody:
			f.add(Warning, r.Name, "", "no instance has it")
		}
	}
}

// runningAt asks the storestream at a port of this machine for its resources. It is false if somebody else is
// there.
func runningAt(ctx context.Context, port string) ([]status.Resource, bool) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://127.0.0.1:"+port+"/status.json", nil)
	if err != nil {
		return nil, false
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, false
	}
	defer resp.Body.Close()
	var s status.Snapshot
	if resp.StatusCode != http.StatusOK || resp.Header.Get("Content-Security-Policy") == "" ||
		json.NewDecoder(resp.Body).Decode(&s) != nil {
		return nil, false
	}
	return s.Resources, true
}
