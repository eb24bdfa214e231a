package rowset

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"runtime"
	"testing"

	"github.com/storestream/storestream/internal/rounds"
	"github.com/storestream/storestream/schemas"
	"pgregory.net/rapid"
)

// Whatever is put, removed, and dropped, and however full the set is: it answers as a map would, keeps to its
// cap, and refuses a new row only if it is almost full.
func TestASetAnswersLikeAMap(t *testing.T) {
	rounds.Check(t, 100, func(t *rapid.T) {
		limit := rapid.SampledFrom([]int{0, 60, 200, 4000, 10_000, 100_000}).Draw(t, "cap")
		s, model := New(limit), map[int64]Version{}
		ids := rapid.OneOf(rapid.Int64Range(-40, 40), rapid.SampledFrom([]int64{math.MinInt64, math.MaxInt64}))
		if rapid.Bool().Draw(t, "wide") {
			ids = rapid.Int64()
		}
		drop := func(which func(int64, Version) bool) { maps.DeleteFunc(model, which) }
		for range rapid.IntRange(0, 600).Draw(t, "steps") {
			id := ids.Draw(t, "id")
			switch rapid.IntRange(0, 19).Draw(t, "step") {
			case 0, 1:
				s.Remove(id)
				delete(model, id)
			case 2:
				settled := schemas.InstantOfMillis(rapid.Int64Range(-100, 100).Draw(t, "settled"))
				s.Evict(settled)
				drop(func(_ int64, v Version) bool { return v.Millis < settled.Millis() })
			case 3:
				s.Unmark()
				for id, v := range model {
					v.Marked = false
					model[id] = v
				}
			case 4:
				s.DropMarked()
				drop(func(_ int64, v Version) bool { return v.Marked })
			default:
				v := VersionOf(schemas.InstantOfMillis(rapid.Int64Range(-100, 100).Draw(t, "ms")),
					rapid.Uint64().Draw(t, "hash"))
				v.Marked = rapid.Bool().Draw(t, "marked")
				_, known := model[id]
				switch {
				case s.Put(id, v):
					model[id] = v
				case known || limit == 0:
					t.Fatalf("no room for row %d (known: %v) beside %d in %d bytes", id, known, s.Len(), limit)
				}
			}
			if limit > 0 && s.Bytes() > limit {
				t.Fatalf("%d bytes with %d rows, over the cap of %d", s.Bytes(), s.Len(), limit)
			}
		}
		got := maps.Collect(s.All())
		if s.Len() != len(model) || !maps.Equal(got, model) {
			t.Fatalf("the set has %d rows %v, want %d rows %v", s.Len(), got, len(model), model)
		}
		for id, want := range model {
			if got, ok := s.Get(id); !ok || got != want {
				t.Fatalf("id %d: %+v, %v, want %+v", id, got, ok, want)
			}
		}
		if _, ok := s.Get(999999); ok && model[999999] == (Version{}) {
			t.Fatal("an id that was never put is there")
		}
	})
}

func TestASetKeepsTheWholeRangeOfTimesAndIds(t *testing.T) {
	s := New(math.MaxInt)
	for i, at := range []schemas.Instant{schemas.MinInstant, -1, 0, 1, schemas.MaxInstant} {
		for _, id := range []int64{math.MinInt64 + int64(i), -1 - int64(i), int64(i), math.MaxInt64 - int64(i)} {
			want := Version{Millis: at.Millis(), Hash: hashMask - uint64(i), Marked: i%2 == 0}
			s.Put(id, want)
			if got, ok := s.Get(id); !ok || got != want {
				t.Errorf("id %d at %v: %+v, %v, want %+v", id, at, got, ok, want)
			}
		}
	}
}

// Past the cap rows are repeated, never lost: a row that is not remembered is not suppressed.
func TestASetStaysWithinItsBytesAndRefusesOnlyNewRows(t *testing.T) {
	for _, limit := range []int{1200, 16 << 10, 1 << 20, 16 << 20} {
		s, refused, rows := New(limit), 0, int64(limit/16)
		for id := range rows {
			if !s.Put(id, Version{Millis: 1, Hash: uint64(id)}) {
				refused++
			}
			if s.bytes > limit {
				t.Fatalf("%d bytes after %d rows, over the cap of %d", s.bytes, id+1, limit)
			}
		}
		if s.n < limit/RowBytes || s.n+refused != int(rows) {
			t.Fatalf("%d refused, %d kept in %d bytes", refused, s.n, limit)
		}
		for id := range rows {
			if v, ok := s.Get(id); ok && v.Hash != uint64(id) {
				t.Fatalf("id %d has another row's hash", id)
			}
		}
		s.Close()
	}
}

