package dialect

import (
	"cmp"
	"fmt"
	"maps"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/storestream/storestream/internal/watermark"
	"github.com/storestream/storestream/schemas"
)

// Dialect holds the known values of the properties. The sources of one process share one, because one service
// answers all of them. It is safe for concurrent use.
type Dialect struct {
	log *zap.Logger
	now func() schemas.Instant // stamps proofs

	mu  sync.Mutex
	set map[string]string // by the configuration, as far as no answer has contradicted it
	// found has the proofs by answers. It is replaced when it changes: watermarks hold the old ones.
	found map[string]watermark.Proof
}

// mostEvidence bounds the text of a proof, in bytes.
const mostEvidence = 500

// Auto is the setting of a property that answers are to show.
const Auto = "auto"

// New returns a dialect that knows only the values in set, by property name. log may be nil.
func New(set map[string]string, log *zap.Logger) *Dialect {
	wall := func() schemas.Instant { return schemas.InstantOf(time.Now()) }
	d := &Dialect{log: cmp.Or(log, zap.NewNop()), now: wall, set: map[string]string{}}
	for name, value := range set {
		if value != "" && value != Auto {
			d.set[name] = value
		}
	}
	return d
}

// Load takes over the proofs of a watermark. Of two proofs the later one counts.
//
// Another program may have written the watermark. So Load ignores a value that no answer proves: if counts
// were not believed, a day would be closed although the service shows only a part of it. Load also ignores
// long evidence: the watermarks of all resources get a copy, and would grow too large for their topic.
func (d *Dialect) Load(found map[string]watermark.Proof) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, p := range Properties() {
		proof, ok := found[p.Name]
		if _, means := p.Means[proof.Value]; !ok || p.OnlySet || !means && proof.Value != "" ||
			len(proof.Evidence) > mostEvidence {
			continue
		}
		known, some := d.found[p.Name]
		now := d.now()
		// The proof of a clock that is ahead outdates no other, also if it is loaded again and again.
		if some && (proof.Since > now || proof.Since <= known.Since) {
			continue
		}
		proof.Since = min(proof.Since, now)
		d.store(p, proof)
	}
}

func (d *Dialect) store(p *Property, proof watermark.Proof) {
	found := maps.Clone(d.found)
	if found == nil {
		found = map[string]watermark.Proof{}
	}
	found[p.Name] = proof
	d.found = found
}

// Known is a property and its value, for people.
type Known struct {
	*Property
	// Value is "" if it is unknown. Evidence and Since are zero if the value was set, or was never known.
	watermark.Proof
	Set bool // by the configuration
}

// String describes k in a line.
func (k Known) String() string {
	text := "not known: the service is asked so that every answer is safe"
	if k.Value != "" {
		text = k.Value + ": " + k.Means[k.Value]
	}
	switch {
	case k.Set:
		text += " (by the configuration)"
	case k.Evidence != "":
		text += fmt.Sprintf(" (%s, %s)", k.Evidence, k.Since.Time().Format(time.RFC3339))
	}
	return text
}

// Known returns all properties with their values.
func (d *Dialect) Known() (all []Known) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, p := range Properties() {
		known := Known{Property: p, Proof: d.found[p.Name]}
		if value := d.set[p.Name]; value != "" {
			known.Proof, known.Set = watermark.Proof{Value: value}, true
		}
		all = append(all, known)
	}
	return all
}

// Found returns the proofs by answers, for a watermark, or nil. A proof without a value says that an earlier
// one was withdrawn. The caller must not change the map.
func (d *Dialect) Found() map[string]watermark.Proof {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.found
}

// Value returns the value of p, "" if it is unknown.
func (d *Dialect) Value(p *Property) string {
	d.mu.Lock()
	defer d.mu.Unlock()
	if value, ok := d.set[p.Name]; ok {
		return value
	}
	return d.found[p.Name].Value
}

// Prove notes that an answer has shown the value of p. Value "" means that it contradicts the known one: then
// p is unknown from now on. The first evidence of a value is kept.
func (d *Dialect) Prove(p *Property, value, evidence string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	before, known := d.found[p.Name]
	set := d.set[p.Name]
	if set != "" && set != value {
		d.log.Warn("an answer of the service contradicts a setting of store.dialect: the answer counts",
			zap.String("property", p.Name), zap.String("set", set), zap.String("evidence", evidence))
		delete(d.set, p.Name)
	}
	if before.Value == value {
		return
	}
	// A proof is later than the one that it contradicts, even if the clock went back: Load goes by that.
	proof := watermark.Proof{Value: value, Evidence: evidence, Since: d.now()}
	if known {
		proof.Since = max(proof.Since, before.Since+1)
	}
	d.store(p, proof)
	fields := []zap.Field{zap.String("property", p.Name), zap.String("evidence", evidence)}
	switch {
	case value == "":
		d.log.Warn("the service answers in another way than before: the property is unknown again",
			append(fields, zap.String("was", before.Value))...)
	case value != p.Plain:
		d.log.Warn(p.Means[value], fields...)
	case before.Value != "":
		d.log.Info(p.Means[value], fields...)
	default:
		d.log.Debug(p.Means[value], fields...)
	}
}
