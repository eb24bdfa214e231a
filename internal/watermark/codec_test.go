package watermark_test

import (
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"github.com/storestream/storestream/internal/watermark"
	"github.com/storestream/storestream/schemas"
)

// least is the first watermark of a resource of which nothing is known.
func least() watermark.Watermark {
	w := watermark.New("orders")
	w.Partitions = 1
	return w
}

func full() watermark.Watermark {
	w := watermark.New("orders")
	w.Settled, w.AsOf = 1795079400123456, 1795079401000000
	w.Written, w.DedupFrom = 1795079402000001, 1795079399000000
	w.Rows, w.Request, w.Instance, w.Group = 12, 3, "host-1", "storestream"
	w.TopicID, w.Partitions = "AAAAAAAAAAAAAAAAAAAAAQ", 6
	w.Cursor = &watermark.Cursor{UpdatedAt: 1795079400123456, ID: -5, Xmin: 1 << 63, HorizonTime: 7,
		HorizonNext: 9, Started: 8}
	w.Replay = &watermark.Replay{Request: 3, From: schemas.MinInstant, At: 1, Ends: []int64{1, 2, 3, 0, 0, 0},
		RequestUID: "u", Rows: 4}
	w.End(watermark.Result{Request: 1, RequestUID: "t", Kind: watermark.Reset, From: 1, Began: 2, Ended: 3,
		Rows: 4})
	from, tried := int64(-9), schemas.Instant(5)
	w.Sweep = &watermark.Sweep{Request: 2, At: 3, From: &from, Done: &watermark.Swept{Request: 2, Stale: 1},
		Tried: &tried, Attempts: 5, NotBefore: &tried}
	w.Identity = &watermark.Identity{Schema: "public", Kind: "v", Table: 1 << 31, LeadsTo: "9f",
		System: "7/5", Timeline: 2, Started: 9, Xmin: 1 << 63}
	w.Dialect = map[string]watermark.Proof{"days": {Value: "other", Evidence: "a row", Since: 3},
		"updated_to": {Evidence: "another row", Since: 4}}
	w.LastSweep = schemas.MaxInstant
	w.Swept = &watermark.Swept{Request: 2, Began: 4, SourceRows: 5, TopicRows: 6, DeadLetters: 7,
		Missing: 8, Stale: 9, Extra: 10, Published: 11, Tombstones: 12, Left: "x"}
	return w
}

// The form is public: scripts read it.
func TestAWatermarkIsWrittenInThePromisedForm(t *testing.T) {
	w := watermark.New("orders")
	w.Settled, w.AsOf, w.Rows, w.Partitions = 1795079400123456, 1795079401000000, 12, 6
	w.Instance, w.Group = "host-1", "storestream"
	value, err := watermark.Encode(w)
	if err != nil {
		t.Fatal(err)
	}
	want := `{"version":2,"resource":"orders","settled":"2026-11-19T09:10:00.123456Z",` +
		`"as_of":"2026-11-19T09:10:01.000000Z","fresh_as_of":"0001-01-01T00:00:00.000000Z",` +
		`"rows":12,"request":-1,"instance":"host-1","group":"storestream",` +
		`"dedup_from":"9999-12-31T23:59:59.999999Z","last_sweep":"0001-01-01T00:00:00.000000Z",` +
		`"topic_id":"","partitions":6,"written":"0001-01-01T00:00:00.000000Z"}`
	if string(value) != want {
		t.Errorf("got  %s\nwant %s", value, want)
	}
}

// A watermark that loses microseconds skips rows, or sends the last one for ever.
func TestAWatermarkIsReadBackAsItWasWritten(t *testing.T) {
	for _, w := range []watermark.Watermark{least(), full()} {
		value, err := watermark.Encode(w)
		if err != nil {
			t.Fatal(err)
		}
		got, err := watermark.Decode("orders", value)
		if err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(got, w) {
			t.Errorf("got  %+v\nwant %+v", got, w)
		}
	}
}

