package main

import (
	"context"
	"encoding/binary"
	"fmt"
	"maps"
	"testing"

	"github.com/twmb/avro"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/sr"

	"github.com/storestream/storestream/config"
	"github.com/storestream/storestream/internal/standins/servers"
	"github.com/storestream/storestream/schemas"
)

// decoder reads Confluent's wire format by the schemas at a registry, with another Avro library than the one
// that writes it.
type decoder struct {
	registry *sr.Client
	schemas  map[int]*avro.Schema
}

func (d *decoder) decode(ctx context.Context, data []byte) (map[string]any, error) {
	if len(data) < 5 || data[0] != 0 {
		return nil, fmt.Errorf("no wire format: % x", data)
	}
	id := int(binary.BigEndian.Uint32(data[1:5]))
	if d.schemas[id] == nil {
		registered, err := d.registry.SchemaByID(ctx, id)
		if err != nil {
			return nil, err
		}
		if d.schemas[id], err = avro.Parse(registered.Schema); err != nil {
			return nil, err
		}
	}
	var value any
	rest, err := d.schemas[id].Decode(data[5:], &value)
	if err == nil && len(rest) > 0 {
		err = fmt.Errorf("%d bytes left", len(rest))
	}
	record, _ := value.(map[string]any)
	return record, err
}

// consume reads every topic as any consumer would, until each has shown so many different rows.
func consume(t *testing.T, c *config.Config, want map[string]int) {
	t.Helper()
	registry, err := sr.NewClient(sr.URLs(c.Registry.URL))
	if err != nil {
		t.Fatal(err)
	}
	resources := map[string]string{}
	var topics []string
	for _, name := range schemas.Names() {
		topic := c.Kafka.TopicPrefix + name
		topics, resources[topic] = append(topics, topic), name
	}
	client, err := kgo.NewClient(kgo.SeedBrokers(c.Kafka.Brokers...), kgo.ConsumeTopics(topics...),
		kgo.UnknownTopicRetries(-1),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.FetchIsolationLevel(kgo.ReadCommitted()))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(t.Context(), deadline)
	defer cancel()
	d := &decoder{registry: registry, schemas: map[int]*avro.Schema{}}
	ids := map[string]map[any]bool{}
	for missing := len(want); missing > 0; {
		fetches := client.PollFetches(ctx)
		if err := fetches.Err0(); err != nil {
			counts := map[string]int{}
			for name := range want {
				counts[name] = len(ids[name])
			}
			t.Fatalf("%v; rows so far %v, expected %v", err, counts, want)
		}
		fetches.EachRecord(func(r *kgo.Record) {
			name := resources[r.Topic]
			key, err := d.decode(ctx, r.Key)
			if err != nil {
				t.Fatalf("key in %s: %v", r.Topic, err)
			}
			value, err := d.decode(ctx, r.Value)
			if err != nil {
				t.Fatalf("value in %s: %v", r.Topic, err)
			}
			if value["id"] == nil || key["id"] != value["id"] || value["updated_at"] == nil {
				t.Fatalf("%s: key %v with value %v", r.Topic, key, value)
			}
			if ids[name] == nil {
				ids[name] = map[any]bool{}
			}
			ids[name][key["id"]] = true
		})
		missing = 0
		for name, n := range want {
			if len(ids[name]) < n {
				missing++
			}
		}
	}
}

// Whoever pastes a command of kcat should see rows, not what librdkafka says of telemetry.
func TestTheEmbeddedBrokerOffersAllButTelemetry(t *testing.T) {
	offered := func(options ...kfake.Opt) map[int16]bool {
		broker := servers.BrokerForTest(t, servers.BrokerConfig{Options: options})
		client, err := kgo.NewClient(kgo.SeedBrokers(broker.Brokers()...))
		if err != nil {
			t.Fatal(err)
		}
		defer client.Close()
		answer, err := kmsg.NewPtrApiVersionsRequest().RequestWith(t.Context(), client)
		if err != nil {
			t.Fatal(err)
		}
		keys := map[int16]bool{}
		for _, key := range answer.ApiKeys {
			keys[key.ApiKey] = true
		}
		return keys
	}
	want := offered()
	delete(want, int16(kmsg.GetTelemetrySubscriptions))
	delete(want, int16(kmsg.PushTelemetry))
	if got := offered(kfake.MaxVersions(withoutTelemetry())); !maps.Equal(got, want) {
		t.Errorf("it offers %v, expected %v", got, want)
	}
}
