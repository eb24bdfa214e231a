package storefake

import (
	"net/http"
	"slices"
	"sync"
	"time"
)

// Entry is one request as it was answered.
type Entry struct {
	At       time.Time // by the service's clock
	Resource string    // "key", "elsewhere", "" for an unknown path
	Method   string
	Path     string
	Query    string
	Status   int // 0 if no answer was sent
	Rows     int
	Fault    Fault
	Replica  int  // the copy of the rows that answered, 0 for the one without lag
	Cached   bool // it came from the cache
}

// maxEntries are kept, the newest.
const maxEntries = 20000

// journal is the log of requests. Headers are not kept: they hold keys.
type journal struct {
	mu      sync.Mutex
	entries []Entry
}

func (j *journal) add(e Entry) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if len(j.entries) == maxEntries {
		j.entries = append(j.entries[:0], j.entries[maxEntries/2:]...)
	}
	j.entries = append(j.entries, e)
}

// newest are the entries that are kept, the oldest first.
func (j *journal) newest() []Entry {
	j.mu.Lock()
	defer j.mu.Unlock()
	return slices.Clone(j.entries)
}

// recorder notes a handler's answer before it is sent. So a client that has the answer finds it in the
// journal.
type recorder struct {
	http.ResponseWriter
	journal *journal
	entry   Entry
	noted   bool
}

func (r *recorder) WriteHeader(status int) {
	r.note(status)
	r.ResponseWriter.WriteHeader(status)
}

func (r *recorder) Write(p []byte) (int, error) {
	r.note(http.StatusOK)
	return r.ResponseWriter.Write(p)
}

// note writes the entry into the journal, once. Its status is 0 if no answer was sent.
func (r *recorder) note(status int) {
	if !r.noted {
		r.noted, r.entry.Status = true, status
		r.journal.add(r.entry)
	}
}

// Unwrap lets http.ResponseController reach the connection.
func (r *recorder) Unwrap() http.ResponseWriter { return r.ResponseWriter }
