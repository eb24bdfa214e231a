package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/kversion"

	"github.com/storestream/storestream/internal/standins/servers"
	"github.com/storestream/storestream/internal/standins/storefake"
	"github.com/storestream/storestream/internal/terminal"
)

// startKafka starts the broker and the schema registry, embedded or real ones, and returns the registry's
// URL.
func (d *demo) startKafka(ctx context.Context) (registry string, err error) {
	if d.kafka {
		return d.startApacheKafka(ctx)
	}
	broker, err := servers.StartBroker(servers.BrokerConfig{Ports: []int{d.ports.broker.number},
		Options: []kfake.Opt{kfake.MaxVersions(withoutTelemetry())}})
	if err != nil {
		return "", err
	}
	d.onStop(broker.Stop)
	d.screen.part("Kafka broker", d.ports.broker.address(), "embedded (kfake), in memory",
		d.ports.broker.remark())
	r, err := servers.StartRegistry(d.ports.registry.number)
	if err != nil {
		return "", err
	}
	d.onStop(r.Stop)
	d.screen.part("schema registry", r.URL, "embedded (srfake), in memory", d.ports.registry.remark())
	return r.URL, nil
}

// withoutTelemetry is Apache Kafka's offer to clients without the requests for telemetry. librdkafka (kcat,
// Python) reports on stderr if it is offered telemetry.
func withoutTelemetry() *kversion.Versions {
	versions := kversion.Stable()
	for _, key := range []kmsg.Key{kmsg.GetTelemetrySubscriptions, kmsg.PushTelemetry} {
		versions.SetMaxKeyVersion(int16(key), -1)
	}
	return versions
}

// startApacheKafka starts an Apache Kafka and an Apicurio, which fetchKafka has fetched.
func (d *demo) startApacheKafka(ctx context.Context) (registry string, err error) {
	d.screen.starting("Apache Kafka")
	began := time.Now()
	broker, err := servers.StartKafka(ctx, servers.KafkaConfig{Port: d.ports.broker.number})
	if err != nil {
		return "", err
	}
	d.onStop(broker.Stop)
	d.apache = broker
	ready := func() string { return "ready after " + terminal.Duration(time.Since(began)) }
	d.screen.part("Apache Kafka", d.ports.broker.address(), servers.KafkaVersion()+", one node", ready(),
		d.ports.broker.remark())
	d.screen.starting("schema registry")
	began = time.Now()
	r, err := servers.StartApicurio(ctx, servers.ApicurioConfig{Port: d.ports.registry.number})
	if err != nil {
		return "", err
	}
	d.onStop(r.Stop)
	d.screen.part("schema registry", local(d.ports.registry.number), "Apicurio "+servers.ApicurioVersion,
		ready(), d.ports.registry.remark())
	return r.URL(), nil
}

// fetchKafka has Maven fetch Apache Kafka and Apicurio, if this machine does not have them yet. It comes
// first, so that a user who lacks Java or Maven learns it at once.
func fetchKafka(ctx context.Context, s *screen) error {
	for _, part := range []struct {
		name  string
		fetch func(context.Context, servers.Progress) error
	}{
		{"Apache Kafka", servers.FetchKafka}, {"schema registry", servers.FetchApicurio},
	} {
		told := false
		err := part.fetch(ctx, func(text string) {
			if !told { // once, even if the screen cannot redraw a line
				s.note("%s: %s", part.name, text)
			}
			told = true
			s.waiting(part.name, text)
		})
		if err != nil && ctx.Err() == nil {
			return fmt.Errorf("--kafka: %w\n(without --kafka the demo uses an embedded broker and registry)", err)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// consumerSettings lists the settings that your own consumer needs, a line each.
func (w *watch) consumerSettings() []string {
	var topics []string
	for _, name := range storefake.Names() {
		topics = append(topics, "store."+name)
	}
	const perLine = 3 // more are wider than 80 columns
	var lines []string
	for _, setting := range [][2]string{
		{"bootstrap.servers", w.ports.broker.address()},
		{"schema.registry.url", w.registry},
		{"isolation.level", "read_committed"},
		{"topics", strings.Join(topics[:perLine], " ")},
		{"", strings.Join(topics[perLine:], " ")},
	} {
		lines = append(lines, fmt.Sprintf("  %-20s %s", setting[0], setting[1]))
	}
	return lines
}
