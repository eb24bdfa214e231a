package storefake

import (
	"encoding/json"
	"maps"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
)

// Server answers for a Store over HTTP. It is an http.Handler.
type Server struct {
	store   *Store
	base    string // such as "/v1"
	keys    keyring
	limit   limiter
	journal journal
	paths   map[string]*resource

	mu        sync.Mutex
	faults    Faults
	garbled   map[rowKey]Garbling
	onRequest func(*http.Request)
	chance    *rand.Rand
	served    uint64 // data requests, to salt what differs on each
}

// NewServer serves store below base, such as "/v1".
func NewServer(store *Store, base string) *Server {
	s := &Server{store: store, base: strings.TrimSuffix(base, "/"), paths: map[string]*resource{}, garbled: map[rowKey]Garbling{},
		chance: rand.New(rand.NewPCG(store.seed, streamFaults))}
	for _, res := range resources {
		s.paths[s.base+res.path] = res
	}
	return s
}

// ServeHTTP answers one request and writes it into the journal.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	rec := &recorder{ResponseWriter: w, entry: Entry{At: s.store.clock.Now(), Method: r.Method, Path: r.URL.Path, Query: r.URL.RawQuery}}
	defer func() { s.journal.add(rec.entry) }() // also when a fault panics with http.ErrAbortHandler
	s.mu.Lock()
	hook := s.onRequest
	s.mu.Unlock()
	if hook != nil {
		hook(r)
	}
	read := s.store.Readings()
	if w.Header()["Date"] = nil; !read.NoDate { // nil: net/http adds none of its own
		w.Header().Set("Date", s.store.clock.Now().Format(http.TimeFormat))
	}
	s.route(rec, r, &read)
}

func (s *Server) route(w *recorder, r *http.Request, read *Readings) {
	res, data := s.paths[r.URL.Path]
	key := r.URL.Path == s.base+"/store-api-keys"
	switch {
	case r.URL.Path == "/elsewhere":
		w.entry.Resource = "elsewhere"
		w.Header().Set("Content-Type", "text/html")
		_, _ = w.Write([]byte("<html><body>Please sign in.</body></html>\n"))
		return
	case !key && !data:
		notFound.write(w)
		return
	case key:
		w.entry.Resource = "key"
	default:
		w.entry.Resource = res.name
	}
	if r.Method != http.MethodGet {
		w.Header().Set("Allow", http.MethodGet)
		methodNotAllowed.write(w)
		return
	}
	if wait := s.limit.wait(read.Limit); wait > 0 {
		refuse(w, read.Limit, wait, s.store.clock.Now())
		return
	}
	if key {
		s.serveKey(w, read)
		return
	}
	s.serveData(w, r, res, read)
}

func (s *Server) serveKey(w http.ResponseWriter, read *Readings) {
	body, _ := json.Marshal(map[string]string{"api_key": s.keys.current(read.Keys)}) // of strings: cannot fail
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(append(body, '\n'))
}

func (s *Server) serveData(w *recorder, r *http.Request, res *resource, read *Readings) {
	s.mu.Lock()
	faults, salt := s.faults, s.served
	s.served++
	s.mu.Unlock()
	fault := faults.draw(r, s.draw)
	w.entry.Fault = fault
	if s.failFirst(w, r, fault, &faults, read) {
		return
	}
	if !s.keys.admit(r) {
		unauthorized.write(w)
		return
	}
	asked, f := parseParams(res, r.URL.Query(), read, s.store.words)
	if f != nil {
		f.write(w)
		return
	}
	s.store.complete(&asked.query, salt)
	at := stretchOf(read, s.store.seed, asked.page, asked.pageSize)
	p := s.store.page(res, asked.query, at.from, at.rows)
	if asked.page > 0 && at.from >= p.total && read.PastEnd != PastEndEmpty && fault != MoreForever {
		pastEnd(w, read.PastEnd)
		return
	}
	w.entry.Rows = len(p.rows)
	more := at.from+at.rows < p.total || fault == MoreForever
	body := s.renderer(read, &faults).appendListing(nil, res, p, asked, more)
	w.Header().Set("Content-Type", "application/json")
	s.send(w, r, body, fault, &faults)
}

func (s *Server) draw() float64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.chance.Float64()
}

func pastEnd(w http.ResponseWriter, form PastEnd) {
	if form == PastEndNotFound {
		(&failure{404, "not_found", "there is no such page"}).write(w)
		return
	}
	invalid("page", "is beyond the last page").write(w)
}

// complete adds what the readings say to what the client asked for.
func (s *Store) complete(q *query, served uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	q.sort, q.before, q.salt = s.read.Order, s.queryableBefore(), s.seed
	q.ties = s.read.PermuteTies && (q.sort == ByUpdated || q.sort == ByUpdatedDesc)
	if q.ties || q.sort == ByShuffle {
		q.salt = s.seed ^ uint64(mix(int64(served), 1))
	}
}

func (s *Server) renderer(read *Readings, faults *Faults) *renderer {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := &renderer{words: s.store.words, read: *read}
	if faults.GarbledRows > 0 || len(s.garbled) > 0 {
		garbled := maps.Clone(s.garbled)
		r.garbled = func(resource string, id int64) Garbling {
			if g, ok := garbled[rowKey{resource, id}]; ok {
				return g
			}
			if at := unit(id, s.store.seed); at < faults.GarbledRows {
				return allGarblings[int(uint64(mix(id, s.store.seed+1))%uint64(len(allGarblings)))]
			}
			return NotGarbled
		}
	}
	return r
}

// SetFaults changes what goes wrong from the next request on.
func (s *Server) SetFaults(change func(*Faults)) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	f := s.faults
	f.Shares = maps.Clone(f.Shares)
	change(&f)
	if err := f.Check(); err != nil {
		return err
	}
	s.faults = f
	return nil
}

// Garble breaks a row over REST; NotGarbled shows it as it is, whatever Faults.GarbledRows says.
func (s *Server) Garble(resource string, id int64, g Garbling) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.garbled[rowKey{resource, id}] = g
}

// OnRequest calls hook with every request before anything is done with it, and the request waits for hook: change rows in it, and the change
// falls between two pages. nil: none. It is called from many goroutines.
func (s *Server) OnRequest(hook func(*http.Request)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.onRequest = hook
}

// Key is the API key that is good now: a new one, if the last one given out is used up.
func (s *Server) Key() string { return s.keys.current(s.store.Readings().Keys) }

// RevokeKey makes the key bad; the key endpoint gives out another.
func (s *Server) RevokeKey() { s.keys.revoke() }

// Requests are the newest requests that have been answered, the oldest first.
func (s *Server) Requests() []Entry {
	s.journal.mu.Lock()
	defer s.journal.mu.Unlock()
	return slices.Clone(s.journal.entries)
}

// Counts is the number of answers by resource ("key" for the key endpoint) and status.
func (s *Server) Counts() map[string]map[int]int {
	s.journal.mu.Lock()
	defer s.journal.mu.Unlock()
	counts := map[string]map[int]int{}
	for resource, byStatus := range s.journal.counts {
		counts[resource] = maps.Clone(byStatus)
	}
	return counts
}
