package producer

import (
	"strconv"
	"testing"
	"time"

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
