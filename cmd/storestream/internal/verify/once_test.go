package verify

import (
	"cmp"
	"context"
	"math"
	"slices"
	"testing"

	"github.com/storestream/storestream/cmd/storestream/internal/stage"
	"github.com/storestream/storestream/internal/reconcile"
	"github.com/storestream/storestream/internal/rowset"
	"github.com/storestream/storestream/internal/standins/storefake"
	"github.com/storestream/storestream/internal/watermark"
	"github.com/storestream/storestream/schemas"
)

// A table of several parts takes as many records of the topic and rows of the service as there are. Without a
// file each part reads both.
func TestVerifyReadsEachSideOnceOverREST(t *testing.T) {
	s := stage.New(t)
	const rows, partRows = 3000, 1000
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
	all := reconcile.Range{First: math.MinInt64, Last: math.MaxInt64}
	for a, err := range reads.Source(t.Context(), all, nil) {
		if err != nil {
			t.Fatal(err)
		}
		for _, row := range a.Rows {
			row.Value = slices.Clone(row.Value)
			published = append(published, row)
		}
	}
	s.Publish("users", published, nil, nil)
	records, read := len(published), 0
	for _, run := range []struct {
		dir    string
		memory int64
		once   bool
	}{
		{"/dev/null", 0, true}, {t.TempDir(), partRows * rowset.RowBytes * 16 / 11, true},
		{"/dev/null", partRows * rowset.RowBytes * 16 / 11, false},
	} {
		t.Setenv("TMPDIR", run.dir)
		folded, said, one := 0, "", reads
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
		o.cfg.Say = func(_, text string) { said += text }
		got := o.report(o.run(t.Context(), make(chan struct{}, 1)))
		if got.Verdict != Identical || got.SourceRows != rows || got.TopicRows != rows {
			t.Errorf("%+v", got)
		}
		read = cmp.Or(read, shown)
		if once := folded == records && shown == read; once != run.once || (said == "") != once {
			t.Errorf("%+v: %d of %d records and %d of %d rows were read, and it said %q", run, folded, records, shown,
				read, said)
		}
	}
}
