package main

import (
	"context"
	"fmt"
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
	// The same content in other forms, from one answer to the next.
	{name: "answers with the habits of", weight: 3, hits: theAnswers, least: 5 * time.Second,
		most: 20 * time.Second,
		details: func(d draw, _ *plan, e *event) {
			stack := oneOf(d, storefake.Stacks...)
			e.how = string(stack)
			e.readings = func(r *storefake.Readings) { _ = stack.Apply(r) } // of one that is known: cannot fail
		}, do: answer},
	{name: "refuses requests for", weight: 4, hits: theAnswers, least: 5 * time.Second, most: 25 * time.Second,
		details: func(d draw, p *plan, e *event) {
			refusal := drawRefusal(d)
			refusal.Of = []string{oneOf(d, listed(p)...)}
			e.refusal, e.how, e.resources = refusal, refusal.String(), refusal.Of
			e.readings = func(r *storefake.Readings) { r.Refusals = append(r.Refusals, refusal) }
		}, do: refuse},
	{name: "API key revoked", weight: 2, hits: nothing,
		do: func(_ context.Context, s *stage, _ event) (func() error, error) {
			s.around.fake.RevokeKey()
			return nil, nil
		}},
}

// drawRefusal draws what requests are refused for. Every resource has rows with the ids.
func drawRefusal(d draw) storefake.Refusal {
	f := storefake.Refusal{What: oneOf(d, storefake.PastRows, storefake.HeavyPages, storefake.HoldsRow,
		storefake.BeforeYear, storefake.AfterYear, storefake.Future), Status: oneOf(d, 400, 403, 422, 500)}
	switch f.What {
	case storefake.PastRows:
		f.Limit = oneOf(d, 100, 400, 1500)
	case storefake.HeavyPages:
		f.Limit, f.Status = oneOf(d, 20, 100, 300), oneOf(d, 0, 500, 504)
	case storefake.HoldsRow:
		f.Limit, f.Status = 1+d.IntN(100), 500
	case storefake.BeforeYear:
		f.Limit = 1753
	case storefake.AfterYear:
		f.Limit = 9998
	}
	return f
}

// refuse refuses requests for one resource. Settling may be delayed for it, for that reason. It is not
// blocked, and no other resource suffers from it.
func refuse(ctx context.Context, s *stage, e event) (func() error, error) {
	over, err := answer(ctx, s, e)
	if err == nil && e.refusal.What == storefake.HoldsRow { // so that the open day has the row too
		err = s.load.touch(ctx, e.resources[0], int64(e.refusal.Limit))
	}
	return func() error {
		if text := s.fleet.suffers(ctx, e.resources[0], e.refusal.Code()); text != "" {
			s.journal.fail(fmt.Errorf("%s: %s", e, text))
		}
		return over()
	}, err
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
