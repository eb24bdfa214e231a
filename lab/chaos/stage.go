package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/storestream/storestream/internal/standins/storefake"
)

// stage is everything that runs: the parts that mishaps hit, the writers, and the watchers.
type stage struct {
	plan    *plan
	dir     string // logs, configurations, data
	journal *journal
	around  *surroundings
	fleet   *fleet
	tail    *tail
	load    *load
	excuses *excuses
	job     *job // nil if orders and items are read over REST
	probes  *probes
	// personComes is how long a resource is blocked before the person on call has read the page and acts.
	personComes time.Duration
}

// newStage starts the surroundings and the reader of the topics. Nothing changes rows yet, and no instance
// runs.
func newStage(ctx context.Context, p *plan, dir string, race raceMode, out io.Writer) (_ *stage, err error) {
	s := &stage{plan: p, dir: dir, journal: &journal{out: out}, excuses: newExcuses(), personComes: time.Minute}
	if s.around, err = startSurroundings(ctx, p, dir); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.stop())
		}
	}()
	if s.fleet, err = newFleet(ctx, s.around, dir, race, s.journal); err != nil {
		return nil, err
	}
	decoder := newDecoder(s.around.registry.direct)
	if s.tail, err = startTail(s.around.broker.options, decoder, s.has); err != nil {
		return nil, err
	}
	s.load = newLoad(s.around, s.journal, s.excuses)
	if s.job, err = newJob(ctx, s.around, s.journal); err != nil {
		return nil, err
	}
	s.probes = newProbes(s.around, s.load, s.tail)
	return s, context.Cause(ctx)
}

// stop ends everything in reverse.
func (s *stage) stop() error {
	var errs []error
	if s.fleet != nil {
		errs = append(errs, s.fleet.kill())
	}
	if s.tail != nil {
		s.tail.stop()
	}
	return errors.Join(append(errs, s.around.stop())...)
}

// compare compares the newest records of a resource with the service.
func (s *stage) compare(ctx context.Context, resource string) (*report, error) {
	rows, err := s.around.rowsOf(ctx, resource)
	if err != nil {
		return nil, err
	}
	s.tail.mu.Lock()
	defer s.tail.mu.Unlock()
	r := &report{resource: resource}
	r.judgeRows(rows, s.tail.newest[resource], s.tail.decoder.decode, s.deletes())
	return r, nil
}

// deletes says whether the service may have lost rows that the topics keep: nothing in its document reports
// that.
func (s *stage) deletes() bool {
	return s.plan.service.readings.Deletes > 0 || s.excuses.hasRestored() || s.excuses.hasRemoved()
}

// unseen is the time after a row came or came back in which it may still get a tombstone: an instance may
// have looked for it before, and could not write because Kafka was away.
const unseen = time.Minute

// has reports whether the service has had a row for a while.
func (s *stage) has(resource string, id int64) bool {
	row, there := s.around.fake.Row(resource, id)
	now := s.around.fake.Clock().Now()
	return there && !s.excuses.returnedSince(resource, id, time.Now().Add(-unseen)) &&
		row.Time("created_at").Before(now.Add(-time.Duration(float64(unseen)*s.plan.service.speed)))
}

// judge returns the verdict on each topic once everything has come to rest.
func (s *stage) judge(ctx context.Context) ([]*report, error) {
	var all []*report
	for _, resource := range storefake.Names() {
		r, err := s.compare(ctx, resource)
		if err != nil {
			return nil, err
		}
		rows, err := s.around.rowsOf(ctx, resource)
		if err != nil {
			return nil, err
		}
		s.tail.judge(r, rows, s.excuses)
		all = append(all, r)
	}
	return all, nil
}

// sweepAll asks for a sweep of every resource.
func (s *stage) sweepAll(ctx context.Context) {
	s.fleet.command(ctx, "sweep", "--yes", "--all")
}

// sweepsStand describes the sweeps and the replays of parts that run or wait for their turn, by watermarks
// and pages. It returns "" if there are none. A sweep that is put off because its owner died does not count.
func (s *stage) sweepsStand(ctx context.Context) string {
	var stand strings.Builder
	for _, resource := range storefake.Names() {
		if m, _ := s.tail.lastMark(resource); m.Sweep != nil && m.Sweep.NotBefore.IsZero() {
			fmt.Fprintf(&stand, "%s %+v\n", resource, *m.Sweep)
		} else if len(m.Parts) > 0 {
			fmt.Fprintf(&stand, "%s %+v\n", resource, m.Parts)
		}
	}
	if stand.Len() == 0 {
		return ""
	}
	for _, i := range s.fleet.instances {
		p, err := i.look(ctx)
		if err != nil {
			continue
		}
		for _, r := range p.Resources {
			if r.Owned && r.Sweeping != nil {
				fmt.Fprintf(&stand, "%s %+v\n", r.Name, *r.Sweeping)
			}
		}
	}
	return stand.String()
}
