package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/storestream/storestream/internal/storefake"
)

// struck is a mishap as it really came about.
type struck struct {
	event
	began, ended time.Time
}

// result is what a run came to.
type result struct {
	plan     plan
	took     time.Duration // of the mishaps
	quiet    time.Duration // from the end of traffic until every topic equalled the service
	changes  int64
	late     int
	refused  int // changes of the shop that its database refused
	struck   []struck
	verdicts []*verdict
	probes   *probes
	marks    map[string]mark
	letters  int
	stall    time.Duration // of this process, for want of a processor
	wrong    []error
}

const (
	// wellWithin is how long everything may take to be well again once nothing is broken any more; equalWithin how long the topics may then take to
	// equal the service. Neither is a measure: the figures are printed.
	wellWithin  = 4 * time.Minute
	equalWithin = 4 * time.Minute
)

// play plays the plan. An error means that the harness could not do what the plan asks; what storestream did wrong is in the result.
func (s *stage) play(ctx context.Context) (*result, error) {
	r := &result{plan: s.plan, probes: s.probes, marks: map[string]mark{}}
	defer func() { // also after an error: transactions that are open would hold up the end
		s.probes.stop()
		s.load.finish()
	}()
	beat := startPulse()
	defer beat.stop()
	s.began = time.Now()
	if err := s.startInstances(); err != nil {
		return nil, err
	}
	s.load.start()
	s.probes.start()
	var err error
	if r.struck, err = s.strike(ctx); err != nil {
		return nil, err
	}
	r.took = time.Since(s.began)
	if err := s.recover(ctx, r); err != nil {
		return nil, err
	}
	if err := s.compare(ctx, r); err != nil {
		return nil, err
	}
	r.stall = beat.stop()
	if err := s.end(ctx); err != nil {
		return nil, err
	}
	if err := s.judge(ctx, r); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	r.wrong = append(r.wrong, s.wrong...)
	return r, nil
}

// strike lets the plan's events happen, and returns when all are over and mended.
func (s *stage) strike(ctx context.Context) ([]struck, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var mu sync.Mutex
	var all []struck
	var going sync.WaitGroup
	for _, e := range s.plan.events {
		if !until(ctx, s.began.Add(e.at)) {
			break
		}
		going.Go(func() {
			began, err := s.happen(ctx, e)
			if err != nil {
				cancel(fmt.Errorf("%s: %w", e, err))
				return
			}
			mu.Lock()
			defer mu.Unlock()
			all = append(all, struck{e, began, time.Now()})
		})
	}
	going.Wait()
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	until(ctx, s.began.Add(s.plan.length))
	slices.SortFunc(all, func(a, b struck) int { return a.began.Compare(b.began) })
	return all, nil
}

// happen is one event from its beginning to its end. It is mended also when ctx is done. What hits the same target waits: mending may take
// longer than the plan expects.
func (s *stage) happen(ctx context.Context, e event) (began time.Time, err error) {
	if t := e.kind.hits; t != nothing {
		if t == everyInstance {
			t = oneInstance
		}
		s.busy[t].Lock()
		defer s.busy[t].Unlock()
	}
	began = time.Now()
	if ctx.Err() != nil {
		return began, nil
	}
	s.say("%s", e)
	undo, err := e.kind.do(ctx, s, e)
	if err != nil || undo == nil {
		return began, err
	}
	until(ctx, began.Add(e.length))
	if err := undo(); err != nil && ctx.Err() == nil {
		return began, err
	}
	s.say("over: %s", e)
	return began, nil
}

