package postgres

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// snapshot is a pg_snapshot: transactions with an id below xmin are over. Those in running, and those from
// xmax on, are not. All others are over. Ids are 64 bits wide. running is sorted, and lists no savepoints:
// the id of one is larger than that of its transaction.
type snapshot struct {
	xmin, xmax uint64
	running    []uint64
}

// parseSnapshot reads pg_snapshot's text form, xmin:xmax:id,id,...
func parseSnapshot(text string) (s snapshot, err error) {
	ids := strings.FieldsFunc(text, func(r rune) bool { return r == ':' || r == ',' })
	numbers := make([]uint64, len(ids))
	for i, id := range ids {
		if numbers[i], err = strconv.ParseUint(id, 10, 64); err != nil {
			return s, fmt.Errorf("read the snapshot %q: %w", text, err)
		}
	}
	if len(ids) < 2 || strings.Count(text, ":") != 2 {
		return s, fmt.Errorf("read the snapshot %q: expected xmin:xmax:ids", text)
	}
	slices.Sort(numbers[2:])
	return snapshot{xmin: numbers[0], xmax: numbers[1], running: numbers[2:]}, nil
}

// String is pg_snapshot's text form.
func (s *snapshot) String() string {
	ids := make([]string, len(s.running))
	for i, id := range s.running {
		ids[i] = strconv.FormatUint(id, 10)
	}
	return fmt.Sprintf("%d:%d:%s", s.xmin, s.xmax, strings.Join(ids, ","))
}

// isOver returns true if the transaction was neither running, nor had yet to begin, under this snapshot.
func (s *snapshot) isOver(id uint64) bool {
	_, running := slices.BinarySearch(s.running, id)
	return id < s.xmax && !running
}

// covers returns true if all transactions that are over in o are over in s.
func (s *snapshot) covers(o *snapshot) bool {
	return s.xmin >= o.xmin && s.xmax >= o.xmax && !slices.ContainsFunc(s.running, o.isOver)
}

// with returns the snapshot in which a transaction is over if it is over in s or in o.
func (s *snapshot) with(o *snapshot) snapshot {
	running := slices.Concat(slices.DeleteFunc(slices.Clone(s.running), o.isOver),
		slices.DeleteFunc(slices.Clone(o.running), s.isOver))
	slices.Sort(running)
	both := snapshot{xmax: max(s.xmax, o.xmax), running: slices.Compact(running)}
	both.xmin = append(running, both.xmax)[0]
	return both
}

// low returns the smallest id of a transaction that was in flight under s and may be over under c. It is
// s.xmax if no transaction that s lists has ended. Rows that c shows and s does not were written by low or a
// later id.
func (s *snapshot) low(c *clock) uint64 {
	if i := slices.IndexFunc(s.running, c.isOver); i >= 0 {
		return s.running[i]
	}
	return s.xmax
}

// cut returns s with at most n ids, the smallest. Transactions with a larger id do not count as over. So the
// result names those that stay open for long, and only lacks the youngest ones.
func (s *snapshot) cut(n int) snapshot {
	if len(s.running) <= n {
		return *s
	}
	return snapshot{xmin: s.xmin, xmax: s.running[n], running: s.running[:n]}
}

// coarse returns a snapshot in which only the transactions below xmin are over.
func coarse(xmin uint64) snapshot { return snapshot{xmin: xmin, xmax: xmin} }
