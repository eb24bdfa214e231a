package client

import (
	"net/http"
	"sync"
	"time"
)

const (
	// maxUnclear is how often a request may be refused with a status that says nothing of the rate before it
	// is what it says. The pauses between come to a minute, which is longer than most services count.
	maxUnclear = 9
	// fewUnclear is the same where its path was not answered lately: it may well be that the key has no right.
	fewUnclear = 4
	// lately is longer than such a request is repeated.
	lately = 2 * time.Minute
)

// refusals knows which refusals mean what they say.
//
// The document leaves open with which status the service refuses for the rate: it may be 403 or 420 as well.
// A path that was answered a moment ago, or is answered when the same request is sent again after a pause,
// was refused for the rate; where the key has no right, it stays refused. That is tried once, because the
// pauses hold back all resources: until the path is answered again its refusals are taken at their word.
type refusals struct {
	mu       sync.Mutex
	answered map[string]time.Time // when each path was answered last
	meant    map[string]bool      // the paths that stayed refused
}

func newRefusals() *refusals {
	return &refusals{answered: map[string]time.Time{}, meant: map[string]bool{}}
}

// unclear tells whether a refusal with status may be one for the rate. 400, 401 and 404 have another meaning
// that the caller acts on.
func unclear(status int) bool {
	switch status {
	case http.StatusBadRequest, http.StatusUnauthorized, http.StatusNotFound:
		return false
	}
	return status >= 400 && status < 500
}

// patience is how often a request to path may be refused before that is no matter of the rate.
func (r *refusals) patience(path string) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.meant[path]:
		return 1
	case time.Since(r.answered[path]) < lately:
		return maxUnclear
	}
	return fewUnclear
}

// answer notes that path was answered, or that it stayed refused.
func (r *refusals) answer(path string, refused bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.meant[path] = refused
	if !refused {
		r.answered[path] = time.Now()
	}
}
