package watermark

import "github.com/storestream/storestream/schemas"

// Proof is what an answer of the service has shown of a question that its document leaves open.
type Proof struct {
	// Value is the answer. It is "" if a later answer contradicted an earlier proof.
	Value string `json:"value"`
	// Evidence and Since say which answer showed it, and when. The clock is that of the instance that met it.
	Evidence string          `json:"evidence,omitempty"`
	Since    schemas.Instant `json:"since"`
}
