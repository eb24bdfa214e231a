package overview

import (
	"testing"
	"time"

	"github.com/storestream/storestream/config"
	"github.com/storestream/storestream/internal/watermark"
	"github.com/storestream/storestream/schemas"
)

// Whoever looks at three in the morning wants one answer first.
func TestAResourceIsUpToDateOrItIsSaidWhyNot(t *testing.T) {
	now := schemas.InstantOf(time.Date(2026, 11, 21, 3, 0, 0, 0, time.UTC))
	settings := config.Resource{Enabled: true, Interval: 30 * time.Second}
	for _, test := range []struct {
		name    string
		asOf    time.Duration // ago
		owner   string
		between bool
		late    string
	}{
		{"fresh", 3 * time.Second, "a", false, ""},
		{"within three intervals", 90 * time.Second, "a", false, ""},
		{"old", time.Hour, "a", false, "the last complete pass began 1h0m ago"},
		{"left", 10 * time.Minute, "", false, "no instance polls it, since 10m0s"},
		{"left a moment ago", 12 * time.Second, "", false, "no instance polls it, since 12s"},
		{"handed over", 12 * time.Second, "", true, ""},
	} {
		mark := watermark.New("orders")
		mark.AsOf, mark.Written = now.Add(-test.asOf), now
		r := of(mark, settings, now)
		r.Owner, r.Between = test.owner, test.between
		if got := r.Late(); got != test.late || r.Lag() != test.asOf {
			t.Errorf("%s: late %q, lag %s, expected %q, %s", test.name, got, r.Lag(), test.late, test.asOf)
		}
	}
	r := of(watermark.New("orders"), settings, now)
	if got := r.Late(); got != "nothing is published yet, and no instance polls it" || r.LagSeconds != nil {
		t.Errorf("before anything ran: %q", got)
	}
	r.Owner = "a"
	if got := r.Late(); got != "the first load is not finished" {
		t.Errorf("during the first load: %q", got)
	}
}
