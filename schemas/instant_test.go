package schemas

import (
	"encoding/binary"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgtype"
	"github.com/storestream/storestream/internal/rounds"
	"pgregory.net/rapid"
)

func TestTimesOfEveryUsualFormAreTheSameInstant(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"2026-11-20T17:02:31Z", "2026-11-20T17:02:31.000000Z"},
		{"2026-11-20t17:02:31z", "2026-11-20T17:02:31.000000Z"},
		{"2026-11-20T17:02:31.5Z", "2026-11-20T17:02:31.500000Z"},
		{"2026-11-20T17:02:31.123456999Z", "2026-11-20T17:02:31.123456Z"},
		{"2026-11-20T22:32:31+05:30", "2026-11-20T17:02:31.000000Z"},
		{"2026-11-20T09:02:31-0800", "2026-11-20T17:02:31.000000Z"},
		{"2026-11-20 17:02:31+00", "2026-11-20T17:02:31.000000Z"},
		{"2026-11-20 17:02:31.123456", "2026-11-20T17:02:31.123456Z"},
		{"2026-11-20T17:02:31", "2026-11-20T17:02:31.000000Z"},
		{"2026-11-25T10:15Z", "2026-11-25T10:15:00.000000Z"},
		{"2026-11-25T10:15+02", "2026-11-25T08:15:00.000000Z"},
		{"2026-11-25T10:15:01,123Z", "2026-11-25T10:15:01.123000Z"},
		{"2026-11-25 10:15:01 UTC", "2026-11-25T10:15:01.000000Z"},
		{"2026-11-25 10:15:01.5 +01:00", "2026-11-25T09:15:01.500000Z"},
		{"2026-11-25 10:15:01 utc", "2026-11-25T10:15:01.000000Z"},
		{"2026-11-25 10:15:01 GMT", "2026-11-25T10:15:01.000000Z"},
		{"2026-11-25T10:15Z[UTC]", "2026-11-25T10:15:00.000000Z"},
		{"2026-11-25T10:15:01.5+01:00[Europe/Paris]", "2026-11-25T09:15:01.500000Z"},
		{"2026-11-25T10:15:01.5+01:00[GMT+01:00]", "2026-11-25T09:15:01.500000Z"},
		{"2026-11-25T10:15:01.1-03:30", "2026-11-25T13:45:01.100000Z"},
		{"20261125T101501Z", "2026-11-25T10:15:01.000000Z"},
		{"20261125T1015", "2026-11-25T10:15:00.000000Z"},
		{"20261125T101501.123+0100", "2026-11-25T09:15:01.123000Z"},
		{"2026-11-30T24:00:00Z", "2026-12-01T00:00:00.000000Z"},
		{"2026-12-31T24:00+01:00", "2026-12-31T23:00:00.000000Z"},
		{"2026-11-25T24:00:00,000Z", "2026-11-26T00:00:00.000000Z"},
		{"0000-12-31T23:59:00-00:01", MinInstant.String()},
		{"2026-11-30T10:15:01Z", "2026-11-30T10:15:01.000000Z"},
		{"1969-12-31T23:59:59.9999999Z", "1969-12-31T23:59:59.999999Z"},
		{"2024-02-29T00:00:00Z", "2024-02-29T00:00:00.000000Z"},
		{"2000-02-29T00:00:00Z", "2000-02-29T00:00:00.000000Z"},
		{"0001-01-01T00:00:00Z", MinInstant.String()},
		{"9999-12-31T23:59:59.9999999Z", MaxInstant.String()},
	} {
		got, ok := parseInstant([]byte(c.text))
		if !ok || got.String() != c.want {
			t.Errorf("%s: %v %s, expected %s", c.text, ok, got, c.want)
		}
	}
}

