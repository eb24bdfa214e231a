package schemas

import (
	"encoding/binary"
	"fmt"
	"regexp"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5/pgtype"
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

// UnmarshalText reads a time as parseInstant does.
func (i *Instant) UnmarshalText(text []byte) error {
	var ok bool
	if *i, ok = parseInstant(text); !ok {
		return fmt.Errorf("time %q: expected RFC 3339, such as 2026-11-20T09:30:00Z, in the years 1 to 9999", text)
	}
	return nil
}

// timeCodec is the codec of timestamps.
var timeCodec = &codec{
	kind:     "a timestamp",
	avroType: `{"type":"long","logicalType":"timestamp-millis"}`,
	expected: "a time in RFC 3339, without a leap second, between " + MinInstant.String() + " and " +
		MaxInstant.String(),
	null: notATime,
	columns: []uint32{pgtype.TimestampOID, pgtype.TimestamptzOID, pgtype.TextOID, pgtype.VarcharOID,
		pgtype.BPCharOID},
	fromText: func(b, text []byte) ([]byte, bool) {
		t, ok := parseInstant(text)
		return binary.AppendVarint(b, t.Millis()), ok
	},
	fromColumn: func(b []byte, oid uint32, v []byte) ([]byte, bool) {
		t, ok := readTimestamp(v)
		if oid != pgtype.TimestampOID && oid != pgtype.TimestamptzOID {
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

// timeForm matches the forms of ISO 8601 that have one meaning: date and time with a T or a space between
// them, without their hyphens and colons too, seconds that may be left out, a fraction of seconds of any
// length, and a zone. Java adds the zone's name in brackets to an offset.
var timeForm = regexp.MustCompile(`^(\d{4})-?(\d\d)-?(\d\d)[Tt ](\d\d):?(\d\d)(?::?(\d\d)(?:[.,](\d+))?)?` +
	` ?(?:(?:(?i:Z|UTC|GMT)|([+-](?:[01]\d|2[0-3]))(?::?([0-5]\d))?)(?:\[[\w/:+-]+\])?)?$`)

// parseInstant reads a time in RFC 3339, as the service's 2026-01-02T03:04:05Z, and in the other forms of
// timeForm. It floors a fraction to the microsecond. 24:00:00 is the end of its day. A time without a zone is
// in UTC, because the service promises "ISO 8601 UTC strings".
//
// Not an instant are a date alone, a day by its week or its number in the year, a leap second, and any time
// outside [MinInstant, MaxInstant].
func parseInstant(text []byte) (Instant, bool) {
	if i, ok := parseShortInstant(text); ok {
		return i, i >= MinInstant && i <= MaxInstant
	}
	m := timeForm.FindSubmatch(text)
	if m == nil {
		return 0, false
	}
	short, micros := []byte("0000-00-00T00:00:00Z"), []byte("000000")
	for group, at := range []int{0, 5, 8, 11, 14, 17} {
		copy(short[at:], m[1+group])
	}
	copy(micros, m[7])
	i, ok := parseShortInstant(short)
	fraction, _ := strconv.Atoi(string(micros))
	hours, _ := strconv.Atoi(string(m[8])) // with their sign
	minutes, _ := strconv.Atoi(string(m[9]))
	if len(m[8]) > 0 && m[8][0] == '-' {
		minutes = -minutes
	}
	i += Instant(fraction) - Instant(60*hours+minutes)*60e6
	return i, ok && i >= MinInstant && i <= MaxInstant && (fraction == 0 || string(m[4]) != "24")
}

// parseShortInstant reads 2006-01-02T15:04:05Z, the form that the service's document names, also outside
// [MinInstant, MaxInstant], because a zone may move a time into it. The regular expression alone would make a
// row of JSON take several times as long.
func parseShortInstant(t []byte) (i Instant, ok bool) {
	if len(t) != len("2006-01-02T15:04:05Z") || t[4] != '-' || t[7] != '-' || t[10] != 'T' || t[13] != ':' ||
		t[16] != ':' || t[19] != 'Z' {
		return 0, false
	}
	century, ok1 := twoDigits(t[0:])
	years, ok2 := twoDigits(t[2:])
	month, ok3 := twoDigits(t[5:])
	day, ok4 := twoDigits(t[8:])
	hour, ok5 := twoDigits(t[11:])
	minute, ok6 := twoDigits(t[14:])
	second, ok7 := twoDigits(t[17:])
	date := time.Date(century*100+years, time.Month(month), day, 0, 0, 0, 0, time.UTC)
	i = InstantOf(date) + Instant(hour*3600+minute*60+second)*1e6
	return i, ok1 && ok2 && ok3 && ok4 && ok5 && ok6 && ok7 && month >= 1 && month <= 12 &&
		day >= 1 && (day <= 28 || date.Day() == day) && minute <= 59 && second <= 59 &&
		(hour <= 23 || hour == 24 && minute == 0 && second == 0)
}

func twoDigits(b []byte) (int, bool) {
	tens, ones := b[0]-'0', b[1]-'0'
	return int(tens)*10 + int(ones), tens <= 9 && ones <= 9
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
