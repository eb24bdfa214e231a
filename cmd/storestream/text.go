package main

import (
	"github.com/storestream/storestream/internal/terminal"
	"github.com/storestream/storestream/schemas"
)

// ago is how long before now an instant was, in words; "-" where it is not known.
func ago(i *schemas.Instant, now schemas.Instant) string {
	switch {
	case i == nil:
		return "-"
	case *i > now:
		return "in " + terminal.Duration(i.Sub(now))
	}
	return terminal.Duration(now.Sub(*i)) + " ago"
}

// instantText is i to the second, "-" where it is not known.
func instantText(i schemas.Instant) string {
	if i == schemas.MinInstant {
		return "-"
	}
	return i.Time().Format("2006-01-02T15:04:05Z")
}
