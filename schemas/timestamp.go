package schemas

import (
	"bytes"
	"encoding/binary"
)

// parseInstant reads a time as the service writes it (2026-01-02T03:04:05Z), and as databases and other
// services write the same instant: with any RFC 3339 offset (also +00 and +0000), a space instead of the T, a
// fraction of any length, floored to the microsecond, and without a zone, which means UTC (the service
// promises "ISO 8601 UTC strings").
//
// A date alone is not an instant. Neither are leap seconds and 24:00, nor anything outside [MinInstant,
// MaxInstant].
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

// leapSecond is what to say of a time that isLeapSecond.
const leapSecond = "the second 60 (a leap second), which no timestamp in Avro or PostgreSQL can hold: " +
	"the service has to show the second 59 before it, or 0 after it"

// isLeapSecond says whether text is a time but for its second, 60. RFC 3339 allows it, so it has to be named.
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

// daysSince1970 counts in the proleptic Gregorian calendar. Years begin in March, so that the leap day is the
// last. (time.Date does the same; a row from JSON took 5 % longer with it.)
func daysSince1970(year, month, day int64) int64 {
	if month <= 2 {
		year--
		month += 12
	}
	const before1970 = 719468                // days from 0000-03-01 to 1970-01-01
	leapDays := year/4 - year/100 + year/400 // floored, but for the year 0, which is before every Instant
	return year*365 + leapDays + (153*(month-3)+2)/5 + day - 1 - before1970
}

// parseFraction reads .5 as 500000 and leaves what follows; digits beyond the sixth are dropped.
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

// readTimestamp reads a binary timestamp or timestamptz: microseconds since 2000. A timestamp counts as UTC,
// whatever the role's zone. 'infinity', '-infinity' and what lies outside [MinInstant, MaxInstant] are not
// instants.
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
