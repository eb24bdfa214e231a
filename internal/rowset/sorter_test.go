package rowset

import (
	"math"
	"os"
	"slices"
	"testing"

	"github.com/storestream/storestream/internal/rounds"
	"github.com/storestream/storestream/schemas"
	"pgregory.net/rapid"
)

// Whatever fits into memory and file comes back, again and again: by id, and the notes of one id in the
// order of the Sorters and then their own. The files take no more than they may, and have no name.
func TestSortersGiveBackWhatTheyWereGivenByID(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	rounds.Check(t, 100, func(t *rapid.T) {
		most := rapid.SampledFrom([]int64{0, noteBytes * 300, 1 << 20}).Draw(t, "bytes")
		memory := rapid.SampledFrom([]int{0, 4 * noteBytes * 100, 1 << 20}).Draw(t, "memory")
		sorters := NewSorters(2, memory, most)
		defer Close(sorters)
		size := func() int64 { return sorters[0].size + sorters[1].size }
		ids := rapid.SampledFrom([]*rapid.Generator[int64]{rapid.Int64Range(-300, 300), rapid.Int64(),
			rapid.SampledFrom([]int64{math.MinInt64, -1, 0, 1, math.MaxInt64})}).Draw(t, "ids")
		var added, last []Note // of the second Sorter
		for i := range rapid.IntRange(0, 900).Draw(t, "notes") {
			n := NoteOf(ids.Draw(t, "id"), VersionOf(schemas.InstantOfMillis(int64(i)), uint64(i)), uint32(i))
			which := rapid.IntRange(0, 1).Draw(t, "sorter")
			s := sorters[which]
			if err := s.Add(n); err != nil {
				if s.n < s.room || size()+int64(s.n)*noteBytes <= most {
					t.Fatalf("there is room for note %d: %v", i, err)
				}
				return
			}
			if which == 0 {
				added = append(added, n)
			} else {
				last = append(last, n)
			}
		}
		added = append(added, last...)
		slices.SortStableFunc(added, func(a, b Note) int {
			if a.ID() < b.ID() {
				return -1
			} else if a.ID() > b.ID() {
				return 1
			}
			return 0
		})
		for range 2 {
			var got []Note
			err := Each(sorters, func(n *Note) bool {
				got = append(got, *n)
				return true
			})
			if most < int64(len(added))*noteBytes && err != nil {
				return // the rest has no room in the file
			}
			if err != nil || !slices.Equal(got, added) {
				t.Fatalf("%d of %d notes, or in another order, %v", len(got), len(added), err)
			}
			if Spill(sorters...) != nil {
				break
			}
			if size() > most || sorters[0].memory != nil || sorters[1].memory != nil {
				t.Fatalf("files of %d bytes, %d are allowed", size(), most)
			}
		}
	})
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("%d files are left, %v", len(left), err)
	}
}
