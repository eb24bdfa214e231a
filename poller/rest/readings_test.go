package rest

import (
	"fmt"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/storestream/storestream/internal/metrics"
	"github.com/storestream/storestream/internal/standins/storefake"
	"github.com/storestream/storestream/poller"
	"github.com/storestream/storestream/poller/rest/client"
	"github.com/storestream/storestream/poller/rest/dialect"
	"github.com/storestream/storestream/poller/rest/paging"
	"github.com/storestream/storestream/schemas"
)

// follower does with a source's batches what the poller does, as far as a source can spoil it: it reads from
// settled on, and takes no row from before that.
type follower struct {
	src     *Source
	settled schemas.Instant
	rows    map[int64]schemas.Record
}

func (f *follower) poll(t *testing.T, whole bool) (complete bool, err error) {
	t.Helper()
	from := f.settled
	request := poller.Request{Kind: poller.Pass, Complete: whole, From: from,
		Started: schemas.InstantOf(time.Now())}
	err = each(f.src.Read(t.Context(), request), func(b poller.Batch) error {
		for _, row := range b.Rows {
			if row.UpdatedAt >= from {
				f.rows[row.ID] = row
			}
		}
		f.settled = max(f.settled, b.Settled)
		complete = complete || b.Done != nil && b.Done.Complete
		return nil
	})
	return complete, err
}

// readings are rows of a table in which every two values of different columns meet at least once or nearly
// so.
func readings() []storefake.Readings {
	orders := []storefake.Order{storefake.ByID, storefake.ByUpdated, storefake.ByUpdatedDesc, storefake.ByHash,
		storefake.ByShuffle}
	ends := []storefake.PastEnd{storefake.PastEndEmpty, storefake.PastEndBadRequest, storefake.PastEndNotFound}
	counts := []storefake.Count{storefake.CountTotal, storefake.CountPage}
	money := []storefake.MoneyForm{storefake.MoneyAsIs, storefake.MoneyPadded, storefake.MoneyString,
		storefake.MoneyExponent}
	pages := []int{0, 40, 12}
	var table []storefake.Readings
	for i := range 15 {
		order := orders[i%5]
		table = append(table, storefake.Readings{
			Order: order, PastEnd: ends[i%3], Count: counts[(i+i/5)%2], MoneyForm: money[(i+i/3)%4],
			MaxPage:     pages[(i/2)%3],
			PermuteTies: i%2 == 0 && (order == storefake.ByUpdated || order == storefake.ByUpdatedDesc),
			ExtraFields: i%2 == 1, Nulls: float64(i%3) * .05, NewStatuses: float64(i%2) * .02,
			NoDate: i%7 == 3, DayOffset: time.Duration((i+1)%4-1) % 2 * 5 * time.Hour,
			ShortPages: float64(i%4/3) * .2, EmptyPages: float64(i%5/4) * .1,
		})
	}
	// How a listing ends. Where it never does, an exact count has to say so.
	return append(table, storefake.Readings{HasMore: storefake.MoreAlways, MaxPage: 40},
		storefake.Readings{MaxPages: 4, MaxPage: 40},
		storefake.Readings{HasMore: storefake.MoreAlways, Order: storefake.ByShuffle},
		storefake.Readings{MaxPages: 2, MaxPage: 40, Order: storefake.ByUpdatedDesc},
		storefake.Readings{Count: storefake.CountEstimate, HasMore: storefake.MoreFull, MaxPage: 12})
}

// Every reading of the document, played by the stand-in: rows change between any two requests, requests fail
// now and then, days end, and in the end every row that the service has was read in its last state, though
// nothing from before settled was taken.
func TestEveryReadingOfTheDocumentConvergesToTheService(t *testing.T) {
	set, err := schemas.Load("")
	if err != nil {
		t.Fatal(err)
	}
	for n, r := range readings() {
		res := set.All()[n%len(set.All())]
		t.Run(fmt.Sprintf("%d %s", n, res.Name), func(t *testing.T) {
			t.Parallel()
			fake, err := storefake.Start(t.Context(), storefake.Config{Seed: uint64(n), Readings: r,
				Start: at("2026-10-10T00:00:00Z"),
				Size:  storefake.Size{Users: 150, Orders: 250, Products: 120, Days: 40}})
			if err != nil {
				t.Fatal(err)
			}
			defer fake.Close()
			counts := dialect.Auto
			if r.Count == storefake.CountEstimate {
				counts = dialect.Estimate
			}
			converge(t, fake, res, n, counts)
		})
	}
}

