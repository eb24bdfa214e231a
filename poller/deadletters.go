package poller

import (
	"fmt"
	"maps"
	"slices"

	"github.com/storestream/storestream/internal/watermark"
	"github.com/storestream/storestream/schemas"
)

// deadLetters are the dead letters of one resource, as the topic has them after the transaction in hand.
type deadLetters struct {
	settings *Settings
	known    map[string]uint64 // the hash of the row of each letter in the topic, by key
	most     int               // watermark.MaxDeadLetters
	// beyond are the rows for whose letters there was no room.
	beyond leftovers
	// met has the keys of rows that a read has met as ones that cannot be published, since the last sweep
	// began. A sweep takes out the letters of the other rows without a usable id. It looks the rows with an id
	// up.
	met map[string]bool
}

// newDeadLetters begins with the letters in the topic, by the hash of their row.
func newDeadLetters(settings *Settings, inTopic map[string]uint64) *deadLetters {
	return &deadLetters{settings: settings, known: maps.Collect(maps.All(inTopic)), met: map[string]bool{},
		most: watermark.MaxDeadLetters, beyond: newLeftovers()}
}

func (d *deadLetters) key(r *schemas.Reject) string {
	return watermark.DeadLetterKey(d.settings.Resource.Name, *r)
}

// write puts the dead letter of a row into tx. It returns false if the topic has just this one: a restart
// does not repeat it. If a resource has as many as it may have, write leaves it out. Then settled stays
// before the row, so that later passes read it again.
func (d *deadLetters) write(tx *watermark.Transaction, r *schemas.Reject) bool {
	if d.meet(r) {
		return false
	}
	key := d.key(r)
	if _, there := d.known[key]; !there && len(d.known) >= d.most {
		d.beyond.add(r.UpdatedAt)
		return true
	}
	d.known[key], d.met[key] = watermark.DeadLetterHash(r.Row), true
	tx.DeadLetters = append(tx.DeadLetters, watermark.DeadLetter{Key: key, Row: r.Row,
		Source: d.settings.SourceName, Field: r.Field, Err: r.Err})
	return true
}

// delays returns why rows without room for their letters delay settling, "" if there are none.
func (d *deadLetters) delays() string {
	beyond := d.beyond.rows()
	if beyond == 0 {
		return ""
	}
	return fmt.Sprintf("more than %d rows cannot be published, as many as may have dead letters: %d went "+
		"without. Mend them or what makes them; "+
		"a sweep takes out the letters of rows that are well or deleted", d.most, beyond)
}

// tooLarge returns the reject of a row whose record takes size bytes, which is more than most, the limit of
// the topic. The reject names the row and does not show it, because the row's JSON may be large too.
func (d *deadLetters) tooLarge(row *schemas.Record, size, most int) *schemas.Reject {
	return &schemas.Reject{ID: row.ID, HasID: true, UpdatedAt: row.UpdatedAt,
		Err: fmt.Sprintf("the record takes %d bytes, and at most %d go into the topic (its max.message.bytes, or "+
			"8 MiB if that is more)", size, most),
		Row: fmt.Appendf(nil, `{"id":%d,"bytes":%d,"hash":"%016x"}`, row.ID, size,
			d.settings.Resource.RejectHash(row.Value))}
}

// meet notes that a read met a row which cannot be published, and reports whether the topic holds just this
// dead letter.
func (d *deadLetters) meet(r *schemas.Reject) bool {
	key := d.key(r)
	hash, there := d.known[key]
	if there {
		d.met[key] = true
	}
	return there && hash == watermark.DeadLetterHash(r.Row)
}

// takeOut takes out the dead letter of a row, if there is one, and returns its key.
func (d *deadLetters) takeOut(tx *watermark.Transaction, id int64) (key string, there bool) {
	key = d.key(&schemas.Reject{ID: id, HasID: true})
	if _, there = d.known[key]; there {
		d.remove(tx, key)
	}
	return key, there
}

// has reports whether the row with this id has a dead letter.
func (d *deadLetters) has(id int64) bool {
	_, there := d.known[d.key(&schemas.Reject{ID: id, HasID: true})]
	return there
}

func (d *deadLetters) remove(tx *watermark.Transaction, key string) {
	delete(d.known, key)
	delete(d.met, key)
	tx.DeadLetters = append(tx.DeadLetters, watermark.DeadLetter{Key: key, Source: d.settings.SourceName})
}

// beginRound begins a sweep, and returns the rows that have a dead letter: its hash, by id.
func (d *deadLetters) beginRound() map[int64]uint64 {
	clear(d.met)
	rows := map[int64]uint64{}
	for key, hash := range d.known {
		if id, ok := watermark.DeadLetterRow(key, hash); ok {
			rows[id] = hash
		}
	}
	return rows
}

// unmet returns the keys of the dead letters of rows without a usable id that no read has met since the round
// began.
func (d *deadLetters) unmet() []string {
	var keys []string
	for _, key := range slices.Sorted(maps.Keys(d.known)) {
		if _, ok := watermark.DeadLetterRow(key, d.known[key]); !ok && !d.met[key] {
			keys = append(keys, key)
		}
	}
	return keys
}
