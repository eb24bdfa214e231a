package postgres

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// snapshot is a pg_snapshot: transactions with an id below xmin are over. Those in running, and those from
// xmax on, are not. All others are over. Ids are 64 bits wide. running lists no savepoints: the id of one is
// larger than that of its transaction.
type snapshot struct {
	xmin, xmax uint64
	running    map[uint64]struct{}
}

// parseSnapshot reads pg_snapshot's text form, xmin:xmax:id,id,...
func parseSnapshot(text string) (snapshot, error) {
	s, err := snapshot{running: map[uint64]struct{}{}}, error(nil)
	parts := strings.Split(text, ":")
	if len(parts) != 3 {
		return s, fmt.Errorf("read the snapshot %q: expected xmin:xmax:ids", text)
	}
	number := func(text string) uint64 {
		n, failed := strconv.ParseUint(text, 10, 64)
		if failed != nil && err == nil {
			err = fmt.Errorf("read the snapshot %q: %w", text, failed)
		}
		return n
	}
	s.xmin, s.xmax = number(parts[0]), number(parts[1])
	if parts[2] != "" {
		for id := range strings.SplitSeq(parts[2], ",") {
			s.running[number(id)] = struct{}{}
		}
	}
	return s, err
}

// String is pg_snapshot's text form.
func (s *snapshot) String() string {
	ids := make([]string, 0, len(s.running))
	for _, id := range slices.Sorted(maps.Keys(s.running)) {
		ids = append(ids, strconv.FormatUint(id, 10))
	}
	return fmt.Sprintf("%d:%d:%s", s.xmin, s.xmax, strings.Join(ids, ","))
}

// inFlight returns true if the transaction was running, or had not begun, under this snapshot.
func (s *snapshot) inFlight(id uint64) bool {
	_, running := s.running[id]
	return id >= s.xmax || running
}

// covers returns true if all transactions that are over in o are over in s.
func (s *snapshot) covers(o *snapshot) bool {
	if s.xmin < o.xmin || s.xmax < o.xmax {
		return false
	}
	for id := range s.running {
		if !o.inFlight(id) {
			return false
		}
	}
	return true
}

// with returns the snapshot in which a transaction is over if it is over in s or in o.
func (s *snapshot) with(o *snapshot) snapshot {
	both := snapshot{xmax: max(s.xmax, o.xmax), running: map[uint64]struct{}{}}
	both.xmin = both.xmax
	for _, pair := range [][2]*snapshot{{s, o}, {o, s}} {
		for id := range pair[0].running {
			if pair[1].inFlight(id) {
				both.running[id] = struct{}{}
				both.xmin = min(both.xmin, id)
			}
		}
	}
	return both
}

// low returns the smallest id of a transaction that was in flight under s and may be over under c. It is
// s.xmax if no transaction that s lists has ended. Rows that c shows and s does not were written by low or a
// later id.
func (s *snapshot) low(c *clock) uint64 {
	low := s.xmax
	for id := range s.running {
		if !c.inFlight(id) {
			low = min(low, id)
		}
	}
	return low
}

// cut returns s with at most n ids, the smallest. Transactions with a larger id do not count as over. So the
// result names those that stay open for long, and only lacks the youngest ones.
func (s *snapshot) cut(n int) snapshot {
	if len(s.running) <= n {
		return *s
	}
	ids := slices.Sorted(maps.Keys(s.running))
	short := snapshot{xmin: s.xmin, xmax: ids[n], running: map[uint64]struct{}{}}
	for _, id := range ids[:n] {
		short.running[id] = struct{}{}
	}
	return short
}

// coarse returns a snapshot in which only the transactions below xmin are over.
func coarse(xmin uint64) snapshot { return snapshot{xmin: xmin, xmax: xmin} }
