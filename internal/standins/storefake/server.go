package storefake

import (
	"encoding/json"
	"net/http"
	"strings"
)

// Server answers for Tables over HTTP. It is an http.Handler.
type Server struct {
	tables    *Tables // up to date
	replicas  *replicas
	behaviour *Behaviour
	clock     *Clock
	seed      uint64
	base      string // such as "/v1"
	paths     map[string]*resource
	keys      keyring
	limit     limiter
	cache     cache
	journal   journal
}

func newServer(store *Store, behaviour *Behaviour, seed uint64, base string) *Server {
	s := &Server{tables: store.tables, replicas: store.replicas, behaviour: behaviour, clock: store.clock,
		seed: seed, base: strings.TrimSuffix(base, "/"), paths: map[string]*resource{}}
	for _, res := range resources {
		s.paths[s.base+res.path] = res
	}
	return s
}

// ServeHTTP answers one request and writes it into the journal.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	entry := Entry{At: s.clock.Now(), Method: r.Method, Path: r.URL.Path, Query: r.URL.RawQuery}
	x := &exchange{server: s, w: &recorder{ResponseWriter: w, journal: &s.journal, entry: entry}, r: r}
	defer x.w.note(0) // also when a fault panics with http.ErrAbortHandler
	s.behaviour.announce(r)
	x.read = s.behaviour.Readings()
	if w.Header()["Date"] = nil; !x.read.NoDate { // nil: net/http adds none of its own
		w.Header().Set("Date", s.clock.Now().Format(http.TimeFormat))
	}
	x.route()
}

// Key is the API key that is good now: a new one, if the last one given out is used up.
func (s *Server) Key() string { return s.keys.current(s.behaviour.Readings().Keys) }

// RevokeKey makes the key bad; the key endpoint gives out another.
func (s *Server) RevokeKey() { s.keys.revoke() }

// Requests are the newest requests that have been answered, the oldest first.
func (s *Server) Requests() []Entry { return s.journal.newest() }

// Snapshot is every row of a resource that can be queried over REST now, by id, as the service would write
// it. It leaves out the garblings of Garble and Faults.GarbledRows, which are not part of a row's state.
func (s *Server) Snapshot(name string) map[int64]json.RawMessage {
	read := s.behaviour.Readings()
	r, before := renderer{words: s.tables.words, read: &read, seed: s.seed}, s.queryableBefore(&read)
	rows := map[int64]json.RawMessage{}
	s.tables.each(name, func(res *resource, cells []cell) {
		if before == null || cells[res.updated()] < before {
			rows[int64(cells[0])] = r.appendRow(nil, res, cells)
		}
	})
	return rows
}

// queryableBefore is the instant from which on rows cannot be queried yet, null if all can.
func (s *Server) queryableBefore(read *Readings) cell {
	if read.Delay == 0 {
		return null
	}
	return cellOf(s.clock.Now().Add(-read.Delay)) + 1
}
