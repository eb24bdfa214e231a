package main

import (
	"context"
	"fmt"
	"time"
)

// What happens to the service's clock, which stamps rows, says which day it is, and is PostgreSQL's now().
var clockKinds = []*kind{
	// By more than the overlap. Rows written meanwhile are stamped with instants that are settled. The clock
	// is slewed back, little by little: a step forward makes every open transaction a late one. If no poll
	// meets it before that, its operator asks for a sweep, as the runbook says.
	{name: "clock set", weight: 3, hits: theTables, least: 3 * time.Second, most: 15 * time.Second,
		needs: overDatabase, takes: 20 * time.Second,
		details: func(d draw, p *plan, e *event) {
			e.back = p.polling.overlap + d.between(5*time.Second, 2*time.Minute)
		},
		do: func(ctx context.Context, s *stage, e event) (func() error, error) {
			if nearMidnight(s, e.back+2*s.plan.polling.restOverlap) {
				return nil, notPlayed("the clock stays as it is: a day of REST has just ended, or is about to")
			}
			before := s.around.fake.Clock().Now()
			if err := stepClock(ctx, s, -e.back); err != nil {
				return nil, notPlayed(fmt.Sprintf("setting the clock back: %v", err))
			}
			s.excuses.steppedBack(before, e.back)
			from := time.Now()
			return func() error {
				met := polledSince(ctx, s, from)
				if err := slew(ctx, s, e.back); err != nil || met {
					return err
				}
				s.journal.say("no poll met the clock while it was back: a sweep is asked for")
				s.excuses.missedStep()
				s.sweepAll(ctx)
				return nil
			}, nil
		}},
	// REST reports whole days, so a row that is stamped further back than the overlap may be in a day that is
	// over. Such a row is late, and only a sweep finds it. The clock steps by less.
	{name: "clock steps", weight: 3, hits: theTables, needs: overREST,
		details: func(d draw, p *plan, e *event) {
			e.step = p.polling.partOfOverlap(d, .05, .3)
			if d.likely(.6) {
				e.step = -e.step
			}
			e.how = fmt.Sprintf("by %s", e.step)
		},
		do: func(ctx context.Context, s *stage, e event) (func() error, error) {
			s.excuses.steppedBack(s.around.fake.Clock().Now(), -e.step)
			return nil, stepClock(ctx, s, e.step)
		}},
}

func stepClock(ctx context.Context, s *stage, d time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, lockPatience)
	defer cancel()
	return s.around.fake.StepClock(ctx, d)
}

// polledSince waits until a poll of each table has ended that began after from. It returns whether that was
// within half of the overlap: a poll may take rows stamped longer before it for settled.
func polledSince(ctx context.Context, s *stage, from time.Time) bool {
	ctx, cancel := context.WithDeadline(ctx, from.Add(s.plan.polling.overlap/2))
	defer cancel()
	for {
		more := s.tail.more()
		late := false
		for table := range tables {
			m, _ := s.tail.lastMark(table)
			late = late || !m.AsOf.After(from)
		}
		if !late {
			return true
		}
		select {
		case <-more:
		case <-ctx.Done():
			return false
		}
	}
}

// slew moves the clock forward by d in steps that are shorter than the overlap. It goes on even if PostgreSQL
// is away.
func slew(ctx context.Context, s *stage, d time.Duration) error {
	const step = 10 * time.Second
	for d > 0 {
		if err := stepClock(ctx, s, min(d, step)); err != nil {
			s.journal.say("slewing the clock: %v", err)
		} else {
			d -= step
		}
		if !until(ctx, time.Now().Add(time.Second)) {
			return context.Cause(ctx)
		}
	}
	return nil
}

// nearMidnight says whether a midnight of the service's lies within d of now.
func nearMidnight(s *stage, d time.Duration) bool {
	offset := s.plan.service.readings.DayOffset
	now := s.around.fake.Clock().Now().Add(offset)
	return now.Add(-d).Truncate(wholeDay) != now.Add(d).Truncate(wholeDay)
}
