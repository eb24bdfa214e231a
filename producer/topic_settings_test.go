//go:build !kafka

package producer_test

import (
	"errors"
	"strconv"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/storestream/storestream/producer"
)

// managed is a broker that refuses small segments, with the code that it is given.
func managed(t *testing.T, code *kerr.Error) *stage {
	t.Helper()
	s := newStage(t)
	s.broker.ControlKey(int16(kmsg.CreateTopics), func(req kmsg.Request) (kmsg.Response, error, bool) {
		s.broker.KeepControl()
		asked := req.(*kmsg.CreateTopicsRequest)
		answer := asked.ResponseKind().(*kmsg.CreateTopicsResponse)
		for _, topic := range asked.Topics {
			for _, c := range topic.Configs {
				if n, _ := strconv.Atoi(*c.Value); c.Name != "segment.bytes" || n >= 50<<20 {
					continue
				}
				refused := kmsg.NewCreateTopicsResponseTopic()
				refused.Topic, refused.ErrorCode = topic.Topic, code.Code
				refused.ErrorMessage = kmsg.StringPtr("segment.bytes must be at least 52428800")
				answer.Topics = append(answer.Topics, refused)
			}
		}
		return answer, nil, len(answer.Topics) > 0
	})
	return s
}

func TestABrokerThatRefusesASettingIsGivenAnother(t *testing.T) {
	for _, code := range []*kerr.Error{kerr.InvalidConfig, kerr.PolicyViolation} {
		s := managed(t, code)
		err := producer.EnsureTopics(s.ctx(), s.cluster("a", nil), "orders")
		var refused *producer.RefusedError
		if !errors.As(err, &refused) || !strings.Contains(refused.Found, "segment.bytes must be at least") ||
			!strings.Contains(refused.Do, "kafka.topic_settings") {
			t.Errorf("got %v, expected a refusal that names the setting and the way out", err)
		}
		c := s.cluster("b", func(c *producer.Config) {
			c.TopicSettings = map[string]string{"segment.bytes": "52428800", "min.insync.replicas": "1"}
		})
		if err := producer.EnsureTopics(s.ctx(), c, "orders"); err != nil {
			t.Fatal(err)
		}
		made, err := s.admin.DescribeTopicConfigs(s.ctx(), "store.orders", "store.watermarks", "store.requests")
		if err != nil {
			t.Fatal(err)
		}
		for _, topic := range made {
			found := map[string]string{}
			for _, c := range topic.Configs {
				found[c.Key] = c.MaybeValue()
			}
			if found["segment.bytes"] != "52428800" || found["min.insync.replicas"] != "1" {
				t.Errorf("%s: %v", topic.Name, found)
			}
		}
	}
}

func TestWhatIsWrittenIsCompressedAsConfigured(t *testing.T) {
	for number, name := range []string{"none", "gzip", "snappy", "lz4", "zstd"} { // Kafka's numbers
		s := newStage(t)
		session := s.take(s.cluster("a", func(c *producer.Config) { c.Compression = name }))
		s.commit(session, next(session, s.order(1, "2026-11-20T10:00:00Z", strings.Repeat("Shipped", 100))))
		if records := s.committed("store.orders"); len(records) != 1 ||
			int(records[0].Attrs.CompressionType()) != number {
			t.Errorf("%s: %+v: expected one record, compressed with %d", name, records, number)
		}
	}
}
