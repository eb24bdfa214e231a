package verify

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/storestream/storestream/cmd/storestream/internal/stage"
	"github.com/storestream/storestream/internal/standins/storefake"
	"github.com/storestream/storestream/internal/watermark"
	"github.com/storestream/storestream/schemas"
)

// A table that does not fit into memory takes as many records of the topic and rows of the service as there
// are. If no file can be written, the error says what to set.
func TestVerifyReadsEachSideOnceOverREST(t *testing.T) {
	s := stage.New(t)
	const rows = 3000
	s.Serve(func(c *storefake.Config) { c.Size = storefake.Size{Users: rows} })
	c := Config{Settings: s.Config(), Schemas: s.Schemas, Cluster: s.Cluster("verifier"),
		Say: func(string, string) {}}
	compare, end, err := OpenService(t.Context(), c.Settings, c.Cluster)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(end)
	users, shown := s.Schemas.Get("users"), 0
	reads := compare(users, func(n int) { shown += n })
	var published []schemas.Record
	for a, err := range reads.Source(t.Context(), nil) {
		if err != nil {
			t.Fatal(err)
		}
		for _, row := range a.Rows {
			row.Value = slices.Clone(row.Value)
			published = append(published, row)
		}
	}
	s.Publish("users", published, nil, nil)
	const littleMemory = rows * 24
	for _, run := range []struct {
		dir    string
		memory int64
		error  string
	}{
		{"/dev/null", 0, ""}, {t.TempDir(), littleMemory, ""},
		{"/dev/null", littleMemory, "open /dev/null/storestream-"},
	} {
		t.Setenv("TMPDIR", run.dir)
		folded, one := 0, reads
		shown = 0
		one.Topic = func(ctx context.Context, from []int64, wanted func(int64) bool,
			fold func(watermark.Published) error) ([]int64, error) {
			return reads.Topic(ctx, from, wanted, func(p watermark.Published) error {
				folded++
				return fold(p)
			})
		}
		o := newComparison(c, users, one)
		o.compare.Memory = cmp.Or(run.memory, o.compare.Memory)
		got := o.report(o.run(t.Context(), make(chan struct{}, 1)))
		switch {
		case run.error != "":
			if got.Verdict != Unknown || !strings.Contains(got.Error, run.error) ||
				!strings.Contains(got.Error, "set TMPDIR to a directory with room for sweep.scratch") {
				t.Errorf("%+v", got)
			}
		case got.Verdict != Identical || got.SourceRows != rows || got.TopicRows != rows:
			t.Errorf("%+v: %+v", run, got)
		case folded != len(published) || shown != len(published):
			t.Errorf("%+v: %d records and %d rows were read of %d", run, folded, shown, len(published))
		}
	}
}
