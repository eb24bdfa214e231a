package rowset

import (
	"maps"
	"math"
	"os"
	"slices"
	"testing"

	"github.com/storestream/storestream/internal/rounds"
	"github.com/storestream/storestream/schemas"
	"pgregory.net/rapid"
)

// What fits into memory and file comes back, up to Last: the notes of each range by id, of one id in their
// order, but for those that a later one replaces. The file takes no more than it may, and has no name.
func TestASpillGivesBackTheNotesOfEachRange(t *testing.T) {
	dir := t.TempDir()
	rounds.Check(t, 100, func(t *rapid.T) {
		bytes := rapid.SampledFrom([]int64{0, 24 * 300, 1 << 20}).Draw(t, "bytes")
		s := NewSpill(dir, rapid.SampledFrom([]int{0, 2 * 24 * 100, 1 << 20}).Draw(t, "memory"), bytes)
		defer s.Close()
		ids := rapid.SampledFrom([]*rapid.Generator[int64]{rapid.Int64Range(-300, 300), rapid.Int64(),
			rapid.SampledFrom([]int64{math.MinInt64, -1, 0, 1, math.MaxInt64})}).Draw(t, "ids")
		added := map[int64][]Note{}
		for serial, readings := int64(0), rapid.IntRange(1, 3).Draw(t, "readings"); readings > 0; readings-- {
			for range rapid.IntRange(0, 400).Draw(t, "notes") {
				n := Note{ID: ids.Draw(t, "id"), Version: VersionOf(schemas.InstantOfMillis(serial), 7),
					Beside: rapid.Uint32Range(Lasting-2, Lasting+2).Draw(t, "beside")}
				if serial++; s.Add(n) != nil {
					return // of one id there are too many
				}
				added[n.ID] = append(added[n.ID], n)
			}
			if s.Flush(); readings > 1 && s.Release() != nil {
				break
			}
		}
		if s.size*spilledBytes > bytes {
			t.Fatalf("a file of %d notes, %d bytes allowed", s.size, bytes)
		}
		for range 5 {
			first, last := ids.Draw(t, "first"), min(ids.Draw(t, "last"), s.Last())
			got, before := map[int64][]Note{}, first
			for n, err := range s.Notes(first, last) {
				if err != nil || n.ID < before {
					t.Fatalf("row %d after row %d, %v", n.ID, before, err)
				}
				before = n.ID
				got[n.ID] = append(got[n.ID], n)
			}
			want := maps.Clone(added)
			maps.DeleteFunc(want, func(id int64, _ []Note) bool { return id < first || id > last })
			if !maps.EqualFunc(got, want, func(a, b []Note) bool { return slices.Equal(counting(a), counting(b)) }) {
				t.Fatalf("from %d to %d: %v, want %v", first, last, got, want)
			}
		}
	})
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("%d files are left, %v", len(left), err)
	}
}

// counting are the notes of one id without those that a later one replaces.
func counting(notes []Note) []Note {
	var kept []Note
	for i, n := range notes {
		if i+1 == len(notes) || max(n.Beside, notes[i+1].Beside) >= Lasting {
			kept = append(kept, n)
		}
	}
	return kept
}
