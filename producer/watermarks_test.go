package producer_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/storestream/storestream/internal/watermark"
	"github.com/storestream/storestream/producer"
)

// A watermark of an older form lacks dedup_from under that name. If it were believed, its owner would
// remember no row, and publish the newest ones a second time.
func TestAWatermarkOfAnOlderFormIsRefusedWithWhatToDo(t *testing.T) {
	s := plainStage(t)
	c := s.cluster("a", nil)
	session := s.take(c)
	s.commit(session, next(session, s.order(1, "2026-11-20T09:00:00Z", "Shipped")))
	session.Close()
	s.produce(&kgo.Record{Topic: "store.watermarks", Key: []byte("orders"), Value: []byte(
		`{"version":1,"resource":"orders","seen_from":"2026-11-20T08:00:00Z","partitions":3}`)})
	_, err := producer.Take(s.ctx(), c, s.orders())
	if !errors.Is(err, watermark.ErrOlder) ||
		!strings.Contains(err.Error(), "topic store.watermarks, partition") ||
		!strings.Contains(err.Error(), "delete this topic and the topic of requests") {
		t.Errorf("the takeover gives %v, expected ErrOlder with what to do", err)
	}
}

func TestAWatermarkThatCannotBeReadConcernsItsOwnResourceAlone(t *testing.T) {
	s := plainStage(t)
	c := s.cluster("a", nil)
	session := s.take(c)
	s.commit(session, next(session, s.order(1, "2026-11-20T09:00:00Z", "Shipped")))
	at := map[string]string{}
	for _, name := range []string{"users", "products"} {
		r := &kgo.Record{Topic: "store.watermarks", Key: []byte(name), Value: []byte("garbage")}
		s.produce(r)
		at[name] = fmt.Sprintf("topic store.watermarks, partition %d, offset %d", r.Partition, r.Offset)
	}
	marks, unreadable, err := producer.ReadWatermarks(t.Context(), c)
	if err != nil || marks["orders"].Rows != 1 || len(marks) != 1 || len(unreadable) != len(at) {
		t.Errorf("beside two that cannot be read: %+v, %v, %v", marks, unreadable, err)
	}
	for name, place := range at {
		wantText(t, unreadable[name], place+": ", "watermark of "+name, "another program wrote it")
	}
}
