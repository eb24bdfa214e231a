package producer_test

import (
	"errors"
	"fmt"
	"maps"
	"slices"
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
	marks, err := producer.ReadWatermarks(t.Context(), c)
	if marks["orders"].Rows != 1 || len(marks) != 1 {
		t.Errorf("beside two that cannot be read: %+v", marks)
	}
	for _, test := range [][]string{{"orders"}, {"users"}, {"products", "orders"}, {"users", "products"}} {
		err := producer.Concerning(err, test...)
		var named []string
		if all, ok := errors.AsType[*producer.UnreadableError](err); ok {
			named = slices.Sorted(maps.Keys(all.ByResource))
		}
		want := slices.DeleteFunc(slices.Sorted(slices.Values(test)),
			func(name string) bool { return at[name] == "" })
		if !slices.Equal(named, want) || (err == nil) != (len(want) == 0) {
			t.Errorf("of %q: %v", test, err)
		}
		for _, name := range want {
			if !strings.Contains(err.Error(), at[name]+": ") || !strings.Contains(err.Error(), "watermark of "+name) {
				t.Errorf("%v: expected where that of %s stands (%s)", err, name, at[name])
			}
		}
	}
	down := errors.New("the brokers do not answer")
	got := producer.Concerning(down, "orders")
	if !errors.Is(got, down) || producer.Concerning(nil, "orders") != nil {
		t.Errorf("what concerns every resource: %v", got)
	}
}
