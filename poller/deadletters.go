package poller

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"go.uber.org/zap"

	"github.com/storestream/storestream/internal/metrics"
	"github.com/storestream/storestream/internal/watermark"
	"github.com/storestream/storestream/schemas"
)

// deadLetters are the dead letters of one resource: what the topic holds of them, and what is to be written.
type deadLetters struct {
	cfg  *Config
	held map[string]deadLetter // by key
	most int                   // watermark.MaxDeadLetters
	// beyond are the rows for whose letters there was no room.
	beyond leftovers
	// round counts the sweeps: a sweep takes out the letters that nobody has met since it began.
	round int
}

type deadLetter struct {
	hash uint64 // of the row
	met  int    // in which round a read last met the row as one that cannot be published
}

func newDeadLetters(cfg *Config) *deadLetters {
	d := &deadLetters{cfg: cfg, held: make(map[string]deadLetter, len(cfg.DeadLetters)),
		most: watermark.MaxDeadLetters, beyond: newLeftovers()}
	for key, hash := range cfg.DeadLetters {
		d.held[key] = deadLetter{hash: hash}
	}
	return d
}

func (d *deadLetters) key(r *schemas.Reject) string {
	return watermark.DeadLetterKey(d.cfg.Resource.Name, *r)
}

// write puts the dead letter of a row into tx, unless the same one is there already: a restart does not
// repeat it, or there are as many as one resource may have: then settled stays before the row, so that later
// passes meet it again.
func (d *deadLetters) write(tx *watermark.Transaction, r *schemas.Reject) {
	if d.met(r) {
		d.cfg.Metrics.Suppressed(metrics.Seen).Inc()
		return
	}
	key, field := d.key(r), r.Field
	if _, there := d.held[key]; !there && len(d.held) >= d.most {
		d.beyond.add(r.UpdatedAt)
		return
	}
	d.held[key] = deadLetter{hash: watermark.DeadLetterHash(r.Row), met: d.round}
	letter := watermark.DeadLetter{Key: key, Row: r.Row, Source: d.cfg.SourceName, Field: field, Err: r.Err}
	tx.DeadLetters = append(tx.DeadLetters, letter)
	field = cmp.Or(field, "row")
	d.cfg.Metrics.DeadLetters(field).Inc()
	d.cfg.Log.Warn("row cannot be published, written to dead letters", zap.String("letter", key),
		zap.String("field", field), zap.String("why", r.Err))
}

// says is what people are told of rows for whose letters there was no room, "" if there are none.
func (d *deadLetters) says() string {
	beyond := d.beyond.all().rows
	if beyond == 0 {
		return ""
	}
	return fmt.Sprintf("more than %d rows cannot be published, as many as may have dead letters: %d went "+
		"without. Mend them or what makes them; "+
		"a sweep takes out the letters of rows that are well or deleted", d.most, beyond)
}

// writeTooLarge puts the dead letter of a row into tx whose record of the given size no broker would take. It
// names the row and does not show it: how large it is in JSON, nobody knows before it is made.
func (d *deadLetters) writeTooLarge(tx *watermark.Transaction, row *schemas.Record, size int) {
	r := &schemas.Reject{ID: row.ID, HasID: true, UpdatedAt: row.UpdatedAt,
		Err: fmt.Sprintf("the record takes %d bytes, and at most %d go into the topic (its max.message.bytes, or "+
			"8 MiB if that is more)", size, d.cfg.MaxRecordBytes)}
	r.Row = fmt.Appendf(nil, `{"id":%d,"bytes":%d,"hash":"%016x"}`, row.ID, size,
		d.cfg.Resource.RejectHash(row.Value))
	d.write(tx, r)
}

// met notes that a read met a row which cannot be published, and says whether the topic holds just this dead
// letter.
func (d *deadLetters) met(r *schemas.Reject) bool {
	key := d.key(r)
	held, there := d.held[key]
	if there {
		held.met = d.round
		d.held[key] = held
	}
	return there && held.hash == watermark.DeadLetterHash(r.Row)
}

// metInRound says whether a read has met row id, since the sweep began, as one that cannot be published.
func (d *deadLetters) metInRound(id int64) bool {
	letter, there := d.held[d.key(&schemas.Reject{ID: id, HasID: true})]
	return there && letter.met == d.round
}

// has says whether row id has a dead letter.
func (d *deadLetters) has(id int64) bool {
	_, there := d.held[d.key(&schemas.Reject{ID: id, HasID: true})]
	return there
}

// takeOut removes the dead letter of a row that can be published again, if it has one.
func (d *deadLetters) takeOut(tx *watermark.Transaction, id int64) {
	if len(d.held) == 0 {
		return
	}
	key := d.key(&schemas.Reject{ID: id, HasID: true})
	if _, there := d.held[key]; there {
		d.remove(tx, key)
		d.cfg.Log.Info("row can be published again, taken out of dead letters", zap.String("letter", key))
	}
}

func (d *deadLetters) remove(tx *watermark.Transaction, key string) {
	delete(d.held, key)
	tx.DeadLetters = append(tx.DeadLetters, watermark.DeadLetter{Key: key, Source: d.cfg.SourceName})
}

// beginRound begins a sweep, and returns the rows that have a dead letter, by id. Nobody knows yet on which
// day they are.
func (d *deadLetters) beginRound() map[int64]Suspect {
	d.round++
	rows := map[int64]Suspect{}
	for key, letter := range d.held {
		if id, ok := watermark.DeadLetterRow(key, letter.hash); ok {
			rows[id] = Suspect{ID: id, UpdatedAt: schemas.MinInstant, CreatedAt: schemas.MinInstant}
		}
	}
	return rows
}

// unmet returns the keys of the dead letters whose rows nobody has met since the round began.
func (d *deadLetters) unmet() []string {
	var keys []string
	for _, key := range slices.Sorted(maps.Keys(d.held)) {
		if d.held[key].met < d.round {
			keys = append(keys, key)
		}
	}
	return keys
}
