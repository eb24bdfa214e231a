package e2e

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/storestream/storestream/internal/standins/storefake"
	"github.com/storestream/storestream/lab/asked"
)

// listens is where a process says that its status server listens: the port is any free one.
var listens = regexp.MustCompile(`"addr":"(127\.0\.0\.1:\d+)"`)

// addr is where its status server listens.
func (p *process) addr() string {
	p.t.Helper()
	var addr []string
	p.saysThat("where its status server listens", func(said string) bool {
		addr = listens.FindStringSubmatch(said)
		return addr != nil
	})
	return addr[1]
}

// get asks the process's status server.
func (p *process) get(path string) (code int, body string) {
	p.t.Helper()
	ask := p.ask
	if ask == nil {
		ask = func(addr, path string) (*http.Response, error) { return http.Get("http://" + addr + path) }
	}
	resp, err := ask(p.addr(), path)
	if err != nil {
		return 0, err.Error()
	}
	defer resp.Body.Close()
	all, err := io.ReadAll(resp.Body)
	if err != nil {
		return 0, err.Error()
	}
	return resp.StatusCode, string(all)
}

// isReady waits until /readyz says so.
func (p *process) isReady() {
	p.t.Helper()
	eventually(p.t, "storestream is ready", func() (bool, string) {
		code, body := p.get("/readyz")
		return code == http.StatusOK, body
	})
}

// shown is what /status.json says of a resource.
type shown struct {
	Name       string `json:"resource"`
	State, Why string
	Owned      bool
	Since      time.Time
	Privacy    []string

	Before string `json:"name"` // its name, in the release before
}

// resources is what /status.json says of all resources; nil while the process answers nothing.
func (p *process) resources() []shown {
	p.t.Helper()
	_, body := p.get("/status.json")
	var status struct{ Resources []shown }
	if err := json.Unmarshal([]byte(body), &status); err != nil {
		return nil
	}
	for i := range status.Resources {
		r := &status.Resources[i]
		r.Name = cmp.Or(r.Name, r.Before)
	}
	return status.Resources
}

func (p *process) resource(name string) shown {
	p.t.Helper()
	all := p.resources()
	i := slices.IndexFunc(all, func(r shown) bool { return r.Name == name })
	if i < 0 {
		p.t.Fatalf("/status.json has no %s: %+v", name, all)
	}
	return all[i]
}

// owned are the resources that the process says it owns.
func (p *process) owned() []string {
	p.t.Helper()
	var names []string
	for _, r := range p.resources() {
		if r.Owned {
			names = append(names, r.Name)
		}
	}
	return names
}

// owns waits until the process owns resources.
func (p *process) owns(resources ...string) {
	p.t.Helper()
	eventually(p.t, fmt.Sprintf("it owns %v", resources), func() (bool, string) {
		owned := p.owned()
		missing := slices.ContainsFunc(resources, func(r string) bool { return !slices.Contains(owned, r) })
		return !missing, fmt.Sprint(owned)
	})
}

// share waits until each resource is owned by one of the processes.
func share(all ...*process) {
	t := all[0].t
	t.Helper()
	eventually(t, "each resource has one owner", func() (bool, string) {
		var owned []string
		for _, p := range all {
			owned = append(owned, p.owned()...)
		}
		slices.Sort(owned)
		return slices.Equal(owned, slices.Sorted(slices.Values(storefake.Names()))), fmt.Sprint(owned)
	})
}

// reports waits until /status.json holds all of the words.
func (p *process) reports(words ...string) {
	p.t.Helper()
	eventually(p.t, "/status.json says "+strings.Join(words, ", "), func() (bool, string) {
		_, status := p.get("/status.json")
		missing := slices.ContainsFunc(words, func(w string) bool { return !strings.Contains(status, w) })
		return !missing, status
	})
}

// metric is the value of a resource's series that has all of the labels.
func (p *process) metric(name, resource string, labels ...string) float64 {
	p.t.Helper()
	_, body := p.get("/metrics")
	for _, line := range regexp.MustCompile(`(?m)^`+name+`\{[^}]*\} .*$`).FindAllString(body, -1) {
		has := strings.Contains(line, `resource="`+resource+`"`)
		for _, label := range labels {
			has = has && strings.Contains(line, label)
		}
		if !has {
			continue
		}
		value, err := strconv.ParseFloat(line[strings.LastIndexByte(line, ' ')+1:], 64)
		if err != nil {
			p.t.Fatalf("/metrics: %s: %v", line, err)
		}
		return value
	}
	p.t.Fatalf("/metrics has no %s of %s with %v", name, resource, labels)
	return 0
}

// mark is a watermark, as far as tests look at it. Request is that of the last request accepted; Replay and
// Sweep are nil when none is in hand. AsOf is of the year 1 before the first load is complete.
type mark struct {
	asked.Mark
	AsOf   time.Time `json:"as_of"`
	Sweep  *json.RawMessage
	Erased []struct{ ID int64 }
}

// marks are the watermarks of a resource, in order.
func (s *stack) marks(resource string) (all []mark) {
	s.t.Helper()
	for _, r := range s.read(s.prefix + "watermarks") {
		if string(r.Key) != resource {
			continue
		}
		m := mark{}
		if err := json.Unmarshal(r.Value, &m); err != nil {
			s.t.Fatalf("the watermark of %s: %v\n%s", resource, err, r.Value)
		}
		all = append(all, m)
	}
	return all
}

// mark is the newest watermark of a resource; Request is -1 where there is none.
func (s *stack) mark(resource string) mark {
	s.t.Helper()
	all := s.marks(resource)
	if len(all) == 0 {
		return mark{Mark: asked.Mark{Request: -1}}
	}
	return all[len(all)-1]
}

// requests are those for a resource, in order.
func (s *stack) requests(resource string) (all []asked.Ask) {
	s.t.Helper()
	for _, r := range s.read(s.prefix + "requests") {
		a := asked.Ask{ID: r.Offset}
		if err := json.Unmarshal(r.Value, &a); err != nil {
			s.t.Fatalf("request %d: %v\n%s", r.Offset, err, r.Value)
		}
		if a.Resource == resource {
			all = append(all, a)
		}
	}
	return all
}

// accepted waits until a resource has accepted a request after that of before.
func (s *stack) accepted(resource string, before mark) {
	s.t.Helper()
	eventually(s.t, resource+" accepts the request", func() (bool, string) {
		now := s.mark(resource)
		return now.Request > before.Request, fmt.Sprintf("%+v", now)
	})
}

// done waits until a resource has accepted a request after that of before, and is done with all of them.
func (s *stack) done(resource string, before mark) {
	s.t.Helper()
	eventually(s.t, resource+" is done with the request", func() (bool, string) {
		now := s.mark(resource)
		over := now.Replay == nil && len(now.Parts) == 0 && now.Sweep == nil
		return now.Request > before.Request && over, fmt.Sprintf("%+v", now)
	})
}
