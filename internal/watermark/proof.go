package watermark

import "github.com/storestream/storestream/schemas"

// Proof is what an answer of the service has shown of a question that its document leaves open.
type Proof struct {
	// Value is the answer to the question. "" means that an earlier proof was contradicted, and the value is
	// unknown again.
	Value string `json:"value"`
	// Evidence says for people which answer showed it.
	Evidence string `json:"evidence,omitempty"`
	// Since is when, by the clock of the instance that met that answer.
	Since schemas.Instant `json:"since"`
}
