package main

import (
	"context"
	"fmt"
	"time"

	"github.com/storestream/storestream/internal/storefake"
)

// What happens to the service's clock, which stamps rows, says which day it is, and is PostgreSQL's now().
var clockKinds = []*kind{
	// By more than the overlap. What is written meanwhile is stamped with instants that are settled. It comes
	// right little by little, as a clock does that is slewed: a step forward makes every open transaction a
	// late one. Where no poll meets it before that, its operator asks for a sweep, as the runbook says.
	{name: "clock set", weight: 3, hits: theTables, least: 3 * time.Second, most: 15 * time.Second,
		needs: overDatabase, takes: 20 * time.Second,
		details: func(d draw, p *plan, e *event) {
			e.back = p.polling.overlap + d.between(5*time.Second, 2*time.Minute)
		},
		do: func(ctx context.Context, s *stage, e event) (func() error, error) {
			if s.nearMidnight(e.back + 2*s.plan.polling.restOverlap) {
				return nil, notPlayed("the clock stays as it is: a day of REST has just ended, or is about to")
			}
			if err := s.stepClock(ctx, -e.back); err != nil {
				return nil, notPlayed(fmt.Sprintf("setting the clock back: %v", err))
			}
			s.load.steppedBack()
			from := time.Now()
			return func() error {
				met := s.polledSince(ctx, from)
				if err := s.slew(ctx, e.back); err != nil || met {
					return err
				}
				s.journal.say("no poll met the clock while it was back: a sweep is asked for")
				s.load.missedStep()
				s.sweepAll(ctx)
				return nil
			}, nil
		}},
	// REST tells whole days, so a row that is stamped further back than the overlap may be in a day that is
	// over: that row is late, and nothing but a sweep finds it. The clock steps by less.
	{name: "clock steps", weight: 3, hits: theTables, needs: overREST,
		details: func(d draw, p *plan, e *event) {
			e.step = p.polling.partOfOverlap(d, .05, .3)
			if d.likely(.6) {
				e.step = -e.step
			}
			e.how = fmt.Sprintf("by %s", e.step)
		},
		do: func(ctx context.Context, s *stage, e event) (func() error, error) {
			s.load.steppedBack()
			return nil, s.stepClock(ctx, e.step)
		}},
}

func (s *stage) stepClock(ctx context.Context, d time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, lockPatience)
	defer cancel()
	return s.around.fake.StepClock(ctx, d)
}

// polledSince waits until a poll of each table has ended that began after an instant, and says whether that
// was within half of the overlap: what is stamped longer before a poll it may take for settled.
func (s *stage) polledSince(ctx context.Context, from time.Time) bool {
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

// slew moves the clock forward by d in steps that are shorter than the overlap. It goes on where PostgreSQL
// is away.
func (s *stage) slew(ctx context.Context, d time.Duration) error {
	const step = 10 * time.Second
	for d > 0 {
		if err := s.stepClock(ctx, min(d, step)); err != nil {
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
func (s *stage) nearMidnight(d time.Duration) bool {
	offset := s.plan.service.readings.DayOffset
	now := s.around.fake.Clock().Now().Add(offset)
	return now.Add(-d).Truncate(wholeDay) != now.Add(d).Truncate(wholeDay)
}

// gone makes n rows vanish that the topic has as they are, and have not changed lately. back brings them back
// as they were: whoever looks between finds them deleted, and afterwards nothing has happened.
func (s *stage) gone(ctx context.Context, resource string, n int) (back func(context.Context) error) {
	var rows []storefake.Row
	for range n {
		id := s.load.anyID(resource)
		row, there := s.around.fake.Row(resource, id)
		published, known := s.tail.find(resource, id)
		if !there || !known || published.millis != s.around.shown(resource, row.Time("updated_at")).UnixMilli() {
			continue
		}
		work, cancel := context.WithTimeout(ctx, lockPatience)
		err := s.around.fake.Do(work, func(tx *storefake.Tx) error {
			now, there, err := tx.Get(work, resource, id)
			if err != nil || !there || !now.Time("updated_at").Equal(row.Time("updated_at")) {
				return err
			}
			rows = append(rows, row)
			return tx.Delete(work, resource, id)
		})
		cancel()
		if err != nil {
			s.load.note(err)
		}
	}
	return func(ctx context.Context) error {
		for _, row := range rows {
			if err := s.bringBack(ctx, resource, row); err != nil {
				return err
			}
		}
		return nil
	}
}

// bringBack inserts a row again, unless it never went.
func (s *stage) bringBack(ctx context.Context, resource string, row storefake.Row) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	for {
		err := s.around.fake.Do(ctx, func(tx *storefake.Tx) error {
			if _, there, err := tx.Get(ctx, resource, row.ID()); err != nil || there {
				return err
			}
			_, err := tx.Insert(ctx, resource, row)
			return err
		})
		if err == nil || !until(ctx, time.Now().Add(200*time.Millisecond)) {
			return err
		}
	}
}
