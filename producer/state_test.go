package producer

import (
	"runtime"
	"strconv"
	"testing"
	"time"
	"weak"

	"github.com/twmb/franz-go/pkg/kgo"
)

// To look for room at each record without any would take an hour here.
func TestATopicOfMoreKeysThanAreFollowedIsReadToItsEnd(t *testing.T) {
	letters := make(map[string]heldLetter)
	patience := time.Now().Add(30 * time.Second)
	over := 0
	for i := range 5 * maxFollowed {
		key := strconv.AppendInt([]byte("orders/"), int64(i), 10)
		if !foldNewest(letters, maxFollowed, &kgo.Record{Key: key, Value: []byte("{}")}, holdLetter) {
			over++
		}
		if i%1000 == 0 && time.Now().After(patience) {
			t.Fatalf("after 30s it has read %d records", i)
		}
	}
	if n := len(letters); n != maxFollowed || over != 4*maxFollowed {
		t.Errorf("%d keys are kept and %d are not, expected %d and %d", n, over, maxFollowed, 4*maxFollowed)
	}
}

// Another program's batch may unpack to 8 MiB, and every instance keeps the newest watermarks.
func TestAWatermarkIsKeptWithoutItsBatch(t *testing.T) {
	newest := make(map[string]*kgo.Record)
	left := func() weak.Pointer[byte] {
		batch := append(make([]byte, 0, 1<<20), "orders{}"...)
		foldWatermark(newest, &kgo.Record{Key: batch[:6], Value: batch[6:8], Offset: 7})
		return weak.Make(&batch[0])
	}()
	runtime.GC()
	if left.Value() != nil || string(newest["orders"].Value) != "{}" || newest["orders"].Offset != 7 {
		t.Errorf("it is kept as %+v, and its batch too: %v", newest["orders"], left.Value() != nil)
	}
}
