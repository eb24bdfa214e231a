package reconcile

import (
	"cmp"
	"context"
	"iter"
	"maps"
	"math"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/storestream/storestream/internal/rounds"
	"github.com/storestream/storestream/internal/watermark"
	"github.com/storestream/storestream/schemas"
)

// Memory for some 150 notes, and bytes of a file with room for all that these tests read.
const littleMemory, enough = 150 * 48 * 2, 1 << 20

// spreads are ways in which ids lie.
var spreads = map[string]func(t *rapid.T) int64{
	"dense":  func(t *rapid.T) int64 { return rapid.Int64Range(-1000, 1000).Draw(t, "id") },
	"random": func(t *rapid.T) int64 { return int64(rapid.Uint64().Draw(t, "id")) },
	"strides": func(t *rapid.T) int64 {
		return rapid.Int64Range(-500, 500).Draw(t, "id") << rapid.IntRange(0, 53).Draw(t, "by")
	},
	"ends": func(t *rapid.T) int64 {
		id := rapid.Int64Range(0, 700).Draw(t, "id")
		return rapid.SampledFrom([]int64{math.MinInt64 + id, math.MaxInt64 - id, id, -id}).Draw(t, "end")
	},
}

// However the ids are spread and in whatever order the topic has them: each row is compared in just one part,
// the parts lie side by side from the lowest id to the highest, no part takes more than it may, and all finds
// what one comparison with enough memory finds. With room in a file each side is read once.
func TestPartsCoverEveryIDOnce(t *testing.T) {
	for _, spread := range slices.Sorted(maps.Keys(spreads)) {
		t.Run(spread, func(t *testing.T) {
			rounds.Check(t, 100, func(t *rapid.T) {
				p := &pair{source: map[int64]schemas.Record{}, byID: rapid.Bool().Draw(t, "by id")}
				want := map[int64]Kind{}
				n := rapid.IntRange(0, 900).Draw(t, "rows")
				share := rapid.IntRange(2, 200).Draw(t, "one of so many differs")
				for i := range n {
					id := spreads[spread](t)
					if _, again := p.source[id]; again || want[id] != "" {
						continue
					}
					r := row(id, 1000+int64(i), 7)
					switch (i * 7919) % (share * 3) {
					case 0:
						p.source[id], want[id] = r, Missing
					case share:
						want[id] = Extra
						p.publish(r)
					case 2 * share:
						p.source[id], want[id] = row(id, 2000+int64(i), 8), Stale
						p.publish(r)
					default:
						p.source[id] = r
						p.publish(row(id, 1, 1))
						p.publish(r)
					}
				}
				if rapid.Bool().Draw(t, "shuffled") {
					// An older version may come to stand behind the newer one of its row: only one of each is kept.
					newest := map[int64]watermark.Published{}
					for _, r := range p.topic {
						newest[r.ID] = r
					}
					p.topic = slices.Collect(maps.Values(newest))
				}
				p.memory, p.scratch = 1<<20, 0
				if rapid.Bool().Draw(t, "in a file") {
					p.memory, p.scratch = rapid.SampledFrom([]int64{littleMemory, 1 << 20}).Draw(t, "memory"), enough
				}
				p.maxSuspects = rapid.SampledFrom([]int{0, 3, 40}).Draw(t, "suspects")
				checkParts(t, p, want)
			})
		})
	}
}

// checkParts compares part by part, each with a Comparison of its own, as a sweep does.
func checkParts(t *rapid.T, p *pair, want map[int64]Kind) {
	got, next, sourceRows := map[int64]Kind{}, int64(math.MinInt64), 0
	for parts := 1; ; parts++ {
		p.from = next
		c := p.compare()
		if err := c.First(context.Background(), unheard); err != nil {
			t.Fatal(err)
		}
		p.before = c
		first, last := c.Part()
		if first != next || last < first {
			t.Fatalf("part %d is from %d to %d, and begins at %d", parts, first, last, next)
		}
		if err := c.Look(context.Background()); err != nil {
			t.Fatal(err)
		}
		for _, d := range c.Differences() {
			if got[d.ID] != "" || d.ID < first || d.ID > last {
				t.Fatalf("row %d is in the part from %d to %d, and was %q before", d.ID, first, last, got[d.ID])
			}
			got[d.ID] = d.Kind
		}
		if most := cmp.Or(p.maxSuspects, 1000); c.Suspects() > most {
			t.Fatalf("%d suspects of %d", c.Suspects(), most)
		}
		sourceRows += c.Report().SourceRows
		if last == math.MaxInt64 {
			break
		}
		if next = last + 1; parts > 1000 {
			t.Fatal("the parts do not end")
		}
	}
	if p.scratch > 0 && (p.fromStart != 1 || p.full != 1) {
		t.Fatalf("the topic was read %d times, the source %d times", p.fromStart, p.full)
	}
	if !maps.Equal(got, want) || sourceRows != len(p.source) {
		t.Fatalf("found %v, want %v; %d rows, want %d", got, want, sourceRows, len(p.source))
	}
}

// Suspects are bounded by what their rows take, too, also while only their size is known.
func TestWideRowsThatDifferAreBoundedByTheirBytes(t *testing.T) {
	for _, byID := range []bool{true, false} {
		p := &pair{source: map[int64]schemas.Record{}, byID: byID, memory: 16 << 20, from: math.MinInt64,
			scratch: enough}
		for id := range int64(300) {
			wide := row(id, 1000, 7)
			wide.Value = append(wide.Value, make([]byte, 100_000)...)
			p.source[id] = wide
		}
		c, parts := p.compare(), 1
		for ; ; parts++ {
			if err := c.First(t.Context(), unheard); err != nil {
				t.Fatal(err)
			}
			if c.kept > 2<<20+132_000 || c.Suspects() == 0 {
				t.Fatalf("%d suspects keep %d bytes", c.Suspects(), c.kept)
			}
			for _, d := range c.Differences() {
				delete(p.source, d.ID)
				c.Forget(d.ID)
			}
			if c.kept != 0 {
				t.Fatalf("nothing keeps %d bytes", c.kept)
			}
			if _, last := c.Part(); last == math.MaxInt64 {
				break
			}
			c = c.Next()
		}
		if len(p.source) > 0 || parts < 10 { // of 30 MB
			t.Errorf("by id %t: %d rows were never met, in %d parts", byID, len(p.source), parts)
		}
	}
}

