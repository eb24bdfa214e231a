package rowset

import (
	"cmp"
	"math"
	"os"
	"slices"
	"testing"

	"github.com/storestream/storestream/internal/rounds"
	"github.com/storestream/storestream/schemas"
	"pgregory.net/rapid"
)

// Whatever fits into memory and file comes back, again and again: by id, and the notes of one id by
// their highest byte and in their order. The file takes no more than it may, and has no name.
func TestASorterGivesBackWhatItWasGivenByID(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	rounds.Check(t, 100, func(t *rapid.T) {
		most := rapid.SampledFrom([]int64{0, noteBytes * 300, 1 << 20}).Draw(t, "bytes")
		s := NewSorter(rapid.SampledFrom([]int{0, 2 * noteBytes * 100, 1 << 20}).Draw(t, "memory"), most)
		defer s.Close()
		ids := rapid.SampledFrom([]*rapid.Generator[int64]{rapid.Int64Range(-300, 300), rapid.Int64(),
			rapid.SampledFrom([]int64{math.MinInt64, -1, 0, 1, math.MaxInt64})}).Draw(t, "ids")
		var added []Note
		for i := range rapid.IntRange(0, 900).Draw(t, "notes") {
			beside := rapid.Uint32Range(0, 2).Draw(t, "highest byte")<<24 | uint32(i)
			n := NoteOf(ids.Draw(t, "id"), VersionOf(schemas.InstantOfMillis(int64(i)), uint64(i)), beside)
			if err := s.Add(n); err != nil {
				if s.n < s.room || s.size+int64(s.n)*noteBytes <= most {
					t.Fatalf("there is room for note %d: %v", i, err)
				}
				return
			}
			added = append(added, n)
		}
		slices.SortStableFunc(added, func(a, b Note) int {
			return cmp.Or(cmp.Compare(a.ID(), b.ID()), cmp.Compare(a.Beside>>24, b.Beside>>24))
		})
		for range 2 {
			var got []Note
			err := s.Each(math.MinInt64, func(n *Note) bool {
				got = append(got, *n)
				return true
			})
			if most < int64(len(added))*noteBytes && err != nil {
				return // the rest has no room in the file
			}
			if err != nil || !slices.Equal(got, added) || s.Len() != len(added) {
				t.Fatalf("%d of %d notes, or in another order, %v", len(got), len(added), err)
			}
			if s.Spill() != nil {
				break
			}
			if s.size > most || s.memory != nil {
				t.Fatalf("a file of %d bytes, %d are allowed", s.size, most)
			}
		}
	})
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("%d files are left, %v", len(left), err)
	}
}
