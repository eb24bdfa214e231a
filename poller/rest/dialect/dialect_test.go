package dialect

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/storestream/storestream/internal/watermark"
	"github.com/storestream/storestream/schemas"
)

// clock is one that a test sets.
type clock struct{ at schemas.Instant }

func (c *clock) now() schemas.Instant { return c.at }

func newDialect(set map[string]string, c *clock, log *zap.Logger) *Dialect {
	d := New(set, log)
	d.now = c.now
	return d
}

func TestWhatWasProvenIsKnownToTheNextProcess(t *testing.T) {
	c := &clock{at("2026-11-20T12:00:00Z")}
	first := newDialect(nil, c, nil)
	if first.Found() != nil || first.Value(Days) != "" {
		t.Error("something is known from the start")
	}
	first.Prove(Days, Other, "a row")
	c.at++
	first.Prove(Days, Other, "another row")
	want := map[string]watermark.Proof{"days": {Value: Other, Evidence: "a row", Since: c.at - 1}}
	if !reflect.DeepEqual(first.Found(), want) {
		t.Errorf("found %+v", first.Found())
	}
	second := newDialect(nil, c, nil)
	second.Load(first.Found())
	if second.Value(Days) != Other || second.Value(UpdatedTo) != "" {
		t.Errorf("loaded %+v", second.Found())
	}
}

// The watermark of each resource has its copy, of another time. A withdrawal is newer than the proof that it
// withdraws, by whichever clock.
func TestOfSeveralWatermarksTheLatestProofCounts(t *testing.T) {
	c := &clock{at("2026-11-20T12:00:00Z")}
	d := newDialect(nil, c, nil)
	d.Prove(UpdatedTo, Midnight, "a row was missing")
	proven := d.Found()
	c.at = at("2026-11-20T11:00:00Z") // set back
	d.Prove(UpdatedTo, "", "a row of the day after")
	refuted := d.Found()
	ahead := map[string]watermark.Proof{"days": {Value: Other, Since: at("2030-01-01T00:00:00Z")}}
	c.at = at("2026-11-20T13:00:00Z")
	for _, order := range [][]map[string]watermark.Proof{{proven, refuted, ahead}, {ahead, refuted, proven}} {
		d := newDialect(nil, c, nil)
		for _, found := range order {
			d.Load(found)
		}
		if d.Value(UpdatedTo) != "" || d.Value(Days) != Other || d.Found()["days"].Since != c.at {
			t.Errorf("loaded %+v", d.Found())
		}
	}
	// Of a newer storestream: a property, or a value, that this one does not know.
	d = newDialect(nil, c, nil)
	d.Load(map[string]watermark.Proof{"days": {Value: "lunar"}, "tea": {Value: "green"}})
	if d.Found() != nil {
		t.Errorf("loaded %+v", d.Found())
	}
}

// The watermark of a resource without an owner stays as it is. All instances load it every few seconds.
func TestAProofOfTheFutureIsWithdrawnOnceForAll(t *testing.T) {
	c := &clock{at("2026-11-20T12:00:00Z")}
	d := newDialect(nil, c, nil)
	ahead := map[string]watermark.Proof{"updated_to": {Value: Midnight, Since: at("2030-01-01T00:00:00Z")}}
	d.Load(ahead)
	if d.Value(UpdatedTo) != Midnight {
		t.Fatalf("loaded %+v", d.Found())
	}
	c.at = c.at.Add(time.Second)
	d.Prove(UpdatedTo, "", "a row of the day after")
	c.at = c.at.Add(time.Second)
	d.Load(ahead)
	if d.Value(UpdatedTo) != "" {
		t.Errorf("loaded %+v", d.Found())
	}
}

// What is loaded goes into the watermarks of all resources, with each commit.
func TestAProofOfAMegabyteIsNotLoaded(t *testing.T) {
	d := New(nil, nil)
	d.Load(map[string]watermark.Proof{"days": {Value: Other, Evidence: strings.Repeat("row ", 1<<18), Since: 1}})
	if d.Found() != nil {
		t.Errorf("loaded %d bytes of evidence", len(d.Found()["days"].Evidence))
	}
}

// No answer proves what a count is worth, so such a proof is forged. If it counted, a day would be closed
// although its count contradicts the last page.
func TestNoWatermarkSaysWhatACountIsWorth(t *testing.T) {
	d := New(nil, nil)
	d.Load(map[string]watermark.Proof{"count": {Value: Estimate, Evidence: "a row"}})
	if d.Value(Count) != "" || d.Found() != nil {
		t.Errorf("a watermark says that counts are %q; found %+v", d.Value(Count), d.Found())
	}
}

func TestASettingCountsUntilAnAnswerContradictsIt(t *testing.T) {
	c := &clock{at("2026-11-20T12:00:00Z")}
	core, logs := observer.New(zap.InfoLevel)
	d := newDialect(map[string]string{"days": UTC}, c, zap.New(core))
	d.Load(map[string]watermark.Proof{"days": {Value: Other, Since: 1}})
	if d.Value(Days) != UTC {
		t.Error("what was proven before counts more than the setting")
	}
	d.Prove(Days, Other, "a row of the neighbor")
	if d.Value(Days) != Other || logs.FilterMessageSnippet("contradicts a setting").Len() != 1 {
		t.Errorf("%s; log %+v", d.Value(Days), logs.All())
	}
}

// People hear once of what differs from the document's plain words, and of each withdrawal.
func TestWhatIsFoundOutIsLoggedOnce(t *testing.T) {
	core, logs := observer.New(zap.InfoLevel)
	c := &clock{at("2026-11-20T12:00:00Z")}
	d := newDialect(nil, c, zap.New(core))
	d.Prove(CreatedTo, Whole, "a row")
	if logs.Len() != 0 {
		t.Errorf("what the document says is news: %+v", logs.All())
	}
	d.Prove(UpdatedTo, Midnight, "a row")
	d.Prove(UpdatedTo, Midnight, "a row")
	d.Prove(UpdatedTo, "", "another row")
	d.Prove(UpdatedTo, "", "another row")
	if logs.Len() != 2 {
		t.Errorf("log %+v", logs.All())
	}
}
