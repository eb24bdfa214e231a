package watermark

import (
	"time"

	"github.com/storestream/storestream/schemas"
)

// Pause is a rest that a person asked for: the owner does not publish, and keeps the resource.
type Pause struct {
	// Since and Until are when it was accepted, and when it ends. If Until is nil, the pause lasts until a
	// person resumes the resource.
	Since schemas.Instant  `json:"since"`
	Until *schemas.Instant `json:"until,omitempty"`
	// Why and By are those of the request.
	Why string `json:"why,omitempty"`
	By  string `json:"by"`
}

// Lasts reports whether the pause goes on. There may be none.
func (p *Pause) Lasts(now schemas.Instant) bool {
	return p != nil && (p.Until == nil || now < *p.Until)
}

// Text says who has paused the resource, since when, until when, and why. Its times are to the second.
func (p *Pause) Text() string {
	text := "paused by " + p.By + " since " + p.Since.Time().Format(time.RFC3339)
	if p.Until != nil {
		text += ", until " + p.Until.Time().Format(time.RFC3339)
	}
	if p.Why != "" {
		text += ": " + p.Why
	}
	return text
}
