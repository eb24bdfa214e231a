package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/storestream/storestream/internal/standins/storefake"
	"github.com/storestream/storestream/internal/wait"
)

// struck is a mishap as it really came about.
type struck struct {
	event
	began, ended time.Time
	not          notPlayed // why it did not come about, "" if it did
}

// wellWithin bounds the time until changes flow again once everything is repaired. It only ends a run that is
// stuck. The result prints the real time.
const wellWithin = 4 * time.Minute

// course is how a run goes: mishaps, recovery, comparison, end.
type course struct {
	stage *stage
	began time.Time // when the instances were started
	busy  [targets]sync.Mutex
}

// play plays the plan. An error means that the harness could not do a part of the plan. Faults of storestream
// are in the result.
func play(ctx context.Context, s *stage) (*result, error) {
	c := &course{stage: s}
	r := &result{plan: s.plan, probes: s.probes, marks: map[string]mark{}}
	defer func() { // also after an error: transactions that are open would hold up the end
		s.probes.stop()
		s.load.finish()
	}()
	beat := startPulse()
	defer beat.stop()
	c.began = time.Now()
	s.journal.begin(c.began)
	if err := s.fleet.start(); err != nil {
		return nil, err
	}
	s.load.start()
	s.probes.start()
	o := startOperator(ctx, c)
	defer o.stop()
	var err error
	if r.struck, err = c.strike(ctx); err != nil {
		return nil, err
	}
	r.took = time.Since(c.began)
	if err := c.recover(ctx, r); err != nil {
		return nil, err
	}
	if err := c.converge(ctx, r); err != nil {
		return nil, err
	}
	r.stall = beat.stop()
	o.stop()
	r.raised = o.report()
	if err := c.end(ctx); err != nil {
		return nil, err
	}
	if r.reports, err = s.judge(ctx); err != nil {
		return nil, err
	}
	for _, resource := range storefake.Names() {
		r.marks[resource], _ = s.tail.lastMark(resource)
	}
	r.letters, r.loads, r.asked = s.tail.lettered, s.tail.loads(), s.tail.asked()
	if s.tail.err != nil {
		r.wrong = append(r.wrong, s.tail.err)
	}
	r.wrong = append(r.wrong, s.journal.mistakes()...)
	return r, nil
}

// strike makes the plan's events happen, and returns when all are over and repaired.
func (c *course) strike(ctx context.Context) ([]struck, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var mu sync.Mutex
	var all []struck
	var going sync.WaitGroup
	for _, e := range c.stage.plan.events {
		if !until(ctx, c.began.Add(e.at)) {
			break
		}
		going.Go(func() {
			began, err := c.happen(ctx, e)
			var not notPlayed
			if errors.As(err, &not) {
				c.stage.journal.say("not played: %s: %s", e, not)
			} else if err != nil {
				cancel(fmt.Errorf("%s: %w", e, err))
				return
			}
			mu.Lock()
			defer mu.Unlock()
			all = append(all, struck{e, began, time.Now(), not})
		})
	}
	going.Wait()
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	until(ctx, c.began.Add(c.stage.plan.length))
	slices.SortFunc(all, func(a, b struck) int { return a.began.Compare(b.began) })
	return all, nil
}

// happen makes one event happen, from beginning to end. It repairs the damage also when ctx is done. An event
// that hits a busy target waits: a repair may take longer than the plan expects.
func (c *course) happen(ctx context.Context, e event) (began time.Time, err error) {
	for _, t := range []target{e.kind.hits, e.kind.also} {
		if t == nothing {
			continue
		}
		if t == everyInstance {
			t = oneInstance
		}
		c.busy[t].Lock()
		defer c.busy[t].Unlock()
	}
	began = time.Now()
	if ctx.Err() != nil {
		return began, nil
	}
	c.stage.journal.say("%s", e)
	undo, err := e.kind.do(ctx, c.stage, e)
	if err != nil || undo == nil {
		return began, err
	}
	until(ctx, began.Add(e.length))
	if err := undo(); err != nil && ctx.Err() == nil {
		return began, err
	}
	c.stage.journal.say("over: %s", e)
	return began, nil
}

// until waits for an instant; false: ctx was done first.
func until(ctx context.Context, at time.Time) bool { return wait.For(ctx, time.Until(at)) == nil }

