package poller

import (
	"iter"
	"sync"

	"github.com/storestream/storestream/internal/reconcile"
	"github.com/storestream/storestream/internal/rowset"
	"github.com/storestream/storestream/schemas"
)

// sights records what the poller's reads show of the rows whose differences a comparison is to confirm. A
// difference counts only if no read in between has shown anything else (reconcile.Confirmation). Passes and
// second looks note each batch before the poller deals with it (Poller.read). The comparison itself knows
// what its own looks have shown.
//
// So nothing that this owner publishes goes unseen: a row that a poll publishes was sighted before.
// A predecessor's sights are not kept, so a new owner begins each confirmation with its own first look.
type sights struct {
	mu       sync.Mutex
	watched  map[int64]bool
	seen     map[int64]rowset.Version // since the last take
	nameless bool                     // a row without a usable id was shown
}

// watch watches these rows, and no others.
func (s *sights) watch(ids iter.Seq[int64]) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.watched, s.seen, s.nameless = map[int64]bool{}, map[int64]rowset.Version{}, false
	for id := range ids {
		s.watched[id] = true
	}
}

// take returns the sights since the last call, and whether a row without a usable id was among them.
func (s *sights) take() (seen map[int64]rowset.Version, nameless bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	seen, nameless = s.seen, s.nameless
	s.seen, s.nameless = map[int64]rowset.Version{}, false
	return seen, nameless
}

// note records what a batch shows.
func (s *sights) note(b *Batch) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.watched) == 0 {
		return
	}
	for i := range b.Rows {
		if row := &b.Rows[i]; s.watched[row.ID] {
			s.saw(row.ID, rowset.VersionOf(row.UpdatedAt, schemas.Hash(row.Value)))
		}
	}
	for i := range b.Rejects {
		if r := &b.Rejects[i]; !r.HasID {
			s.nameless = true
		} else if s.watched[r.ID] {
			s.saw(r.ID, reconcile.Rejected)
		}
	}
}

func (s *sights) saw(id int64, state rowset.Version) {
	if before, there := s.seen[id]; there && before != state {
		state = reconcile.Several
	}
	s.seen[id] = state
}
