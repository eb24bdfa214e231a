package storefake

import (
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"
)

// cache keeps answers as an HTTP cache in front of the service would. All methods may be called at once.
type cache struct {
	mu      sync.Mutex
	answers map[string]cached // by the URL without its host
}

// cached is an answer in the cache.
type cached struct {
	at   time.Duration // of Clock.age, when it was made
	date string        // its Date header, "" if it has none
	body []byte
	rows int
}

// maxCached answers are kept; one more, and all are forgotten.
const maxCached = 4096

// find returns the cached answer to r, and its age. It returns false if all are too old, or if
// the client asks for a fresh one.
func (c *cache) find(r *http.Request, rules Cache, now time.Duration) (cached, time.Duration, bool) {
	if rules.For == 0 || !rules.Deaf && wantsFresh(r) {
		return cached{}, 0, false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	a, ok := c.answers[r.URL.RequestURI()]
	return a, now - a.at, ok && now-a.at <= rules.For
}

// wantsFresh says whether the client asks for an answer that comes from the service itself.
func wantsFresh(r *http.Request) bool {
	control := strings.ToLower(strings.Join(r.Header.Values("Cache-Control"), ","))
	return strings.Contains(control, "no-cache") || strings.Contains(control, "no-store") ||
		strings.Contains(control, "max-age=0") ||
		control == "" && strings.EqualFold(r.Header.Get("Pragma"), "no-cache")
}

func (c *cache) keep(r *http.Request, rules Cache, a cached) {
	if rules.For == 0 {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.answers == nil || len(c.answers) >= maxCached {
		c.answers = map[string]cached{}
	}
	c.answers[r.URL.RequestURI()] = a
}

// head writes the headers that show how old an answer from the cache is, as far as the rules let it show.
func (a cached) head(h http.Header, age time.Duration, rules Cache) {
	if !rules.NoAge {
		h.Set("Age", strconv.Itoa(int(age.Seconds())))
	}
	if !rules.NewDate && a.date != "" {
		h.Set("Date", a.date)
	}
}
