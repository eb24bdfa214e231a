package main

import (
	"context"
	"time"
)

// restart is how long an Apache Kafka takes to start on a busy machine.
const restart = 10 * time.Second

// What happens to Kafka, and to the way there.
var brokerKinds = []*kind{
	{name: "Kafka restarted", weight: 1, hits: theBroker, least: 0, most: 3 * time.Second, takes: restart,
		needs: onApacheKafka,
		do: func(ctx context.Context, s *stage, _ event) (func() error, error) {
			return func() error { return s.around.broker.kafka.Start(ctx) }, s.around.broker.kafka.Shutdown()
		}},
	{name: "Kafka killed", weight: 2, hits: theBroker, least: 0, most: 5 * time.Second, takes: restart,
		needs: onApacheKafka,
		do: func(ctx context.Context, s *stage, _ event) (func() error, error) {
			return func() error { return s.around.broker.kafka.Start(ctx) }, s.around.broker.kafka.Kill()
		}},
	{name: "Kafka paused", weight: 2, hits: theBroker, least: 2 * time.Second, most: 20 * time.Second,
		needs: onApacheKafka,
		do: func(_ context.Context, s *stage, _ event) (func() error, error) {
			return s.around.broker.kafka.Resume, s.around.broker.kafka.Pause()
		}},
	{name: "Kafka cut off", weight: 2, hits: theBroker, least: time.Second, most: 15 * time.Second,
		do: cut(toBroker)},
	{name: "Kafka's connections reset", weight: 1, hits: theBroker, least: time.Second, most: 8 * time.Second,
		do: poison(toBroker, toxic{"reset_peer", downstream, 0})},
	// The broker carries out requests, and its answers get lost: the outcome of a commit is unknown.
	{name: "Kafka's answers lost", weight: 2, hits: theBroker, least: 3 * time.Second, most: 20 * time.Second,
		do: poison(toBroker, toxic{"timeout", downstream, 0})},
	{name: "requests to Kafka lost", weight: 1, hits: theBroker, least: 3 * time.Second, most: 20 * time.Second,
		do: poison(toBroker, toxic{"timeout", upstream, 0})},
	{name: "Kafka far away", weight: 2, hits: theBroker, least: 5 * time.Second, most: 15 * time.Second,
		details: func(d draw, _ *plan, e *event) { e.number = 50 + d.IntN(1000) },
		do:      poison(toBroker, toxic{"latency", downstream, 0})},
	{name: "Kafka over a thin line", weight: 1, hits: theBroker, least: 5 * time.Second, most: 15 * time.Second,
		details: func(d draw, _ *plan, e *event) { e.number = 5 + d.IntN(50) },
		do:      poison(toBroker, toxic{"bandwidth", upstream, 0})},
}

// way is the proxy before one of the parts.
type way func(*stage) *proxy

func toBroker(s *stage) *proxy   { return s.around.broker.proxy }
func toPooler(s *stage) *proxy   { return s.around.pooler.proxy }
func toRegistry(s *stage) *proxy { return s.around.registry.proxy }

func cut(to way) func(context.Context, *stage, event) (func() error, error) {
	return func(_ context.Context, s *stage, _ event) (func() error, error) {
		p := to(s)
		p.cut()
		return p.repair, nil
	}
}

// poison takes the toxic's number (milliseconds of latency, KB a second of bandwidth) from the event.
func poison(to way, t toxic) func(context.Context, *stage, event) (func() error, error) {
	return func(_ context.Context, s *stage, e event) (func() error, error) {
		p := to(s)
		if t.kind == "latency" || t.kind == "bandwidth" {
			t.amount = e.number
		}
		return p.repair, p.poison(t)
	}
}
