package schemas

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"time"
)

// Instant is a UTC instant in microseconds since 1970-01-01T00:00:00Z. The service's database keeps
// microseconds, so watermarks keep them too. A watermark that lost them would skip rows, or send the last one
// again and again. Avro values hold milliseconds, floored.
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

// Time returns i as a UTC time.Time.
func (i Instant) Time() time.Time { return time.UnixMicro(int64(i)).UTC() }

// Add returns i + d, limited to [MinInstant, MaxInstant].
func (i Instant) Add(d time.Duration) Instant {
	return min(max(i+Instant(d.Microseconds()), MinInstant), MaxInstant)
}

// Sub returns i - j, limited to the range of a time.Duration (292 years).
func (i Instant) Sub(j Instant) time.Duration { return i.Time().Sub(j.Time()) }

// Millis returns i in milliseconds since the epoch, floored (also before 1970). Avro values and Kafka's
// record times have this unit.
func (i Instant) Millis() int64 { return int64(i.floor(1000)) }

// InstantOfMillis returns the instant ms milliseconds after the epoch.
func InstantOfMillis(ms int64) Instant { return Instant(ms * 1000) }

// Day returns the start of i's UTC day.
func (i Instant) Day() Instant {
	const day = 24 * 60 * 60 * 1e6
	return i.floor(day) * day
}

// floor returns i in units, floored.
func (i Instant) floor(unit Instant) Instant {
	if i%unit < 0 {
		return i/unit - 1
	}
	return i / unit
}

// String returns i in RFC 3339, in UTC and with six digits of fraction.
func (i Instant) String() string { return i.Time().Format(instantLayout) }

// MarshalText returns the text of String.
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

// timeCodec is the codec of timestamps.
var timeCodec = &codec{
	kind:     "a timestamp",
	avroType: `{"type":"long","logicalType":"timestamp-millis"}`,
	expected: "a time in RFC 3339 between " + MinInstant.String() + " and " + MaxInstant.String(),
	columns:  []uint32{oidTimestamp, oidTimestamptz, oidText, oidVarchar, oidBPChar},
	fromText: func(b, text []byte) ([]byte, bool) {
		t, ok := parseInstant(text)
		return binary.AppendVarint(b, t.Millis()), ok
	},
	fromColumn: func(b []byte, oid uint32, v []byte) ([]byte, bool) {
		t, ok := readTimestamp(v)
		if oid != oidTimestamp && oid != oidTimestamptz {
			t, ok = parseInstant(v)
		}
		return binary.AppendVarint(b, t.Millis()), ok
	},
	size: func(b []byte) int {
		ms, n := binary.Varint(b)
		if n <= 0 || ms < MinInstant.Millis() || ms > MaxInstant.Millis() {
			return 0
		}
		return n
	},
	toJSON: func(dst, value []byte) []byte {
		return time.UnixMilli(readLong(value)).UTC().AppendFormat(append(dst, '"'), `2006-01-02T15:04:05.999Z"`)
	},
}

// parseInstant reads a time in the service's form (2026-01-02T03:04:05Z) and in forms of databases and other
// services: with any RFC 3339 offset (also +00 and +0000), with a space instead of the T, and with a fraction
// of any length, which it floors to the microsecond. A time without a zone is in UTC, because the service
// promises "ISO 8601 UTC strings".
//
// Not an instant are a date alone, a leap second, 24:00, and any time outside [MinInstant, MaxInstant].
func parseInstant(text []byte) (Instant, bool) {
	const shortest = len("2026-01-02T03:04:05")
	if len(text) < shortest {
		return 0, false
	}
	seconds, ok := parseSeconds(text[:shortest])
	if !ok {
		return 0, false
	}
	micros, rest, ok := parseFraction(text[shortest:])
	if !ok {
		return 0, false
	}
	offset, ok := parseZone(rest)
	i := Instant((seconds-offset)*1e6 + micros)
	return i, ok && i >= MinInstant && i <= MaxInstant
}

// leapSecond describes a leap second in a Reject.
const leapSecond = "the second 60 (a leap second), which no timestamp in Avro or PostgreSQL can hold: " +
	"the service has to show the second 59 before it, or 0 after it"

