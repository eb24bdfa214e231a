package paging

import (
	"fmt"
	"runtime"
	"testing"
)

// A full read of an open day of which nothing moves: two forward passes. Ids are given out in turn, or are
// spread over 64 bits, and come in the order of neither. live is what paging holds at the end of a pass.
func BenchmarkAnOpenDay(b *testing.B) {
	for _, n := range []uint64{1_000_000, 5_000_000} {
		for name, spread := range map[string]uint64{"in turn": 1, "spread": 0x9E3779B97F4A7C15} {
			b.Run(fmt.Sprintf("%d rows, ids %s", n, name), func(b *testing.B) {
				rows := make([]Row, PageSize)
				live, most := uint64(0), uint64(0)
				ask := func(_ Span, page, size int) (Answer, error) {
					from := uint64(page * size)
					for i := range rows {
						at := (from + uint64(i)) * 7_368_787 % n // a prime: another order than that of the ids
						rows[i] = Row{ID: at * spread, Created: 20_000, Updated: int64(at % 86_400)}
					}
					if from += uint64(size); from == n {
						live = max(live, heap())
					}
					return Answer{Rows: rows, More: from < n, Count: -1, Size: size}, nil
				}
				before := heap()
				b.ReportAllocs()
				for b.Loop() {
					r := NewReader(true)
					set := Set{Began: 100_000, Created: Span{20_000, 20_000}, Growing: true}
					o, err := drive(r.Read(set), ask)
					if err != nil || !o.Whole || o.Rows != int(n) {
						b.Fatalf("%+v, %v", o, err)
					}
				}
				most = max(most, live-before)
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(2*n), "ns/row")
				b.ReportMetric(float64(most)/float64(n), "live-B/row")
			})
		}
	}
}

// heap is how many bytes are in use.
func heap() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
