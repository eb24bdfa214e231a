package producer

import (
	"strconv"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// To look for room at each record without any would take an hour here.
func TestATopicOfMoreKeysThanAreFollowedIsReadToItsEnd(t *testing.T) {
	f := newNewest(1, maxFollowed, time.Now, reasonOf)
	patience := time.Now().Add(30 * time.Second)
	for i := range 5 * maxFollowed {
		key := strconv.AppendInt([]byte("orders/"), int64(i), 10)
		f.add(&kgo.Record{Key: key, Offset: int64(i), Value: []byte("{}")})
		if i%1000 == 0 && time.Now().After(patience) {
			t.Fatalf("after 30s it has read %d records", i)
		}
	}
	if n := len(f.byKey); n != maxFollowed {
		t.Errorf("%d keys are kept, expected %d", n, maxFollowed)
	}
}
