package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/storestream/storestream/internal/standins/storefake"
	"github.com/storestream/storestream/lab/asked"
)

// What an operator asks for beside all mishaps: replays of a part, cancels and pauses. They have a deck and
// chances of their own. So the mishaps of a seed stay what they were before there was any of these.
var besideKinds = []*kind{
	{name: "replay of a range of", weight: 2, hits: nothing,
		details: func(d draw, _ *plan, e *event) { someNames(d, e); aRange(d, e) }, do: replayRange},
	{name: "replay by id of", weight: 2, hits: nothing,
		details: func(d draw, _ *plan, e *event) { oneName(d, e); e.count = 1 + d.IntN(20) }, do: replayRows},
	{name: "replay called off, of", weight: 2, hits: nothing, least: 0, most: 3 * time.Second,
		details: func(d draw, _ *plan, e *event) { someNames(d, e); e.back = 3000 * wholeDay },
		do:      calledOff(replayRange)},
	{name: "reset called off, of", weight: 2, hits: nothing, least: 0, most: 3 * time.Second,
		details: func(d draw, _ *plan, e *event) { someNames(d, e); e.back = 3000 * wholeDay },
		do:      calledOff(reset)},
	{name: "pause of", weight: 2, hits: nothing, least: 2 * time.Second, most: 10 * time.Second,
		details: func(d draw, _ *plan, e *event) { someNames(d, e) },
		do: func(ctx context.Context, s *stage, e event) (func() error, error) {
			s.fleet.command(ctx, append([]string{"pause", "--yes"}, e.resources...)...)
			return func() error { s.resume(ctx, e.resources...); return nil }, nil
		}},
	{name: "pause that ends by itself, of", weight: 1, hits: nothing, least: 2 * time.Second,
		most:    10 * time.Second,
		details: func(d draw, _ *plan, e *event) { someNames(d, e) },
		do: func(ctx context.Context, s *stage, e event) (func() error, error) {
			s.fleet.command(ctx, append([]string{"pause", "--yes", "--for", e.length.String()}, e.resources...)...)
			return nil, nil
		}},
	{name: "replay broken off by", weight: 2, hits: everyInstance, also: theBroker, least: 0,
		most: 8 * time.Second,
		details: func(d draw, _ *plan, e *event) {
			oneName(d, e)
			lostBy(d, e)
			e.back = 3000 * wholeDay
		},
		do: func(ctx context.Context, s *stage, e event) (func() error, error) {
			ask := func(ctx context.Context) { _, _ = replayRange(ctx, s, e) }
			return loseOwner(ctx, s, e, ask, func(m *mark) bool { return len(m.Parts) > 0 })
		}},
	{name: "cancel broken off by", weight: 2, hits: everyInstance, also: theBroker, least: 0,
		most: 8 * time.Second,
		details: func(d draw, _ *plan, e *event) {
			oneName(d, e)
			lostBy(d, e)
			e.back, e.count = 3000*wholeDay, d.IntN(2)
		}, do: breakCancel},
	{name: "pause broken off by", weight: 2, hits: everyInstance, also: theBroker, least: 2 * time.Second,
		most:    8 * time.Second,
		details: func(d draw, _ *plan, e *event) { oneName(d, e); lostBy(d, e) },
		do: func(ctx context.Context, s *stage, e event) (func() error, error) {
			ask := func(ctx context.Context) { s.fleet.command(ctx, "pause", "--yes", e.resources[0]) }
			back, err := loseOwner(ctx, s, e, ask, func(m *mark) bool { return m.Pause != nil })
			return func() error {
				defer s.resume(ctx, e.resources...)
				return back()
			}, err
		}},
}

func oneName(d draw, e *event) { e.resources = []string{oneOf(d, storefake.Names()...)} }

func someNames(d draw, e *event) {
	names := storefake.Names()
	d.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
	e.resources = names[:1+d.IntN(3)]
}

// lostBy draws how the owner is lost.
func lostBy(d draw, e *event) {
	if e.how = oneOf(d, byKill, byKill, byTerm, byStop); e.how == byStop {
		e.length += 10 * time.Second // longer than the session
	}
}

