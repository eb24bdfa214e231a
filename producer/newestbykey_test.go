package producer

import (
	"strconv"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// To look for room at each record without any would take an hour here, and at each that makes some a quarter.
func TestATopicOfMoreKeysThanAreFollowedIsReadToItsEnd(t *testing.T) {
	for name, letters := range map[string]int{"letters": 5 * maxFollowed, "then tombstones": maxFollowed - 1} {
		t.Run(name, func(t *testing.T) {
			f := newNewest(1, maxFollowed, reasonOf)
			patience := time.Now().Add(30 * time.Second)
			for i := range 5 * maxFollowed {
				r := &kgo.Record{Key: strconv.AppendInt([]byte("orders/"), int64(i), 10), Offset: int64(i)}
				if i < letters {
					r.Value = []byte("{}")
				}
				f.add(r)
				if i%1000 == 0 && time.Now().After(patience) {
					t.Fatalf("after 30s it has read %d records", i)
				}
			}
			if n := len(f.byKey); n != maxFollowed {
				t.Errorf("%d keys are kept, expected %d", n, maxFollowed)
			}
		})
	}
}
