package servers

import (
	"fmt"
	"maps"
	"net"
	"strings"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// BrokerConfig says how to start an embedded Kafka-protocol broker. The zero value is good.
type BrokerConfig struct {
	Ports   []int       // one broker for each; if empty, one broker on a free port
	Options []kfake.Opt // more of kfake's own, such as kfake.SleepOutOfOrder, but for kfake.ListenFn
	// Listen opens the brokers' listeners. nil stands for net.Listen.
	Listen func(network, address string) (net.Listener, error)
}

// brokerSettings keep kfake from compacting, for ten years. Its compaction does not know open transactions: a
// committed watermark can vanish, and the log start moves past records that are still there.
var brokerSettings = map[string]string{
	"log.cleaner.backoff.ms": "315360000000",
}

// Broker is an embedded broker, all in this process's memory: about 100 MB for a million records of 120
// bytes. Nothing is freed before Stop. It does not check topic settings. A write that it refuses to a fenced
// producer opens a transaction for the new owner, so test fencing on Apache Kafka. Its methods for injecting
// failures are kfake's.
type Broker struct{ *kfake.Cluster }

// StartBroker starts an embedded broker. Kafka's clients, kcat included, can join at Brokers. Asking for a
// topic does not create it.
func StartBroker(c BrokerConfig) (*Broker, error) {
	listen := c.Listen
	if listen == nil {
		listen = net.Listen
	}
	options := []kfake.Opt{kfake.NumBrokers(1), kfake.BrokerConfigs(maps.Clone(brokerSettings)),
		kfake.ListenFn(func(network, address string) (net.Listener, error) {
			l, err := listen(network, address)
			return lateEnds{l}, err
		})}
	if len(c.Ports) > 0 {
		options = append(options, kfake.Ports(c.Ports...))
	}
	cluster, err := kfake.NewCluster(append(options, c.Options...)...)
	if err != nil {
		return nil, fmt.Errorf("start the embedded broker: %w", err)
	}
	return &Broker{cluster}, nil
}

// Brokers are the addresses to bootstrap from.
func (b *Broker) Brokers() []string { return b.ListenAddrs() }

// AskForToken makes the broker accept only clients that log in with this token. kfake has no OAUTHBEARER, so
// this plays its part of the login. Apache Kafka has the whole of it.
func (b *Broker) AskForToken(token string) {
	b.ControlKey(int16(kmsg.SASLHandshake), func(kmsg.Request) (kmsg.Response, error, bool) {
		b.KeepControl()
		answer := kmsg.NewPtrSASLHandshakeResponse()
		answer.Version, answer.SupportedMechanisms = 1, []string{"OAUTHBEARER"}
		return answer, nil, true
	})
	b.ControlKey(int16(kmsg.SASLAuthenticate), func(req kmsg.Request) (kmsg.Response, error, bool) {
		b.KeepControl()
		asked := req.(*kmsg.SASLAuthenticateRequest)
		answer := asked.ResponseKind().(*kmsg.SASLAuthenticateResponse)
		if !strings.Contains(string(asked.SASLAuthBytes), "auth=Bearer "+token+"\x01") {
			answer.SASLAuthBytes = []byte(`{"status":"invalid_token"}`)
		}
		return answer, nil, true
	})
}

// Stop ends the broker and forgets everything. It never fails.
func (b *Broker) Stop() error {
	b.Close()
	return nil
}
