package watermark

import "time"

// DeadLetters are rows of one resource that cannot be published, for one reason. They are named by id: their
// content is in the topic alone.
type DeadLetters struct {
	Field string `json:"field,omitzero"` // "" for the row as a whole
	Error string `json:"error"`          // never holds a value
	Rows  int    `json:"rows"`
	// IDs are a few of the rows, the newest first: an id, or 16 hash digits for a row without a usable one.
	IDs []string `json:"ids"`
	// First and Latest are when the oldest and the newest of these letters were written.
	First  time.Time `json:"first"`
	Latest time.Time `json:"latest"`
}
