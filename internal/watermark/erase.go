package watermark

import "github.com/storestream/storestream/schemas"

// Erase is a row to delete from the topic once the source has it no longer. A request named it.
type Erase struct {
	// Request, RequestUID and ID are the ids of request and row.
	Request    int64  `json:"request"`
	RequestUID string `json:"request_uid,omitempty"`
	ID         int64  `json:"id"`
	// Confirmed is set if the request confirmed the deletion. The day's budget then does not limit it.
	Confirmed bool `json:"confirmed,omitempty"`
}

// Erased is the result of an Erase.
type Erased struct {
	// Request, RequestUID and ID are as in `erase`.
	Request    int64  `json:"request"`
	RequestUID string `json:"request_uid,omitempty"`
	ID         int64  `json:"id"`
	// At is when it ended.
	At schemas.Instant `json:"at"`
	// Left is why the row stays. It is "" if the topic has a tombstone for it.
	Left string `json:"left,omitempty"`
}

// NoSuchRow is Erased.Left of a row that the topic does not hold.
const NoSuchRow = "the topic holds no such row"

const (
	// MostErased limits the rows of a request, and the results that a watermark keeps.
	MostErased = 20
	// mostErase limits the rows that wait. Further rows are refused.
	mostErase = 5 * MostErased
)

// AcceptErase adds the rows of a request to those that are to be erased. The caller has to take out of the
// request a confirmation that is not valid any more.
func (w *Watermark) AcceptErase(r Request, at schemas.Instant) {
	confirmed := r.ConfirmedDeletes >= len(r.Rows)
	for _, id := range r.Rows {
		e := Erase{Request: r.ID, RequestUID: r.UID, ID: id, Confirmed: confirmed}
		if len(w.Erase) >= mostErase {
			w.Erased = append(w.Erased[:len(w.Erased):len(w.Erased)], e.ended(at, "too many rows wait to be erased"))
			continue
		}
		w.Erase = append(w.Erase[:len(w.Erase):len(w.Erase)], e) // not in place: a transaction may hold the old one
	}
	w.Erased = lastErased(w.Erased)
}

// EndErase notes the results of the rows in left: why a row stays, or "" if it was deleted.
func (w *Watermark) EndErase(left map[int64]string, at schemas.Instant) {
	var waiting []Erase
	ended := w.Erased[:len(w.Erased):len(w.Erased)]
	for _, e := range w.Erase {
		if why, over := left[e.ID]; over {
			ended = append(ended, e.ended(at, why))
		} else {
			waiting = append(waiting, e)
		}
	}
	w.Erase, w.Erased = waiting, lastErased(ended)
}

func (e *Erase) ended(at schemas.Instant, left string) Erased {
	return Erased{Request: e.Request, RequestUID: e.RequestUID, ID: e.ID, At: at, Left: left}
}

func lastErased(all []Erased) []Erased { return all[max(0, len(all)-MostErased):] }
