//go:build !kafka

package producer_test

import (
	"cmp"
	"maps"
	"net/http"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/kversion"

	"github.com/storestream/storestream/producer"
)

// shows has the brokers answer DescribeConfigs with these settings of each topic, or with an error.
func (s *stage) shows(settings map[string]string, refusal *kerr.Error) {
	s.broker.ControlKey(int16(kmsg.DescribeConfigs), func(req kmsg.Request) (kmsg.Response, error, bool) {
		s.broker.KeepControl()
		answer := req.ResponseKind().(*kmsg.DescribeConfigsResponse)
		for _, asked := range req.(*kmsg.DescribeConfigsRequest).Resources {
			topic := kmsg.NewDescribeConfigsResponseResource()
			topic.ResourceType, topic.ResourceName = asked.ResourceType, asked.ResourceName
			if refusal != nil {
				topic.ErrorCode = refusal.Code
			}
			for name, value := range settings {
				if name == "cleanup.policy" && asked.ResourceName == "store.requests" && value == "compact" {
					value = "delete"
				}
				one := kmsg.NewDescribeConfigsResponseResourceConfig()
				one.Name, one.Value = name, &value
				topic.Configs = append(topic.Configs, one)
			}
			answer.Resources = append(answer.Resources, topic)
		}
		return answer, nil, true
	})
}

// Managed brokers show a part of a topic's settings, or none. What is absent is unknown, and not wrong.
func TestASettingThatTheBrokersDoNotShowRefusesNothing(t *testing.T) {
	all := map[string]string{"cleanup.policy": "compact", "message.timestamp.type": "CreateTime",
		"retention.ms": "-1", "max.compaction.lag.ms": "3600000", "delete.retention.ms": "604800000"}
	without := func(names ...string) map[string]string {
		some := maps.Clone(all)
		for _, name := range names {
			delete(some, name)
		}
		return some
	}
	old := kversion.Stable()
	old.SetMaxKeyVersion(int16(kmsg.DescribeConfigs), -1)
	for name, c := range map[string]struct {
		settings map[string]string
		refusal  *kerr.Error
		option   kfake.Opt
		unknown  string // of the data topic; empty: all
	}{
		"no time": {settings: without("message.timestamp.type"), unknown: "message.timestamp.type"},
		"no policy": {settings: without("cleanup.policy", "delete.retention.ms"),
			unknown: "cleanup.policy, delete.retention.ms"},
		"none":                 {},
		"refused to this user": {refusal: kerr.TopicAuthorizationFailed},
		"unsupported":          {refusal: kerr.UnsupportedVersion},
		"an unknown request":   {option: kfake.MaxVersions(old)},
	} {
		t.Run(name, func(t *testing.T) {
			var s *stage
			if c.option != nil {
				s = newStage(t, c.option)
			} else {
				s = newStage(t)
				s.shows(c.settings, c.refusal)
			}
			session := s.take(s.cluster("a", nil))
			s.commit(session, next(session, s.order(1, "2026-11-20T09:00:00Z", "Shipped")))
			s.wantIDs(1)
			found, err := s.rehearse(s.cluster("b", nil), "orders")
			if err != nil {
				t.Fatal(err)
			}
			var named []string
			for _, concern := range found.Concerns {
				if concern.Topic == "store.orders" && concern.Unknown {
					named = append(named, concern.Setting)
				}
				if concern.Unknown && strings.Contains(concern.Do, "kafka-configs.sh") {
					t.Errorf("a command that cannot help: %s", concern.Do)
				}
			}
			want := cmp.Or(c.unknown, "cleanup.policy, message.timestamp.type, "+
				"delete.retention.ms")
			if got := strings.Join(named, "; "); got != want {
				t.Errorf("unknown are %q, expected %q", got, want)
			}
		})
	}
	s := newStage(t)
	s.shows(map[string]string{"cleanup.policy": "compact,delete"}, nil)
	if _, err := producer.Take(s.ctx(), s.cluster("a", nil), s.orders()); !producer.Refused(err) {
		t.Errorf("taking over: %v, expected what is shown to be refused", err)
	}
	s = newStage(t)
	s.shows(nil, kerr.BrokerNotAvailable)
	_, err := producer.Take(s.ctx(), s.cluster("a", nil), s.orders())
	if wantText(t, err, "DescribeConfigs: BROKER_NOT_AVAILABLE"); producer.Refused(err) {
		t.Errorf("taking over: %v, expected an error that may pass", err)
	}
}

// Only an answer of the brokers makes a setting unknown. Otherwise a topic whose policy is delete would pass
// for a good one while no broker answers.
func TestSettingsThatNoBrokerAnswersForAreNotUnknown(t *testing.T) {
	s := tokenStage(t)
	url, _, _ := issuer(t, func(*http.Request) bool { return false }, "")
	settings, err := producer.SettingsOf(s.ctx(), s.cluster("a", oauth(url, nil)), "store.orders")
	if wantText(t, err, "DescribeConfigs: "); settings != nil {
		t.Errorf("the settings are %v, although no broker let this client in", settings)
	}
}

// A broker that describes a topic, and says that this user may not even do that, says nothing of rights.
func TestRightsThatTheBrokersDoNotTellAreNotMissing(t *testing.T) {
	s := newStage(t)
	c := s.cluster("a", nil)
	s.take(c).Close()
	req := kmsg.NewPtrMetadataRequest()
	for _, name := range []string{"store.orders", "store.watermarks", "store.dead_letters", "store.requests"} {
		asked := kmsg.NewMetadataRequestTopic()
		asked.Topic = &name
		req.Topics = append(req.Topics, asked)
	}
	all, err := req.RequestWith(s.ctx(), s.cl)
	if err != nil {
		t.Fatal(err)
	}
	s.broker.ControlKey(int16(kmsg.Metadata), func(req kmsg.Request) (kmsg.Response, error, bool) {
		s.broker.KeepControl()
		asked := req.(*kmsg.MetadataRequest)
		if !asked.IncludeTopicAuthorizedOperations {
			return nil, nil, false
		}
		answer := asked.ResponseKind().(*kmsg.MetadataResponse)
		answer.Brokers, answer.ControllerID = all.Brokers, all.ControllerID
		for _, topic := range all.Topics {
			if *topic.Topic == *asked.Topics[0].Topic {
				topic.AuthorizedOperations = 0
				answer.Topics = append(answer.Topics, topic)
			}
		}
		return answer, nil, true
	})
	if _, err := s.rehearse(c, "orders"); err != nil {
		t.Error(err)
	}
}
