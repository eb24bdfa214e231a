package watermark

import "time"

// DeadLetters are rows of one resource that cannot be published, for one reason. They are named by id: their
// content is in the topic alone.
type DeadLetters struct {
	// Field and Error are the broken field and its expected form. Field is "" for the row as a whole. Error
	// never holds a value.
	Field string `json:"field,omitzero"`
	Error string `json:"error"`
	// Rows and IDs are their number, and the ids of the newest. A row without a usable id has 16 hash digits
	// instead.
	Rows int      `json:"rows"`
	IDs  []string `json:"ids"`
	// First and Latest are the times of the oldest and newest letter.
	First  time.Time `json:"first"`
	Latest time.Time `json:"latest"`
}
