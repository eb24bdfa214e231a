package poller

import (
	"context"
	"iter"
	"sync"

	"github.com/storestream/storestream/schemas"
)

// sights records the rows that reads show while a sweep or an erase has them under confirmation.
//
// Both rely on two looks at the source, an overlap apart. These prove something only if no read in between
// has shown anything else, so every sight of a row restarts its confirmation. Otherwise they would delete a
// row that is updated now and then over REST. After each update no answer shows it for a while, and each look
// may fall into such a time:
//
//	first look  a poll      last look, an overlap later
//	nothing     version 2   nothing: version 3 is under way
//
// In the same way, an older state at both looks is not the truth if a poll met the newer one in between: the
// copy of the service that shows it at the last look may lag.
//
// A row without a usable id may be any row, so it counts as a sight of all of them. A predecessor's sights
// are not kept, so a new owner begins each confirmation with its own first look.
type sights struct {
	mu      sync.Mutex
	watched map[int64]bool
	all     bool // every row is watched
	seen    map[int64]sight
	any     bool // any row may have been seen
}

// mostSeen limits the rows that are recorded while every row is watched. Beyond it, every row counts as seen.
const mostSeen = 100_000

// sight is what reads have shown of one row: one version, or (others) several versions or one that cannot be
// published.
type sight struct {
	hash   uint64 // schemas.Hash of the version
	others bool
}

// differs reports whether a read has shown anything other than row. If row is nil, every sight differs.
func (s sight) differs(row *schemas.Record) bool {
	return s.others || row == nil || schemas.Hash(row.Value) != s.hash
}

func newSights() *sights { return &sights{watched: map[int64]bool{}, seen: map[int64]sight{}} }

func (s *sights) watch(id int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.watched[id] = true
}

func (s *sights) forget(id int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.watched, id)
	delete(s.seen, id)
}

// watchAll watches every row, for the time before the rows to confirm are known.
func (s *sights) watchAll() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all = true
}

// watchOnly forgets all rows but these.
func (s *sights) watchOnly(ids iter.Seq[int64]) {
	s.mu.Lock()
	defer s.mu.Unlock()
	seen := s.seen
	s.all, s.watched, s.seen = false, map[int64]bool{}, map[int64]sight{}
	for id := range ids {
		s.watched[id] = true
		if was, there := seen[id]; there {
			s.seen[id] = was
		}
	}
	s.any = s.any && len(s.watched) > 0
}

// take returns the sights since the last call.
func (s *sights) take() map[int64]sight {
	s.mu.Lock()
	defer s.mu.Unlock()
	seen := s.seen
	if s.any {
		for id := range s.watched {
			seen[id] = sight{others: true}
		}
	}
	s.seen, s.any = map[int64]sight{}, false
	return seen
}

func (s *sights) note(b *Batch) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.watched) == 0 && !s.all {
		return
	}
	for i := range b.Rows {
		if id := b.Rows[i].ID; s.all || s.watched[id] {
			hash := schemas.Hash(b.Rows[i].Value)
			before, seen := s.seen[id]
			s.saw(id, sight{hash, seen && (before.others || before.hash != hash)})
		}
	}
	for i := range b.Rejects {
		if r := &b.Rejects[i]; !r.HasID {
			s.any = true
		} else if s.all || s.watched[r.ID] {
			s.saw(r.ID, sight{others: true})
		}
	}
}

func (s *sights) saw(id int64, what sight) {
	if _, there := s.seen[id]; there || !s.all || len(s.seen) < mostSeen {
		s.seen[id] = what
	} else {
		s.any = true
	}
}

// witness is a Source that records the rows that its reads show. All reads of a poller go through one:
// passes, second looks, the readings of sweeps, and the looks of sweeps and erases. Only the sweep's own
// sights leave out its readings beside the polls, because its comparison has their rows.
type witness struct {
	Source
	notes []*sights
}

// Read implements Source. It records a batch before it passes it on, so it records the batches of a read that
// is cut short, too.
func (w witness) Read(ctx context.Context, r Request) iter.Seq2[Batch, error] {
	return func(yield func(Batch, error) bool) {
		for b, err := range w.Source.Read(ctx, r) {
			for _, s := range w.notes {
				s.note(&b)
			}
			if !yield(b, err) {
				return
			}
		}
	}
}
