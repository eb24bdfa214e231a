package main

import (
	"context"
	"fmt"
	"net"
	"path/filepath"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/storestream/storestream/internal/standins/servers"
)

// broker is the Kafka that storestream reaches through a proxy, and the harness past it.
type broker struct {
	proxy    *proxy
	kafka    *servers.Kafka  // nil if the broker is embedded
	embedded *servers.Broker // nil if the broker is Apache Kafka
	direct   string          // the address past the proxy
	// options are those of a client that goes past the proxy.
	options []kgo.Opt
}

// startBroker starts a broker of that kind behind a proxy. To clients that come through the proxy the broker
// gives out the proxy's address: with its own they would go past the proxy from then on.
func startBroker(ctx context.Context, kind, dir string) (*broker, error) {
	ports, err := servers.FreePorts(4)
	if err != nil {
		return nil, err
	}
	front, direct, behind, controller := address(ports[0]), address(ports[1]), address(ports[2]),
		address(ports[3])
	b := &broker{direct: direct}
	if kind == embedded {
		behind = direct
	}
	if b.proxy, err = newProxy("Kafka", ports[0], behind); err != nil {
		return nil, err
	}
	if kind == embedded {
		err = b.startEmbedded(ports[1], front)
	} else {
		b.options = []kgo.Opt{kgo.SeedBrokers(direct)}
		b.kafka, err = servers.StartKafka(ctx, servers.KafkaConfig{Dir: filepath.Join(dir, "kafka"), Port: ports[1],
			Settings: map[string]string{
				"listeners": fmt.Sprintf("PLAINTEXT://%s,PROXIED://%s,CONTROLLER://%s", direct,
					behind, controller),
				"advertised.listeners":           fmt.Sprintf("PLAINTEXT://%s,PROXIED://%s", direct, front),
				"controller.quorum.voters":       "1@" + controller,
				"listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,PROXIED:PLAINTEXT,CONTROLLER:PLAINTEXT",
				"inter.broker.listener.name":     "PLAINTEXT",
			}})
	}
	if err != nil {
		b.proxy.close()
		return nil, err
	}
	return b, nil
}

// startEmbedded starts the embedded broker, which can give out one address only: the proxy's. The harness's
// clients go to the broker when they are sent there.
func (b *broker) startEmbedded(port int, front string) error {
	var err error
	b.embedded, err = servers.StartBroker(servers.BrokerConfig{Ports: []int{port},
		Listen: func(network, at string) (net.Listener, error) {
			l, err := net.Listen(network, at)
			return advertised{l, front}, err
		}})
	b.options = []kgo.Opt{kgo.SeedBrokers(b.direct), kgo.Dialer(func(ctx context.Context, network,
		to string) (net.Conn, error) {
		if to == front {
			to = b.direct
		}
		return new(net.Dialer).DialContext(ctx, network, to)
	})}
	return err
}

// advertised is a listener that reports another address than its own.
type advertised struct {
	net.Listener
	at string
}

func (a advertised) Addr() net.Addr {
	at, err := net.ResolveTCPAddr("tcp", a.at)
	if err != nil {
		return a.Listener.Addr()
	}
	return at
}

// command is the broker's address for the command line. It goes past the proxy if the broker has such an
// address.
func (b *broker) command() string {
	if b.kafka != nil {
		return b.direct
	}
	return b.proxy.address()
}

func (b *broker) stop() error {
	b.proxy.close()
	if b.kafka != nil {
		_ = b.kafka.Resume() // a run that was broken off may have left it paused
		return b.kafka.Stop()
	}
	return b.embedded.Stop()
}
