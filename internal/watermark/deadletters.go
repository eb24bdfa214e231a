package watermark

import "time"

// DeadLetters are rows of one resource that cannot be published, for one reason. They are named by id: their
// content is in the topic alone.
type DeadLetters struct {
	// Field is the field that breaks the contract. It is "" for the row as a whole.
	Field string `json:"field,omitzero"`
	// Error says what was expected. It never holds a value.
	Error string `json:"error"`
	// Rows is the number of these rows.
	Rows int `json:"rows"`
	// IDs lists the ids of the newest of them. A row without a usable id has 16 hash digits instead.
	IDs []string `json:"ids"`
	// First is when the oldest of these letters was written.
	First time.Time `json:"first"`
	// Latest is when the newest of these letters was written.
	Latest time.Time `json:"latest"`
}