func converge(t *testing.T, fake *storefake.Fake, res *schemas.Resource, n int, counts string) {
	t.Helper()
	cfg := client.Config{BaseURL: fake.BaseURL(), MaxRequestsPerSecond: 1e6, Now: fake.Clock().Now}
	c, err := client.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	f := &follower{settled: schemas.MinInstant, rows: map[int64]schemas.Record{}, src: NewSource(SourceConfig{
		Resource: res, Client: c, Overlap: 5 * time.Minute, Start: schemas.MinInstant,
		Dialect: counted(counts), Metrics: metrics.New(prometheus.NewRegistry()).Resource(res.Name)})}
	var requests atomic.Int64
	fake.OnRequest(func(*http.Request) {
		fake.Clock().Advance(time.Second)
		if requests.Add(1)%3 == 0 {
			_ = fake.Step(t.Context())
		}
	})
	faults := []storefake.Fault{storefake.ServerError, storefake.Truncated, storefake.Cut, storefake.Revoke,
		storefake.TooMany, storefake.Reset}
	if err := fake.SetFaults(func(c *storefake.Faults) {
		c.Shares = map[storefake.Fault]float64{faults[n%6]: .004, faults[(n+1)%6]: .004}
	}); err != nil {
		t.Fatal(err)
	}
	for i := range 10 {
		if _, err := f.poll(t, i%2 == 1); err != nil {
			t.Logf("poll %d: %v", i, err)
		}
		fake.Clock().Advance(5 * time.Hour)
		for range 10 {
			_ = fake.Step(t.Context())
		}
	}
	fake.OnRequest(nil)
	if err := fake.SetFaults(func(c *storefake.Faults) { c.Shares = nil }); err != nil {
		t.Fatal(err)
	}
	complete := false
	for i := 0; i < 3 && !complete; i++ {
		clear(f.src.days)
		f.src.open.nextRepeatedRead = time.Time{}
		if complete, err = f.poll(t, true); err != nil {
			t.Fatal(err)
		}
	}
	if !complete {
		t.Error("no complete pass though the service is quiet")
	}
	f.equals(t, res, fake)
	t.Logf("%d rows, %d requests, settled %s", len(f.rows), requests.Load(), f.settled)
}

func (f *follower) equals(t *testing.T, res *schemas.Resource, fake *storefake.Fake) {
	t.Helper()
	parser := schemas.NewRowParser(res)
	missing, stale, unfit := 0, 0, 0
	for id, raw := range fake.Snapshot(res.Name) {
		want, reject := parser.Parse(raw)
		got, ok := f.rows[id]
		switch {
		case reject != nil:
			unfit++
		case !ok:
			missing++
		case schemas.Hash(got.Value) != schemas.Hash(want.Value):
			stale++
		}
	}
	if missing+stale > 0 {
		t.Errorf("%d rows missing, %d stale of %d, %d unfit", missing, stale, fake.Count(res.Name), unfit)
	}
}

func userOfAPage(i int) []byte {
	return fmt.Appendf(nil, `{"id":%d,"first_name":"Anna","last_name":"Example","email":"anna%d@example.org",`+
		`"age":41,"gender":"F","state":"Minas Gerais","street_address":"%d Example Avenue Suite 7",`+
		`"postal_code":"31110-000","city":"Belo Horizonte","country":"Brasil","latitude":-19.9026,`+
		`"longitude":-43.9642,"traffic_source":"Search","created_at":"2021-03-04T05:06:07Z",`+
		`"updated_at":"2026-11-20T10:%02d:%02dZ"}`, i+1, i, i, i/60%60, i%60)
}

// The rows of one page of 1000 users, from their texts to encoded rows, as a source does it.
func BenchmarkTheRowsOfAPage(b *testing.B) {
	set, err := schemas.Load("")
	if err != nil {
		b.Fatal(err)
	}
	var rows [][]byte
	size := 0
	for i := range 1000 {
		row := userOfAPage(i)
		rows = append(rows, row)
		size += len(row)
	}
	rd := &read{src: &Source{parser: schemas.NewRowParser(set.Get("users"))}}
	b.SetBytes(int64(size))
	b.ReportAllocs()
	for b.Loop() {
		rd.parse(new(paging.Answer), rows, window{always, always}, false)
		if len(rd.batch.Rows) != 1000 {
			b.Fatal(len(rd.batch.Rows))
		}
		rd.batch = poller.Batch{}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/1000, "ns/row")
}