// recover waits until changes flow again in every resource, and then ends all change.
func (c *course) recover(ctx context.Context, r *result) error {
	if err := c.stage.fleet.start(); err != nil {
		return err
	}
	c.stage.resume(ctx, "--all") // Kafka may have been away when that was asked for before
	c.stage.journal.say("all is repaired; waiting until changes flow again")
	well, cancel := context.WithTimeout(ctx, wellWithin)
	defer cancel()
	if missing, err := c.stage.probes.wait(well, time.Now()); err != nil {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		c.stage.journal.fail(fmt.Errorf("%s did not recover within %s after all was repaired", missing, wellWithin))
	}
	c.stage.probes.stop()
	c.stage.load.finish()
	if c.stage.excuses.needsSweep() { // the sweep that was asked for then may have died with its instance
		c.stage.sweepAll(ctx)
	}
	r.excuses = c.stage.excuses.String()
	r.changes, r.late = c.stage.around.fake.Changes(), c.stage.load.late
	var last error
	if r.refused, last = c.stage.around.fake.TrafficErrors(); last != nil {
		c.stage.journal.say("%d changes of the shop were refused, the last one: %v", r.refused, last)
	}
	return nil
}

// converge waits until every topic equals the service. A watermark whose as_of lies after the last change
// claims that its topic does, and that claim must be true.
func (c *course) converge(ctx context.Context, r *result) error {
	quiet := time.Now()
	c.stage.journal.say("all is quiet; waiting until the topics are the service")
	within := equalWithin + c.realDelay()
	// A sweep that met a row which seems to have gone back believes it an overlap later, by our clock. Where the
	// service's runs fast, an overlap is longer than the run.
	sweeps := c.stage.plan.service.speed == 1
	if sweeps || c.stage.excuses.needsSweep() {
		within += 2 * c.stage.plan.polling.restOverlap
	}
	patience := newPatience(within, quiet)
	open := storefake.Names()
	lied, reasons := map[string]bool{}, map[string]string{}
	for {
		promised := map[string]bool{}
		for _, resource := range open {
			m, there := c.stage.tail.lastMark(resource)
			// A blocked resource is late, and its watermark shows it. Changes that only a sweep can find arrive
			// with it.
			promised[resource] = there && m.AsOf.After(quiet.Add(c.realDelay())) && m.Trouble == nil &&
				(!c.stage.excuses.needsSweep() || c.stage.tail.carriedOut(resource, true))
		}
		if err := c.catchUp(ctx, within); err != nil {
			return err
		}
		var still []string
		for _, resource := range open {
			v, err := c.stage.compare(ctx, resource)
			if err != nil {
				return err
			}
			why := v.difference()
			if why == "" && c.stage.tail.carriedOut(resource, sweeps) {
				took := time.Since(quiet)
				c.stage.journal.say("%s is the service's after %s%s", resource, short(took),
					waited(took, reasons[resource]))
				continue
			}
			if still = append(still, resource); why == "" {
				why = "a replay, a sweep, an erasure or a pause is not finished"
			}
			reasons[resource] = why
			if promised[resource] && (v.lost.n > 0 || !c.stage.excuses.onlySetBack(resource, v.staleIDs)) &&
				!lied[resource] {
				lied[resource] = true
				c.stage.journal.fail(fmt.Errorf("%s claims to be as of after the last change, and is not: %s", resource,
					why))
			}
		}
		if open = still; len(open) == 0 {
			r.quiet = time.Since(quiet)
			return nil
		}
		if bound := patience.over(time.Now(), c.stage.sweepsStand(ctx)); bound != "" {
			for _, resource := range open {
				c.stage.journal.fail(fmt.Errorf("%s did not come to equal the service %s: %s", resource, bound,
					reasons[resource]))
			}
			return nil
		}
		if !until(ctx, time.Now().Add(500*time.Millisecond)) {
			return context.Cause(ctx)
		}
	}
}

// waited says what a resource waited for last, if it took long.
func waited(took time.Duration, reason string) string {
	if took < 10*time.Second {
		return ""
	}
	return ": before, " + reason
}

// catchUp reads the topics to their end, or for as long as within.
func (c *course) catchUp(ctx context.Context, within time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	if err := c.stage.tail.catchUp(ctx); ctx.Err() == nil {
		return err
	}
	return nil
}

// realDelay is how long the service hides a new row, by our clock.
func (c *course) realDelay() time.Duration {
	return time.Duration(float64(c.stage.plan.service.readings.Delay) / c.stage.plan.service.speed)
}

// end stops the instances in good order. Then a new one, on a machine without any state, must find nothing to
// publish, and storestream's own verify must agree that all is well.
func (c *course) end(ctx context.Context) error {
	s := c.stage
	s.fleet.terminate()
	if err := s.tail.catchUp(ctx); err != nil {
		return err
	}
	before := s.tail.counts()
	s.fleet.finish(ctx, "run", "--once", "--patience", "5m")
	if err := s.tail.catchUp(ctx); err != nil {
		return err
	}
	for resource, n := range s.tail.counts() {
		if n != before[resource] {
			s.journal.fail(fmt.Errorf("run --once published %d records of %s again", n-before[resource], resource))
		}
	}
	// Rows that the service deleted stay in the topics, and verify reports them.
	if !s.deletes() {
		s.fleet.finish(ctx, "verify")
	}
	return ctx.Err()
}

var errJudged = errors.New("the topics break a promise")