// Rows without a usable id may be rows of any part, and a row anywhere shows that the source is not empty. So
// each part knows of them, although the source is read for the first one alone.
func TestEachPartKnowsWhatTheSourceShowedWithoutAnID(t *testing.T) {
	p := &pair{source: map[int64]schemas.Record{0: row(0, 1000, 7)}, from: math.MinInt64,
		rejects: []schemas.Reject{{Row: []byte("no id")}}, memory: littleMemory,
		scratch: enough, maxSuspects: 100}
	for id := range int64(700) {
		p.publish(row(id, 1000, 7))
	}
	parts := 0
	for c := p.compare(); ; c = p.compare() { // each one is new, as in a sweep
		parts++
		if err := c.First(t.Context(), unheard); err != nil {
			t.Fatal(err)
		}
		_, last := c.Part()
		if r := c.Report(); r.Nameless != 1 || len(c.Nameless()) != 1 || !r.Shown {
			t.Errorf("to %d: %+v, %d without an id", last, r, len(c.Nameless()))
		}
		if p.from, p.before = last+1, c; last == math.MaxInt64 {
			break
		}
	}
	if parts < 2 || p.full != 1 {
		t.Errorf("%d parts, and the source was read %d times", parts, p.full)
	}
}

// made are n equal rows with ids from 0 on, on both sides, that take no memory.
func made(n, memory int64, heap func()) Config {
	value := row(0, 1000, 7).Value
	published := watermark.Published{UpdatedAt: schemas.InstantOfMillis(1000), Hash: schemas.Hash(value)}
	return Config{Scratch: 2 * n * 24, Start: schemas.MinInstant, CreatedAt: createdAt,
		Now: time.Now, Memory: memory, ByID: true,
		Topic: func(_ context.Context, from []int64, wanted func(int64) bool,
			fold func(watermark.Published) error) ([]int64, error) {
			if from != nil {
				return from, nil
			}
			for i := range n { // in no order of ids
				if published.ID = i * 7_368_787 % n; wanted == nil || wanted(published.ID) {
					if err := fold(published); err != nil {
						return nil, err
					}
				}
			}
			return []int64{n}, nil
		},
		Source: func(context.Context, []Suspect) iter.Seq2[Answer, error] {
			return func(yield func(Answer, error) bool) {
				rows := make([]schemas.Record, 1)
				for id := range n {
					rows[0] = schemas.Record{ID: id, UpdatedAt: published.UpdatedAt, Value: value}
					if !yield(Answer{Rows: rows}, nil) {
						return
					}
				}
				heap()
			}
		}}
}

// The bound is in bytes: of the process's own memory, with what lies outside the heap.
func TestAComparisonKeepsToItsMemory(t *testing.T) {
	n, memory := int64(2_000_000), int64(16<<20)
	if os.Getenv("STORESTREAM_LONG") != "" {
		n, memory = 50_000_000, 128<<20
	}
	for _, byID := range []bool{true, false} {
		runtime.GC()
		before, peak := resident(t), int64(0)
		cfg := made(n, memory, func() { peak = max(peak, resident(t)) })
		cfg.From, cfg.ByID = math.MinInt64, byID
		c := New(cfg)
		if err := c.First(t.Context(), unheard); err != nil {
			t.Fatal(err)
		}
		_, last := c.Part()
		if r := c.Report(); c.Suspects() != 0 || last != math.MaxInt64 || r.SourceRows != int(n) ||
			r.TopicRows != int(n) {
			t.Errorf("by id %t: %d suspects up to %d, %+v", byID, c.Suspects(), last, r)
		}
		if peak-before > memory {
			t.Errorf("by id %t: %d bytes, %d are allowed", byID, peak-before, memory)
		}
	}
}

// Between two parts others may read for their sweeps.
func TestWhatLaterPartsNeedOfAReadingTakesNoMemory(t *testing.T) {
	const n, memory = 1_300_000, 128 << 20
	for _, scratch := range []int64{n * 24, 0} {
		debug.FreeOSMemory()
		before := resident(t)
		cfg := made(n, memory, func() {})
		cfg.From, cfg.Scratch, cfg.MaxSuspects = math.MinInt64, scratch, 1000
		cfg.Topic = func(context.Context, []int64, func(int64) bool,
			func(watermark.Published) error) ([]int64, error) {
			return []int64{0}, nil
		}
		c := New(cfg)
		if err := c.First(t.Context(), unheard); err != nil {
			t.Fatal(err)
		}
		debug.FreeOSMemory()
		if took := resident(t) - before; c.Suspects() == 0 || took > memory/8 {
			t.Errorf("%d suspects, and %d bytes are taken with a file of %d", c.Suspects(), took, scratch)
		}
	}
}

// resident is the bytes of this process's memory that are in use.
func resident(t *testing.T) int64 {
	t.Helper()
	text, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Skip("this system does not say how much memory a process uses")
	}
	var kib int64
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			for _, digit := range rest {
				if digit >= '0' && digit <= '9' {
					kib = kib*10 + int64(digit-'0')
				}
			}
		}
	}
	return kib << 10
}