// until waits for an instant; false: ctx was done first.
func until(ctx context.Context, at time.Time) bool {
	timer := time.NewTimer(time.Until(at))
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

// recover waits until changes flow again in every resource, and then ends all change.
func (s *stage) recover(ctx context.Context, r *result) error {
	if err := s.startInstances(); err != nil {
		return err
	}
	s.say("all is mended; waiting until changes flow again")
	well, cancel := context.WithTimeout(ctx, wellWithin)
	defer cancel()
	if missing, err := s.probes.wait(well, time.Now()); err != nil {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		s.fail(fmt.Errorf("%s did not recover within %s after all was mended", missing, wellWithin))
	}
	s.probes.stop()
	s.load.finish()
	r.changes, r.late = s.fake.Changes(), s.load.late
	var last error
	if r.refused, last = s.fake.TrafficErrors(); last != nil {
		s.say("%d changes of the shop were refused, the last one: %v", r.refused, last)
	}
	return nil
}

// compare waits until every topic equals the service. A watermark whose as_of lies after the last change says that it does: if it does not, it lies.
func (s *stage) compare(ctx context.Context, r *result) error {
	quiet := time.Now()
	s.say("all is quiet; waiting until the topics are the service")
	patience, cancel := context.WithTimeout(ctx, equalWithin+s.realDelay())
	defer cancel()
	open := storefake.Names()
	lied, reasons := map[string]bool{}, map[string]string{}
	for {
		promised := map[string]bool{}
		for _, resource := range open {
			m, there := s.tail.lastMark(resource)
			promised[resource] = there && m.AsOf.After(quiet.Add(s.realDelay()))
		}
		if err := s.tail.catchUp(patience); err != nil && patience.Err() == nil {
			return err
		}
		var still []string
		for _, resource := range open {
			v, err := s.equals(ctx, resource)
			if err != nil {
				return err
			}
			why := v.difference()
			if why == "" && s.replayed(resource) {
				s.say("%s is the service's after %s", resource, short(time.Since(quiet)))
				continue
			}
			if still = append(still, resource); why == "" {
				why = "a replay is not finished"
			}
			reasons[resource] = why
			if promised[resource] && (v.lost.n > 0 || !s.load.onlySetBack(resource, v.staleIDs)) && !lied[resource] {
				lied[resource] = true
				s.fail(fmt.Errorf("%s claims to be as of after the last change, and is not: %s", resource, why))
			}
		}
		if open = still; len(open) == 0 {
			r.quiet = time.Since(quiet)
			return nil
		}
		if !until(patience, time.Now().Add(500*time.Millisecond)) {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			for _, resource := range open {
				s.fail(fmt.Errorf("%s did not come to equal the service within %s: %s", resource, equalWithin, reasons[resource]))
			}
			return nil
		}
	}
}

// realDelay is how long the service hides a new row, by our clock.
func (s *stage) realDelay() time.Duration {
	return time.Duration(float64(s.plan.service.readings.Delay) / s.plan.service.speed)
}

// replayed says that no request waits and no replay is in hand.
func (s *stage) replayed(resource string) bool {
	m, there := s.tail.lastMark(resource)
	s.tail.mu.Lock()
	defer s.tail.mu.Unlock()
	return there && m.Replay == nil && !slices.ContainsFunc(s.tail.asks, func(a ask) bool { return a.Resource == resource && a.id > m.Request })
}

// end stops the instances in good order, and lets a new one on a machine without any state publish what is missing: nothing (K30).
func (s *stage) end(ctx context.Context) error {
	for _, i := range s.instances {
		i.terminate()
	}
	if err := s.tail.catchUp(ctx); err != nil {
		return err
	}
	before := s.counts()
	once := &instance{n: len(s.instances), path: s.program, config: s.commands, dir: s.dir, failed: s.fail}
	s.say("run --once, which has nothing to publish")
	if err := once.toTheEnd(ctx, "run", "--once", "--patience", "5m"); err != nil {
		s.fail(err)
	}
	if err := s.tail.catchUp(ctx); err != nil {
		return err
	}
	for resource, n := range s.counts() {
		if n != before[resource] {
			s.fail(fmt.Errorf("run --once published %d records of %s again", n-before[resource], resource))
		}
	}
	return s.verify(ctx)
}

// verify asks storestream itself, whose word is to be the judge's. Rows that the service deleted differ, and nobody was to take them out.
func (s *stage) verify(ctx context.Context) error {
	if s.plan.service.readings.Deletes > 0 {
		return nil
	}
	s.say("verify")
	i := &instance{n: len(s.instances) + 1, path: s.program, config: s.commands, dir: s.dir, failed: s.fail}
	if err := i.toTheEnd(ctx, "verify"); err != nil {
		s.fail(err)
	}
	return ctx.Err()
}

func (s *stage) counts() map[string]int {
	s.tail.mu.Lock()
	defer s.tail.mu.Unlock()
	n := map[string]int{}
	for _, resource := range storefake.Names() {
		n[resource] = len(s.tail.versions[resource])
	}
	return n
}

// equals compares the newest records with the service.
func (s *stage) equals(ctx context.Context, resource string) (*verdict, error) {
	rows, err := s.rowsOf(ctx, resource)
	if err != nil {
		return nil, err
	}
	s.tail.mu.Lock()
	defer s.tail.mu.Unlock()
	v := &verdict{resource: resource}
	v.judgeRows(rows, s.tail.newest[resource], s.tail.decoder.decode, s.plan.service.readings.Deletes > 0)
	return v, nil
}

// judge fills in the verdicts.
func (s *stage) judge(ctx context.Context, r *result) error {
	for _, resource := range storefake.Names() {
		v, err := s.equals(ctx, resource)
		if err != nil {
			return err
		}
		rows, err := s.rowsOf(ctx, resource)
		if err != nil {
			return err
		}
		m, _ := s.tail.lastMark(resource)
		r.marks[resource] = m
		t := s.tail
		t.mu.Lock()
		marks := t.marks[resource]
		v.judgeOrder(t.versions[resource], replaysOf(marks), func(id, millis int64) bool { return s.load.setBack(resource, id, millis) })
		v.judgeReplays(t.asks, marks, rows, t.newest[resource])
		v.judgeMarks(marks)
		v.judgeLetters(t.letters, rows)
		r.letters = t.lettered
		t.mu.Unlock()
		r.verdicts = append(r.verdicts, v)
	}
	if s.tail.err != nil {
		r.wrong = append(r.wrong, s.tail.err)
	}
	return nil
}

var errJudged = errors.New("the topics do not hold what they must")
