package postgres

import (
	"cmp"
	"math"

	"github.com/storestream/storestream/internal/watermark"
	"github.com/storestream/storestream/schemas"
)

// epoch is 2000-01-01T00:00:00Z, from which PostgreSQL counts microseconds.
const epoch schemas.Instant = 946684800 * 1e6

// key is a place in the order of a read, (updated_at, id) or id. at is in PostgreSQL's own microseconds and
// no Instant, because -infinity, infinity and years that RFC 3339 cannot write are places in the order too.
type key struct{ at, id int64 }

// beforeAll is the place before every row.
var beforeAll = key{at: math.MinInt64, id: math.MinInt64}

// keyAt is the place before every row stamped from or later, except a row of the smallest int64 as its id.
// MinInstant is before everything, -infinity included.
func keyAt(from schemas.Instant) key { return key{at: microsOf(from), id: math.MinInt64} }

// keyOf returns the place at which a pass continues after a crash. A stamp that no Instant can hold was
// clamped in the cursor. Then the pass continues before all rows with that stamp, which repeats rows and
// skips none.
func keyOf(c *watermark.Cursor) key {
	k := key{at: microsOf(c.UpdatedAt), id: c.ID}
	if c.UpdatedAt <= schemas.MinInstant || c.UpdatedAt >= schemas.MaxInstant {
		k.id = math.MinInt64
	}
	return k
}

func (k key) after(o key) bool { return cmp.Or(cmp.Compare(k.at, o.at), cmp.Compare(k.id, o.id)) > 0 }

// instant is k's stamp, held within [MinInstant, MaxInstant]: all rows with an earlier one lie before k.
func (k key) instant() schemas.Instant {
	if k.at > int64(schemas.MaxInstant-epoch) {
		return schemas.MaxInstant
	}
	return max(schemas.Instant(k.at)+epoch, schemas.MinInstant)
}

// microsOf returns i in PostgreSQL's microseconds. It is the same for a naive timestamp, which means UTC
// here, in any zone of the session. MinInstant becomes -infinity.
func microsOf(i schemas.Instant) int64 {
	if i <= schemas.MinInstant {
		return math.MinInt64
	}
	return int64(i - epoch)
}