func TestAWatermarkThatCannotBeTrustedIsRefused(t *testing.T) {
	for name, test := range map[string]struct{ value, says string }{
		"newer":             {`{"version":3,"resource":"orders"}`, "newer version"},
		"older":             {`{"version":1,"resource":"orders"}`, "older version"},
		"no version":        {`{"resource":"orders"}`, "version 0"},
		"version 0":         {`{"version":0,"resource":"orders"}`, "version 0"},
		"another resource":  {`{"version":2,"resource":"users"}`, "users"},
		"not JSON":          {`settled`, "watermark of orders"},
		"a day":             {`{"version":2,"resource":"orders","settled":"2026-11-20"}`, "RFC 3339"},
		"before the year 1": {`{"version":2,"resource":"orders","settled":"0000-11-20T00:00:00Z"}`, "1 to 9999"},
	} {
		_, err := watermark.Decode("orders", []byte(test.value))
		if err == nil || !strings.Contains(err.Error(), test.says) {
			t.Errorf("%s: %v, expected an error that says %q", name, err, test.says)
		}
	}
	// Nobody writes these, and some would be believed: partitions of 0 advise people to delete the topic.
	for members, says := range map[string]string{
		`"partitions":0`:                   "partitions is 0, expected 1 or more",
		`"partitions":-6`:                  "partitions is -6, expected 1 or more",
		`"rows":-1`:                        "rows is -1",
		`"request":-2`:                     "request is -2",
		`"ends":[1,-2]`:                    "ends are [1 -2], expected 0 or more",
		`"replay":{"ends":[-1,2]}`:         "ends are [-1 2], expected 0 or more",
		`"sweep":{"confirmed_deletes":-9}`: "a number of deletions is negative",
		`"deleted":{"day":"2026-11-20T00:00:00Z","rows":-9}`: "a number of deletions is negative",
	} {
		value := `{"version":2,"resource":"orders","partitions":2,` + members + `}`
		if _, err := watermark.Decode("orders", []byte(value)); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v, expected an error that says %q", members, err, says)
		}
	}
	for version, want := range map[int]error{1: watermark.ErrOlder, 3: watermark.ErrNewer} {
		_, err := watermark.Decode("orders", fmt.Appendf(nil, `{"version":%d,"resource":"orders"}`, version))
		if !errors.Is(err, want) {
			t.Errorf("version %d: %v, expected %v", version, err, want)
		}
	}
}

func TestDeadLettersAreKeyedByIDElseByContent(t *testing.T) {
	key := watermark.DeadLetterKey("orders", schemas.Reject{ID: -4, HasID: true})
	if id, ok := watermark.DeadLetterRow(key, 1); key != "orders/-4" || id != -4 || !ok {
		t.Errorf("%s is of row %d, %v", key, id, ok)
	}
	key = watermark.DeadLetterKey("orders", schemas.Reject{Row: []byte("{}")})
	hash := watermark.DeadLetterHash([]byte("{}"))
	if _, ok := watermark.DeadLetterRow(key, hash); len(key) != len("orders/")+16 || ok {
		t.Error(key)
	}
	if key == watermark.DeadLetterKey("orders", schemas.Reject{Row: []byte("{ }")}) {
		t.Error("other content, the same key")
	}
}

// One hash in 1,800 has no letter among its 16 digits, and an id may have 16 digits.
func TestADeadLetterWithoutAnIDIsNotTakenForOneWithAnID(t *testing.T) {
	for n := 0; ; n++ {
		row := fmt.Append(nil, n)
		hash := watermark.DeadLetterHash(row)
		text := fmt.Sprintf("%016x", hash)
		if strings.ContainsAny(text, "abcdef") {
			continue
		}
		if id, ok := watermark.DeadLetterRow("orders/"+text, hash); ok {
			t.Errorf("the letter of a row without an id, %s, reads as that of row %d", text, id)
		}
		if text[0] != '0' {
			id, ok := watermark.DeadLetterRow("orders/"+text, hash+1)
			if want, _ := strconv.ParseInt(text, 10, 64); !ok || id != want {
				t.Errorf("the letter of row %s reads as that of row %d, %v", text, id, ok)
			}
			return
		}
	}
}

// Whatever stands in the topic, a takeover answers with a watermark or an error, and what it accepts it can
// write.
func FuzzWatermark(f *testing.F) {
	for _, w := range []watermark.Watermark{least(), full()} {
		value, _ := watermark.Encode(w)
		f.Add(value)
	}
	f.Add([]byte(`{"version":2,"resource":"orders","cursor":null,"replay":{"ends":null},` +
		`"settled":"9999-12-31T23:59:59-23:59"}`))
	f.Fuzz(func(t *testing.T, value []byte) {
		w, err := watermark.Decode("orders", value)
		if err != nil {
			return
		}
		again, err := watermark.Encode(w)
		if err != nil {
			t.Fatalf("%+v was read and cannot be written: %v", w, err)
		}
		back, err := watermark.Decode("orders", again)
		if err != nil || back.Settled != w.Settled || back.Rows != w.Rows || back.Request != w.Request {
			t.Fatalf("%+v was read, written, and read as %+v, %v", w, back, err)
		}
	})
}

// Whatever stands in the topic of requests, a reader answers with a request or an error.
func FuzzRequest(f *testing.F) {
	f.Add([]byte(`{"uid":"u","resource":"orders","kind":"reset","to":"2026-11-20T09:00:00Z",` +
		`"by":"me@here","at":"2026-11-20T09:00:00Z"}`))
	f.Fuzz(func(t *testing.T, value []byte) {
		r, err := watermark.DecodeRequest("orders", 4, value)
		if err == nil && (r.ID != 4 || r.UID == "" || r.Resource != "orders" ||
			r.Kind == watermark.Reset && r.To == nil) {
			t.Fatalf("%+v", r)
		}
	})
}
