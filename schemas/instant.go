package schemas

import (
	"fmt"
	"time"
)

// Instant is a UTC instant in microseconds since 1970-01-01T00:00:00Z. That is the finest that the service's
// database keeps, so watermarks keep it too: one that lost the microseconds would skip rows, or send the last
// one for ever. Avro values hold milliseconds, floored.
type Instant int64

const (
	// MinInstant is 0001-01-01T00:00:00Z, "before every row". A watermark that has never moved stands here.
	MinInstant Instant = -62135596800 * 1e6
	// MaxInstant is 9999-12-31T23:59:59.999999Z, the last instant that RFC 3339 can write. A row stamped outside
	// [MinInstant, MaxInstant] breaks the contract.
	MaxInstant Instant = 253402300799*1e6 + 999999
)

// instantLayout always writes six digits, so that watermarks compare as text too.
const instantLayout = "2006-01-02T15:04:05.000000Z"

// InstantOf floors t to the microsecond.
func InstantOf(t time.Time) Instant { return Instant(t.UnixMicro()) }

// Time is i as a UTC time.Time.
func (i Instant) Time() time.Time { return time.UnixMicro(int64(i)).UTC() }

// Add is i + d, held within [MinInstant, MaxInstant].
func (i Instant) Add(d time.Duration) Instant {
	return min(max(i+Instant(d.Microseconds()), MinInstant), MaxInstant)
}

// Sub is i - j, held within what a time.Duration can say (292 years).
func (i Instant) Sub(j Instant) time.Duration { return i.Time().Sub(j.Time()) }

// Millis is i in milliseconds since the epoch, floored (also before 1970): the unit of Avro values and of
// Kafka's record times.
func (i Instant) Millis() int64 { return int64(i.floor(1000)) }

// InstantOfMillis is the instant ms milliseconds after the epoch.
func InstantOfMillis(ms int64) Instant { return Instant(ms * 1000) }

// Day is the start of i's UTC day.
func (i Instant) Day() Instant {
	const day = 24 * 60 * 60 * 1e6
	return i.floor(day) * day
}

// floor is i in units, floored.
func (i Instant) floor(unit Instant) Instant {
	if i%unit < 0 {
		return i/unit - 1
	}
	return i / unit
}

// String is RFC 3339 in UTC with six digits of fraction.
func (i Instant) String() string { return i.Time().Format(instantLayout) }

// MarshalText writes what String returns.
func (i Instant) MarshalText() ([]byte, error) { return []byte(i.String()), nil }

// UnmarshalText reads a time in RFC 3339 from MinInstant to MaxInstant, and floors it to the microsecond.
func (i *Instant) UnmarshalText(text []byte) error {
	t, err := time.Parse(time.RFC3339Nano, string(text))
	if err != nil {
		return fmt.Errorf("time %q: expected RFC 3339, such as 2026-11-20T09:30:00Z", text)
	}
	if *i = InstantOf(t); *i < MinInstant || *i > MaxInstant {
		return fmt.Errorf("time %q lies outside the years 1 to 9999", text)
	}
	return nil
}
