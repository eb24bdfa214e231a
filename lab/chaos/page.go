package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"time"
)

// page is the part of an instance's /status.json that chaos reads.
type page struct {
	Instance  string     `json:"instance"`
	Resources []resource `json:"resources"`
}

// resource is a resource on a page.
type resource struct {
	Name     string `json:"resource"`
	Owned    bool   `json:"owned"`
	State    string `json:"state"`
	Why      string `json:"why"`
	Sweeping *struct {
		Doing string `json:"doing"`
		Rows  int    `json:"rows"`
	} `json:"sweeping"`
}

// ask fetches path from an instance. One that is frozen or gone does not answer.
func (i *instance) ask(ctx context.Context, path string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+i.page+path, nil)
	if err != nil {
		return nil, err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	return io.ReadAll(resp.Body)
}

// look reads an instance's page.
func (i *instance) look(ctx context.Context) (page, error) {
	var p page
	body, err := i.ask(ctx, "/status.json")
	if err == nil {
		err = json.Unmarshal(body, &p)
	}
	return p, err
}

// logged is how long the instances' logs are now.
func (f *fleet) logged() []int64 {
	lengths := make([]int64, len(f.instances))
	for n, i := range f.instances {
		if info, err := os.Stat(i.log()); err == nil {
			lengths[n] = info.Size()
		}
	}
	return lengths
}

// blocked says whether the owner of a resource shows, on its page, in its log after since and in its metrics,
// that the resource is blocked for the reason want. text is the page's text, or names the place that lacks
// it. It is unpolled while no instance polls the resource.
func (f *fleet) blocked(ctx context.Context, name, want string, since []int64) (text string, all bool) {
	text = unpolled
	for n, i := range f.instances {
		p, err := i.look(ctx)
		if err != nil {
			continue
		}
		for _, r := range p.Resources {
			if r.Name != name || !r.Owned || r.State == "resuming" || r.State == "paused" {
				continue
			}
			if text = "no page says that it is blocked"; !strings.Contains(r.Why, want) {
				continue
			}
			if !i.hasLogged(since[n], `"`+name+`"`, want) {
				return "its page shows that, its log does not", false
			}
			if !i.counts(ctx, "storestream_blocked{", `resource="`+name+`"`) {
				return "page and log show it, storestream_blocked does not", false
			}
			return fmt.Sprintf("%s tells of %s: %s", i.name(), name, r.Why), true
		}
	}
	return text, false
}

// suffers says which resource shows more of a refusal with this code than it may: refused must not be
// blocked, and no other resource may show it. It returns "" if there is none.
func (f *fleet) suffers(ctx context.Context, refused, code string) string {
	for _, i := range f.instances {
		p, err := i.look(ctx)
		if err != nil {
			continue
		}
		for _, r := range p.Resources {
			if r.State == "paused" { // its reason has a time in it
				continue
			}
			if r.Owned && strings.Contains(r.Why, code) && (r.Name != refused || r.State == "blocked") {
				return fmt.Sprintf("%s shows %s as %s: %s", i.name(), r.Name, r.State, r.Why)
			}
		}
	}
	return ""
}

// hasLogged looks for a line with all these words.
func (i *instance) hasLogged(since int64, words ...string) bool {
	log, err := os.Open(i.log())
	if err != nil {
		return false
	}
	defer log.Close()
	if _, err := log.Seek(since, io.SeekStart); err != nil {
		return false
	}
	return hasLine(log, words)
}

// counts says whether a metric with these labels is above zero.
func (i *instance) counts(ctx context.Context, words ...string) bool {
	body, err := i.ask(ctx, "/metrics")
	if err != nil {
		return false
	}
	lines := strings.Split(string(body), "\n")
	for _, line := range lines {
		if hasAll(line, words) && !strings.HasSuffix(line, " 0") {
			return true
		}
	}
	return false
}

func hasLine(r io.Reader, words []string) bool {
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		if hasAll(lines.Text(), words) {
			return true
		}
	}
	return false
}

func hasAll(text string, words []string) bool {
	for _, w := range words {
		if !strings.Contains(text, w) {
			return false
		}
	}
	return true
}
