package main

import (
	"context"
	"time"

	"github.com/storestream/storestream/internal/standins/storefake"
)

// Mishaps of the service's REST API.
var serviceKinds = []*kind{
	{name: "service fails now and then:", weight: 4, hits: theService, least: 5 * time.Second,
		most: 20 * time.Second,
		details: func(d draw, p *plan, e *event) {
			e.fault = oneOf(d, storefake.ServerError, storefake.ServerErrorHTML, storefake.TooMany,
				storefake.Unauthorized, storefake.Revoke, storefake.Truncated,
				storefake.Cut, storefake.Endless, storefake.Slow, storefake.Hang, storefake.Reset, storefake.Redirect,
				storefake.MoreForever, storefake.WrongDate)
			e.amount, e.step = oneOf(d, .05, .2, .4), 3*p.polling.restOverlap
			if d.likely(.5) {
				e.step = -e.step
			}
		}, do: failRequests},
	{name: "service fails always:", weight: 3, hits: theService, least: 2 * time.Second, most: 12 * time.Second,
		details: func(d draw, _ *plan, e *event) {
			e.fault, e.amount = oneOf(d, storefake.ServerError, storefake.ServerErrorHTML, storefake.TooMany,
				storefake.Truncated, storefake.Hang,
				storefake.Reset, storefake.Unauthorized, storefake.Redirect), 1
		}, do: failRequests},
	{name: "API key revoked", weight: 2, hits: nothing,
		do: func(_ context.Context, s *stage, _ event) (func() error, error) {
			s.around.fake.RevokeKey()
			return nil, nil
		}},
}

func failRequests(_ context.Context, s *stage, e event) (func() error, error) {
	repair := func() error {
		return s.around.fake.SetFaults(func(f *storefake.Faults) { f.Shares = nil })
	}
	return repair, s.around.fake.SetFaults(func(f *storefake.Faults) {
		f.Shares, f.SlowFor = map[storefake.Fault]float64{e.fault: e.amount}, 3*time.Second
		f.DateOff = e.step
	})
}