func TestASetTakesAtMost24BytesARow(t *testing.T) {
	for _, rows := range []int{100_000, 333_333, 1_000_000} {
		s := New(math.MaxInt)
		for id := range int64(rows) {
			s.Put(id*7, Version{Millis: id, Hash: uint64(id)})
		}
		if perRow := float64(s.bytes) / float64(rows); perRow > 24 {
			t.Errorf("%d rows: %.1f bytes a row", rows, perRow)
		}
	}
}

func BenchmarkSet(b *testing.B) {
	for _, rows := range []int{10_000, 1_000_000} {
		s := New(math.MaxInt)
		for id := range int64(rows) {
			s.Put(id, Version{Millis: id, Hash: uint64(id)})
		}
		b.Run(fmt.Sprintf("met/%d", rows), func(b *testing.B) {
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				s.Get(int64(i % rows))
			}
		})
		b.Run(fmt.Sprintf("new/%d", rows), func(b *testing.B) {
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				s.Get(int64(i%rows + rows))
			}
		})
	}
}

// Large tables lie outside of the heap: they answer alike while they grow and shrink, and are given back.
func TestLargeTablesAnswerLikeSmallOnesAndAreNotOnTheHeap(t *testing.T) {
	const rows = 2_000_000
	heap := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before := heap()
	s := New(math.MaxInt)
	for id := range int64(rows) {
		s.Put(id, Version{Millis: id, Hash: uint64(id) * 7})
	}
	if grown := int64(heap()) - int64(before); grown > 1<<20 {
		t.Errorf("%d rows take %d bytes of the heap", rows, grown)
	}
	for id := range int64(rows) {
		if v, ok := s.Get(id); !ok || !v.Equal(id, uint64(id)*7) {
			t.Fatalf("row %d: %+v, %v", id, v, ok)
		}
	}
	s.Evict(schemas.InstantOfMillis(rows - 1000))
	if s.Len() != 1000 || s.Bytes() > 1<<16 {
		t.Errorf("%d rows in %d bytes are left of 1000", s.Len(), s.Bytes())
	}
	s.Close()
	if s.Put(1, Version{}); s.Len() != 1 {
		t.Error("a set that was closed is not empty")
	}
}

// A note stays with its version however the tables grow and shrink, and goes with it. At the cap all notes
// go, and no row for which there is room without them.
func TestNotesStayWithTheirVersions(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, limit := range []int{0, 20_000 * RowBytes} {
		s, rows, refused := New(limit), map[int64]Noted{}, 0
		for range 200_000 {
			id := rng.Int64N(40_000)
			row := Noted{ID: id, Known: true, Version: Version{Millis: rng.Int64N(1000), Hash: uint64(id)}}
			switch rng.IntN(4) {
			case 0:
				s.Remove(id)
				delete(rows, id)
			case 1:
				s.Note(id, uint64(id)+1)
				if old, known := rows[id]; known && s.noted {
					old.Note = uint64(id) + 1
					rows[id] = old
				}
			default:
				if !s.Put(id, row.Version) {
					refused++
					continue
				}
				rows[id] = row
			}
		}
		s.Evict(schemas.InstantOfMillis(500))
		maps.DeleteFunc(rows, func(_ int64, row Noted) bool { return row.Version.Millis < 500 })
		noted := 0
		for id := range int64(40_000) {
			found := []Noted{{ID: id}}
			s.Find(found)
			want, known := rows[id]
			if want.ID = id; limit > 0 {
				want.Note = 0
			}
			if found[0].Known != known || known && found[0] != want {
				t.Fatalf("%+v, expected %+v", found[0], want)
			}
			if found[0].Known && found[0].Note > 0 {
				noted++
			}
		}
		if noted > 0 != (limit == 0) || limit > 0 && s.Bytes() > limit || limit == 0 && refused > 0 {
			t.Errorf("limit %d: %d notes, %d bytes, %d refused", limit, noted, s.Bytes(), refused)
		}
	}
}