// aRange draws a range: from back on, until step ago, or without an end.
func aRange(d draw, e *event) {
	e.back = oneOf(d, 10*time.Second, time.Minute, 10*time.Minute, 5*wholeDay, 3000*wholeDay)
	e.step = oneOf(d, 0, e.back/10, e.back/2)
	if e.step > 0 {
		e.how = fmt.Sprintf("until %s ago, of", e.step)
	}
}

// replayRange asks for a replay of a range, by the service's clock. It does not wait for the replay.
func replayRange(ctx context.Context, s *stage, e event) (func() error, error) {
	now := s.around.fake.Clock().Now().UTC()
	args := []string{"replay", "--yes", "--from", now.Add(-e.back).Format(time.RFC3339Nano)}
	if e.step > 0 {
		args = append(args, "--to", now.Add(-e.step).Format(time.RFC3339Nano))
	}
	s.fleet.command(ctx, append(args, e.resources...)...)
	return nil, nil
}

// replayRows asks for a replay of some rows, and of one that was never there.
func replayRows(ctx context.Context, s *stage, e event) (func() error, error) {
	args := []string{"replay", "--yes", e.resources[0], "--ids", "2000000000"}
	for range e.count {
		args = append(args, "--ids", fmt.Sprint(s.load.anyID(e.resources[0])))
	}
	s.fleet.command(ctx, args...)
	return nil, nil
}

// calledOff asks for a replay, and after a while for its end.
func calledOff(ask func(context.Context, *stage, event) (func() error, error)) func(context.Context, *stage,
	event) (func() error, error) {
	return func(ctx context.Context, s *stage, e event) (func() error, error) {
		_, err := ask(ctx, s, e)
		return func() error { s.cancel(ctx, e.resources...); return nil }, err
	}
}

// breakCancel asks for a reset and, once that is in hand, for its end. The owner is lost before it has read
// of the end, or at the takeover that follows it.
func breakCancel(ctx context.Context, s *stage, e event) (func() error, error) {
	before, _ := s.tail.lastMark(e.resources[0])
	inHand := func(m *mark) bool { return m.Replay != nil }
	ask := func(ctx context.Context) {
		_, _ = reset(ctx, s, e)
		if _, err := awaitInside(ctx, s, e.resources[0], inHand); err != nil {
			s.journal.say("%v", err)
		}
		s.cancel(ctx, e.resources...)
	}
	if e.count == 0 {
		return loseOwner(ctx, s, e, ask, inHand)
	}
	return loseOwner(ctx, s, e, ask, func(m *mark) bool {
		return slices.ContainsFunc(m.Results, func(r asked.Result) bool {
			return r.Left == "cancelled" && r.Request > before.Request
		})
	})
}

func (s *stage) cancel(ctx context.Context, resources ...string) {
	s.fleet.command(ctx, append([]string{"replay", "cancel", "--yes"}, resources...)...)
}

func (s *stage) resume(ctx context.Context, resources ...string) {
	s.fleet.command(ctx, append([]string{"resume", "--yes"}, resources...)...)
}

// asked describes what became of replays of parts, cancels and pauses. It returns "" if there are none.
func (t *tail) asked() (text string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, resource := range storefake.Names() {
		replays, cancelled, moved := 0, 0, 0
		for _, c := range asked.Courses(asMarks(t.marks[resource])) {
			replays++
			if c.Cancelled() {
				cancelled++
			}
			if len(c.Owners) > 1 {
				moved++
			}
		}
		pauses, handed := countPauses(t.marks[resource])
		if replays+pauses > 0 {
			text += fmt.Sprintf("%s: %d replays, of which %d were cancelled and %d went on with another owner; "+
				"%d pauses, of which %d did\n", resource, replays, cancelled, moved, pauses, handed)
		}
	}
	return text
}

// countPauses counts the pauses, and those that lasted beyond their owner.
func countPauses(marks []mark) (pauses, handed int) {
	var owners []string
	for _, m := range marks {
		switch {
		case m.Pause == nil:
			owners = nil
		case owners == nil:
			owners = []string{m.Instance}
			pauses++
		case !slices.Contains(owners, m.Instance):
			if owners = append(owners, m.Instance); len(owners) == 2 {
				handed++
			}
		}
	}
	return pauses, handed
}
