package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/storestream/storestream/internal/standins/storefake"
)

// What an operator asks for by the command line.
var requestKinds = []*kind{
	{name: "reset of", weight: 4, hits: nothing,
		details: func(d draw, _ *plan, e *event) {
			names := storefake.Names()
			d.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
			e.resources = names[:1+d.IntN(2)]
			e.back = oneOf(d, 10*time.Second, time.Minute, 10*time.Minute, 5*wholeDay, 3000*wholeDay)
		}, do: reset},
	{name: "reset of", weight: 1, hits: nothing,
		details: func(d draw, _ *plan, e *event) {
			e.resources, e.back = storefake.Names(), oneOf(d, time.Minute, 3000*wholeDay)
		}, do: reset},
	{name: "sweep of", weight: 2, hits: nothing,
		details: func(d draw, _ *plan, e *event) {
			names := storefake.Names()
			d.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
			e.resources = names[:1+d.IntN(len(names))]
		},
		do: func(ctx context.Context, s *stage, e event) (func() error, error) {
			s.fleet.command(ctx, append([]string{"sweep", "--yes"}, e.resources...)...)
			return nil, nil
		}},
	// The service has some of these rows, and the topic must keep them. It has just lost the others.
	{name: "erasure asked for:", weight: 3, hits: nothing,
		details: func(d draw, p *plan, e *event) {
			e.resources, e.number = []string{oneOf(d, storefake.Names()...)}, 1+d.IntN(10)
			if e.count = oneOf(d, 0, 1, 3); p.source == fromREST { // an overlap would outlast the run
				e.count = 0
			}
			e.how = fmt.Sprintf("%d rows that there are, and %d that are gone, of", e.number, e.count)
		}, do: erase},
	{name: "kill -9 in a sweep of", weight: 3, hits: everyInstance, least: 0, most: 5 * time.Second,
		details: func(d draw, _ *plan, e *event) { e.resources = []string{oneOf(d, storefake.Names()...)} },
		do: func(ctx context.Context, s *stage, e event) (func() error, error) {
			k := killedSweep{stage: s, resource: e.resources[0]}
			return func() error { return k.after(ctx) }, k.strike(ctx)
		}},
}

// erase asks for an erasure, and does not wait for it.
func erase(ctx context.Context, s *stage, e event) (func() error, error) {
	resource := e.resources[0]
	ids := s.load.remove(ctx, resource, e.count)
	for range e.number {
		if id := s.load.anyID(resource); !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	args := []string{"erase", "--yes", resource}
	for _, id := range slices.Compact(ids) {
		args = append(args, fmt.Sprint(id))
	}
	s.fleet.command(ctx, args...)
	return nil, nil
}

// reset asks for a replay from so long ago by the service's clock. It does not wait for the replay, nor even
// for an instance.
func reset(ctx context.Context, s *stage, e event) (func() error, error) {
	to := s.around.fake.Clock().Now().Add(-e.back).UTC().Format(time.RFC3339Nano)
	args := append([]string{"watermark", "reset", "--yes", "--to", to}, e.resources...)
	s.fleet.command(ctx, args...)
	return nil, nil
}