func TestWhatIsNoInstantIsRejected(t *testing.T) {
	for _, text := range []string{"", "2026-11-20", "2026-11-20T17:02:31X",
		"2026-11-20T17:02:31ZZ", "2026-11-20T17:02:31.Z", "2026-11-20T17:02:31+5:30",
		"2026-11-20T17:02:31+05:3", "2026-11-20T17:02:31+24:00", "2026-11-20T17:02:31+00:60",
		"2026-13-01T00:00:00Z", "2026-00-01T00:00:00Z", "2026-11-31T00:00:00Z",
		"2026-11-00T00:00:00Z", "2023-02-29T00:00:00Z", "1900-02-29T00:00:00Z", "2026-11-20T24:00:01Z",
		"2026-11-20T24:00:00.000001Z", "2026-11-20T24:01Z", "9999-12-31T24:00:00Z", "2026-W48-3T10:15:00Z",
		"2026-329T10:15:00Z", "25/11/2026 10:15:00", "2026-11-20T17:02:31 CET", "2026-11-20T17:02:31Z[",
		"2026-11-20T17:02:31[Europe/Paris]", "2026-11-20T5:02:31Z", "2026-11-20T05:02:31 PM",
		"2026-11-20T23:60:00Z", "2026-11-20T23:59:60Z", "20261120170231Z",
		"2026-11-20T17:02:31  Z", "2026-11-20T17:02.5Z", "2026-11-20T17Z", "2026-11-31T00:00:00.5Z",
		"0000-12-31T23:59:59Z", "0001-01-01T00:00:00+00:01", "9999-12-31T23:59:59-00:01",
		"infinity", "1795194151", "12026-11-20T17:02:31Z"} {
		if got, ok := parseInstant([]byte(text)); ok {
			t.Errorf("%q was taken as %s", text, got)
		}
	}
}

// Instants before 1970 are floored too: truncation would move them into the next millisecond.
func TestMillisecondsAreFlooredOnBothSidesOf1970(t *testing.T) {
	for text, want := range map[string]int64{"1969-12-31T23:59:59.999999Z": -1, "1969-12-31T23:59:59.999Z": -1,
		"1969-12-31T23:59:59.9989Z": -2,
		"1970-01-01T00:00:00.0009Z": 0, "1970-01-01T00:00:00.001999Z": 1,
		"0001-01-01T00:00:00.0001Z": -62135596800000} {
		got, ok := parseInstant([]byte(text))
		if !ok || got.Millis() != want {
			t.Errorf("%s: %v %d, expected %d", text, ok, got.Millis(), want)
		}
	}
}

func TestTimesAgreeWithTheStandardLibrary(t *testing.T) {
	rounds.Check(t, 100, func(t *rapid.T) {
		us := rapid.Int64Range(int64(MinInstant), int64(MaxInstant)).Draw(t, "us")
		minutes := rapid.IntRange(-14*60, 14*60).Draw(t, "minutes east")
		text := time.UnixMicro(us).In(time.FixedZone("", 60*minutes)).Format(time.RFC3339Nano)
		if got, ok := parseInstant([]byte(text)); len(text) >= 20 && text[4] == '-' && (!ok || got != Instant(us)) {
			t.Fatalf("%s: %v %s, expected %s", text, ok, got, Instant(us))
		}
		raw, err := pgtype.NewMap().Encode(pgtype.TimestamptzOID, pgtype.BinaryFormatCode, Instant(us).Time(), nil)
		if got, ok := readTimestamp(raw); err != nil || !ok || got != Instant(us) {
			t.Fatalf("%s from Postgres: %v %v %s", Instant(us), err, ok, got)
		}
	})
}

func TestPostgresTimesThatAreNoInstantAreRejected(t *testing.T) {
	for _, us := range []int64{1<<63 - 1, -1 << 63, int64(MaxInstant-postgresEpoch) + 1,
		int64(MinInstant-postgresEpoch) - 1} {
		if got, ok := readTimestamp(binary.BigEndian.AppendUint64(nil, uint64(us))); ok {
			t.Errorf("%d was taken as %s", us, got)
		}
	}
	if _, ok := readTimestamp([]byte{0, 0, 0, 0}); ok {
		t.Error("four bytes were taken for a timestamp")
	}
}

func FuzzTimestamp(f *testing.F) {
	for _, text := range []string{"2026-11-20T17:02:31Z", "2026-11-20 17:02:31.123456+00",
		"1969-12-31T23:59:59.9999999Z", "2024-02-29T00:00:00-14:00", "2026-11-20T17:02:31", ""} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got, ok := parseInstant([]byte(text))
		if ok {
			if back, ok := parseInstant([]byte(got.String())); !ok || back != got {
				t.Fatalf("%q is %s, which reads as %v %s", text, got, ok, back)
			}
		}
		// Go also takes a comma before the fraction, an hour of one digit, and zones of 24 hours or 60 minutes
		// (go.dev/issue/54580).
		want, err := time.Parse(time.RFC3339Nano, text)
		if err != nil || len(text) < 20 || text[13] != ':' || text[19] == ',' || strings.HasSuffix(text, ":60") ||
			strings.Contains(text[19:], "24:") {
			return
		}
		if i := InstantOf(want); want.Year() >= 1 && i >= MinInstant && i <= MaxInstant && (!ok || got != i) {
			t.Fatalf("%q: %v %s, expected %s", text, ok, got, i)
		}
	})
}
