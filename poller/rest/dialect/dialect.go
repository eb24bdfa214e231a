package dialect

import (
	"maps"
	"sync"

	"go.uber.org/zap"

	"github.com/storestream/storestream/internal/watermark"
	"github.com/storestream/storestream/schemas"
)

// Dialect is what is known of each property. The sources of one process share one, because one service
// answers all of them. It is safe for concurrent use.
type Dialect struct {
	log *zap.Logger
	now func() schemas.Instant

	mu  sync.Mutex
	set map[string]string // by the configuration, as far as no answer has contradicted it
	// found is what answers have shown. It is replaced when it changes: watermarks hold the old ones.
	found map[string]watermark.Proof
}

// New returns a dialect of which only the values in set are known, by property name. now is the clock that
// stamps proofs. log may be nil.
func New(set map[string]string, now func() schemas.Instant, log *zap.Logger) *Dialect {
	d := &Dialect{log: log, now: now, set: map[string]string{}}
	if log == nil {
		d.log = zap.NewNop()
	}
	for name, value := range set {
		if value != "" {
			d.set[name] = value
		}
	}
	return d
}

// Load takes over what a watermark says. Of two proofs the later one counts.
func (d *Dialect) Load(found map[string]watermark.Proof) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, p := range Properties() {
		proof, ok := found[p.Name]
		proof.Since = min(proof.Since, d.now()) // a clock that was ahead does not outdate later proofs
		known := d.found[p.Name]
		if _, means := p.Means[proof.Value]; !ok || !means && proof.Value != "" ||
			known != (watermark.Proof{}) && known.Since >= proof.Since {
			continue
		}
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

// Found returns what answers have shown, for a watermark. A proof without a value says that an earlier one
// was withdrawn. It is nil if there is none. The caller must not change it.
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

// IsSet tells whether the configuration says the value of p, and no answer has contradicted it.
func (d *Dialect) IsSet(p *Property) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.set[p.Name] != ""
}

// Prove notes that an answer has shown the value of p. The first evidence is kept.
func (d *Dialect) Prove(p *Property, value, evidence string) { d.change(p, value, evidence) }

// Refute notes that an answer contradicts the value of p, which is unknown from now on.
func (d *Dialect) Refute(p *Property, evidence string) { d.change(p, "", evidence) }

func (d *Dialect) change(p *Property, value, evidence string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	before, known := d.found[p.Name]
	set := d.set[p.Name]
	if set != "" && set != value {
		d.log.Warn("an answer of the service contradicts store.dialect."+p.Name+": the answer counts",
			zap.String("set", set), zap.String("evidence", evidence))
		delete(d.set, p.Name)
	}
	if before.Value == value {
		return
	}
	// A proof follows the one that it contradicts, whatever the clocks say: Load goes by that.
	proof := watermark.Proof{Value: value, Evidence: evidence, Since: d.now()}
	if known {
		proof.Since = max(proof.Since, before.Since+1)
	}
	d.store(p, proof)
	fields := []zap.Field{zap.String("property", p.Name), zap.String("evidence", evidence)}
	switch {
	case value == "":
		d.log.Warn("the service does not answer any more as it did: what was known is found out anew",
			append(fields, zap.String("was", before.Value))...)
	case value != p.Plain:
		d.log.Warn(p.Means[value], fields...)
	case before.Value != "":
		d.log.Info(p.Means[value], fields...)
	default:
		d.log.Debug(p.Means[value], fields...)
	}
}