// isLeapSecond returns whether text is a time except for its second, 60. RFC 3339 allows that second, so a
// Reject has to name it.
func isLeapSecond(text []byte) bool {
	const at = len("2026-01-02T03:04:")
	if len(text) < at+2 || string(text[at:at+2]) != "60" {
		return false
	}
	text = bytes.Clone(text)
	copy(text[at:], "59")
	_, ok := parseInstant(text)
	return ok
}

// parseSeconds reads 2006-01-02T15:04:05 as seconds since 1970.
func parseSeconds(t []byte) (int64, bool) {
	between := t[10] == 'T' || t[10] == ' ' || t[10] == 't'
	if t[4] != '-' || t[7] != '-' || !between || t[13] != ':' || t[16] != ':' {
		return 0, false
	}
	century, ok1 := twoDigits(t[0:])
	years, ok2 := twoDigits(t[2:])
	month, ok3 := twoDigits(t[5:])
	day, ok4 := twoDigits(t[8:])
	hour, ok5 := twoDigits(t[11:])
	minute, ok6 := twoDigits(t[14:])
	second, ok7 := twoDigits(t[17:])
	year := century*100 + years
	if !(ok1 && ok2 && ok3 && ok4 && ok5 && ok6 && ok7) || month < 1 || month > 12 ||
		day < 1 || day > daysIn(year, month) || hour > 23 || minute > 59 || second > 59 {
		return 0, false
	}
	return daysSince1970(year, month, day)*86400 + hour*3600 + minute*60 + second, true
}

func twoDigits(b []byte) (int64, bool) {
	tens, ones := b[0]-'0', b[1]-'0'
	return int64(tens)*10 + int64(ones), tens <= 9 && ones <= 9
}

func daysIn(year, month int64) int64 {
	if month == 2 && (year%4 == 0 && year%100 != 0 || year%400 == 0) {
		return 29
	}
	return int64([...]byte{31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31}[month-1])
}

// daysSince1970 counts days in the proleptic Gregorian calendar. Its years begin in March, so that the leap
// day is the last. (time.Date does the same, but a row from JSON took 5 % longer with it.)
func daysSince1970(year, month, day int64) int64 {
	if month <= 2 {
		year--
		month += 12
	}
	const before1970 = 719468                // days from 0000-03-01 to 1970-01-01
	leapDays := year/4 - year/100 + year/400 // floored from the year 1 on
	return year*365 + leapDays + (153*(month-3)+2)/5 + day - 1 - before1970
}

// parseFraction reads .5 as 500000 and returns the rest of the text. It drops digits after the sixth.
func parseFraction(t []byte) (micros int64, rest []byte, ok bool) {
	if len(t) == 0 || t[0] != '.' {
		return 0, t, true
	}
	digits, end := scanDigits(t, 1)
	for i := range 6 {
		micros *= 10
		if i < len(digits) {
			micros += int64(digits[i] - '0')
		}
	}
	return micros, t[end:], len(digits) > 0
}

// parseZone reads Z, +hh:mm, +hhmm, +hh or nothing as seconds east of UTC.
func parseZone(t []byte) (offset int64, ok bool) {
	if len(t) == 0 || len(t) == 1 && (t[0] == 'Z' || t[0] == 'z') {
		return 0, true
	}
	if len(t) < 3 || t[0] != '+' && t[0] != '-' {
		return 0, false
	}
	hours, ok := twoDigits(t[1:])
	var minutes int64
	if rest := t[3:]; ok && len(rest) > 0 {
		if rest[0] == ':' {
			rest = rest[1:]
		}
		if len(rest) != 2 {
			return 0, false
		}
		minutes, ok = twoDigits(rest)
	}
	if !ok || hours > 23 || minutes > 59 {
		return 0, false
	}
	offset = hours*3600 + minutes*60
	if t[0] == '-' {
		offset = -offset
	}
	return offset, true
}

// postgresEpoch is 2000-01-01T00:00:00Z, from which PostgreSQL counts.
const postgresEpoch Instant = 946684800 * 1e6

// readTimestamp reads a binary timestamp or timestamptz: microseconds since 2000. A timestamp is in UTC, also
// if the role has another zone. Not an instant are 'infinity', '-infinity' and times outside [MinInstant,
// MaxInstant].
func readTimestamp(b []byte) (Instant, bool) {
	if len(b) != 8 {
		return 0, false
	}
	since := Instant(binary.BigEndian.Uint64(b))
	if since < MinInstant-postgresEpoch || since > MaxInstant-postgresEpoch {
		return 0, false
	}
	return since + postgresEpoch, true
}
