package schemas

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"flag"
	"math/big"
	"os"
	"path/filepath"
	"testing"
	"time"

	hamba "github.com/hamba/avro/v2"
	"github.com/twmb/avro"
)

var update = flag.Bool("update", false,
	"write testdata/golden again; a change there is a change of the topics")

// golden is one line of a golden file: a row of the service, and its key and value on the wire, with headers
// of zeros.
type golden struct {
	Row   json.RawMessage `json:"row"`
	Key   string          `json:"key"`
	Value string          `json:"value"`
}

func readGolden(t testing.TB, r *Resource) []golden {
	t.Helper()
	text, err := os.ReadFile(goldenFile(r))
	if errors.Is(err, os.ErrNotExist) && specified[r.Name] == "" {
		t.Logf("%s has no golden file yet: write {\"row\": ...} lines to %s, then run with -update", r.Name,
			goldenFile(r))
		return nil
	} else if err != nil {
		t.Fatal(err)
	}
	var all []golden
	for _, line := range bytes.Split(bytes.TrimSpace(text), []byte("\n")) {
		var g golden
		if err := json.Unmarshal(line, &g); err != nil {
			t.Fatal(err)
		}
		all = append(all, g)
	}
	return all
}

func goldenFile(r *Resource) string { return filepath.Join("testdata", "golden", r.Name+".jsonl") }

// A row's bytes on the wire never change unnoticed, because consumers hold these bytes.
func TestARowEncodesToTheBytesThatConsumersAlreadyHold(t *testing.T) {
	for _, r := range load(t).All() {
		all := readGolden(t, r)
		p := NewRowParser(r)
		var out bytes.Buffer
		for i, g := range all {
			rec, rej := p.Parse(g.Row)
			if rej != nil {
				t.Fatalf("%s row %d: %s: %s", r.Name, i, rej.Field, rej.Err)
			}
			key, value := hex.EncodeToString(AppendKey(nil, rec.ID)), hex.EncodeToString(rec.Value)
			if !*update && (key != g.Key || value != g.Value) {
				t.Errorf("%s row %d:\n got %s %s\nwant %s %s", r.Name, i, key, value, g.Key, g.Value)
			}
			out.WriteString(`{"row":` + string(g.Row) + `,"key":"` + key + `","value":"` + value + "\"}\n")
		}
		if *update {
			if err := os.WriteFile(goldenFile(r), out.Bytes(), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// Two other implementations read the golden bytes, from the schema text that is registered, and find the row.
func TestIndependentAvroReadersFindTheRowFieldByField(t *testing.T) {
	for _, r := range load(t).All() {
		for i, g := range readGolden(t, r) {
			value, err := hex.DecodeString(g.Value)
			if err != nil {
				t.Fatal(err)
			}
			for reader, got := range decodeElsewhere(t, r, value) {
				compareWithRow(t, r, reader, i, g.Row, got)
			}
		}
	}
}

// decodeElsewhere decodes a value by both libraries.
func decodeElsewhere(t testing.TB, r *Resource, value []byte) map[string]map[string]any {
	t.Helper()
	var a, b map[string]any
	rest, err := avro.MustParse(r.ValueSchema()).Decode(value[HeaderSize:], &a)
	if err != nil || len(rest) > 0 {
		t.Fatalf("twmb/avro cannot read %s %x: %v, %d bytes left", r.Name, value, err, len(rest))
	}
	if err := hamba.Unmarshal(hamba.MustParse(r.ValueSchema()), value[HeaderSize:], &b); err != nil {
		t.Fatalf("hamba/avro cannot read %s %x: %v", r.Name, value, err)
	}
	return map[string]map[string]any{"twmb": a, "hamba": b}
}

// compareWithRow compares a decoded value with the JSON row, by other means than this package's.
func compareWithRow(t *testing.T, r *Resource, reader string, line int, row json.RawMessage,
	got map[string]any) {
	t.Helper()
	dec := json.NewDecoder(bytes.NewReader(row))
	dec.UseNumber()
	var want map[string]any
	if err := dec.Decode(&want); err != nil {
		t.Fatal(err)
	}
	if len(got) != len(r.Fields) {
		t.Errorf("%s: %d fields in the value, %d in the schema", r.Name, len(got), len(r.Fields))
	}
	for _, f := range r.Fields {
		if w := independently(t, f, want[f.Name]); !sameValue(w, got[f.Name]) {
			t.Errorf("%s row %d, field %s, read by %s: %v, expected %v", r.Name, line, f.Name, reader, got[f.Name], w)
		}
	}
}

// independently returns the meaning of a JSON value by the standard library.
func independently(t *testing.T, f Field, v any) any {
	t.Helper()
	var text string
	switch v := v.(type) {
	case nil:
		return nil
	case json.Number:
		text = v.String()
	case string:
		text = v
	}
	switch f.codec {
	case longCodec:
		n, ok := new(big.Int).SetString(text, 10)
		if !ok {
			t.Fatalf("%s: %s is no integer", f.Name, text)
		}
		return n.Int64()
	case timeCodec:
		at, err := time.Parse(time.RFC3339Nano, text)
		if err != nil {
			t.Fatal(err)
		}
		return at.UTC().Truncate(time.Millisecond) // from year 1 on: it floors before 1970 too
	case doubleCodec:
		var n float64
		if err := json.Unmarshal([]byte(text), &n); err != nil {
			t.Fatal(err)
		}
		return n
	case textCodec:
		return text
	default:
		n, ok := new(big.Rat).SetString(text)
		if !ok {
			t.Fatalf("%s: %s is no decimal", f.Name, text)
		}
		return n
	}
}

func sameValue(want, got any) bool {
	switch want := want.(type) {
	case *big.Rat:
		g, ok := got.(*big.Rat)
		return ok && want.Cmp(g) == 0
	case time.Time:
		g, ok := got.(time.Time)
		return ok && want.Equal(g)
	}
	return want == got
}
