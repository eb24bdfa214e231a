package rest

import (
	"bytes"
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sys/unix"

	"github.com/storestream/storestream/internal/metrics"
	"github.com/storestream/storestream/internal/rotation"
	"github.com/storestream/storestream/poller"
	"github.com/storestream/storestream/poller/rest/client"
	"github.com/storestream/storestream/schemas"
)

// answered is a connection that costs nothing: every request gets the same page.
type answered []byte

func (a answered) RoundTrip(r *http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"application/json"}},
		Body: io.NopCloser(bytes.NewReader(a)), ContentLength: int64(len(a)), Request: r}, nil
}

// What `hash` on three fields of users adds to a row, from the bytes of an answer to bytes in the batch that
// is handed on. Pages are read with and without it in turns of some milliseconds, so that what else the
// machine does falls on both.
func BenchmarkRowsOfUsersHashed(b *testing.B) {
	page := []byte(`{"data":[`)
	for i := range 1000 {
		if i > 0 {
			page = append(page, ',')
		}
		page = append(page, userOfAPage(i)...)
	}
	page = append(page, `],"meta":{"page":0,"page_size":1000,"count":1000,"has_more":false}}`...)
	day := dayOf(schemas.InstantOf(time.Date(2026, 11, 20, 0, 0, 0, 0, time.UTC)))
	of := on(updated, span{From: day, To: day})
	var reads []*read
	for _, fields := range []map[string]schemas.Policy{nil, {"users.email": schemas.PolicyHash,
		"users.street_address": schemas.PolicyHash, "users.last_name": schemas.PolicyHash}} {
		set, err := schemas.Load("")
		if err != nil {
			b.Fatal(err)
		}
		set.Protect(schemas.Privacy{Key: [32]byte([]byte("a key of thirty-two bytes or mor")), Fields: fields})
		service, err := client.New(client.Config{BaseURL: "http://store.example/v1", APIKey: rotation.Literal("k"),
			MaxRequestsPerSecond: 1e9, HTTP: &http.Client{Transport: answered(page)}})
		if err != nil {
			b.Fatal(err)
		}
		src := NewSource(SourceConfig{Resource: set.Get("users"), Client: service, Dialect: unknown(),
			Overlap: time.Minute,
			Metrics: metrics.New(prometheus.NewRegistry()).Resource("users")})
		reads = append(reads, &read{src: src, yield: func(poller.Batch, error) bool { return true },
			fields: newFields(src.cfg.Resource, nil)})
	}
	var spent [2]int64
	for b.Loop() {
		for i, rd := range reads {
			before := cpu(b)
			for range 10 {
				p, err := rd.src.endpoint.Page(b.Context(), rd.src.query(of, 0, 1000), 0)
				rd.answer(p, nil, of, 0, time.Now())
				rd.src.endpoint.Release()
				if err != nil || len(rd.batch.Rows) != 1000 {
					b.Fatal(len(rd.batch.Rows), err)
				}
				rd.batch, rd.bytes = poller.Batch{}, 0
			}
			spent[i] += cpu(b) - before
		}
	}
	rows := 10_000 * float64(b.N)
	b.ReportMetric(float64(spent[0])/rows, "cpu-ns/row")
	b.ReportMetric(float64(spent[1])/rows, "hashed-cpu-ns/row")
	b.ReportMetric(float64(spent[1])/float64(spent[0]), "ratio")
}

// cpu is what this process has used, in nanoseconds.
func cpu(b *testing.B) int64 {
	b.Helper()
	var used unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &used); err != nil {
		b.Fatal(err)
	}
	return used.Utime.Nano() + used.Stime.Nano()
}
