package rest

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/storestream/storestream/poller"
	"github.com/storestream/storestream/schemas"
)

// wholeEvery is how often the open window is read whole where cheap polls would do: they show only what the service's order shows. With the
// default ceiling a window of 60 000 rows then takes one percent of the requests. A window that takes long is read whole less often: at most
// a tenth of the time.
const wholeEvery = 10 * time.Minute

// pass closes the days that are over and reads the open window: everything updated since, without an end, so that a row that is updated while
// midnight passes stays in it. Rows that leave a closed day while it is read have been updated, so they are in the open window, which is read after.
func (rd *read) pass(ctx context.Context) error {
	began, seen := rd.clock.Now(), rd.clock.Service()
	from := rd.firstDay(max(rd.req.From, rd.Start))
	last := rd.lastOver()
	open := max(from, last+1)
	mode := rd.plan(from, last, open)
	if mode == cheaply {
		if done, err := rd.newest(ctx, open); done || err != nil {
			return err
		}
	}
	if err := rd.lookBefore(ctx, from); err != nil {
		return err
	}
	if err := rd.closeDays(ctx, from, last); err != nil {
		return err
	}
	rd.Doing("reading what changed since " + open.String())
	busy := time.Now()
	rd.reader.light = mode == lightly || busy.Before(rd.memory.deepAt)
	w := window{updated: span{rd.openFrom(open), future}, created: always}
	o, err := rd.reader.read(ctx, w, growing)
	if err != nil {
		return err
	}
	rd.settled = rd.closed
	complete := o.whole && len(rd.why) == 0
	if !o.whole && mode != lightly {
		rd.because(fmt.Sprintf("the rows updated since %s could not be read completely: %s", open, o.why))
	}
	if err := rd.finish(&poller.Done{Started: rd.req.Started, Complete: complete, Held: rd.held()}); err != nil {
		return err
	}
	rd.remember(o, open, began, time.Since(busy), seen)
	if o.paged && w.updated.from < open {
		rd.memory.tight = open
	}
	return nil
}

// How to read the open window.
type manner int

const (
	wholly  manner = iota
	lightly        // once, even where that does not prove that nothing was skipped
	cheaply        // only the end where changes appear
)

// plan chooses how to read. Only a Pass may be anything but whole, and only when nothing is to be closed, a whole read is not long ago, and one
// page would not do.
func (rd *read) plan(from, last, open day) manner {
	m := &rd.memory
	if rd.req.Kind != poller.Pass || !m.whole || !m.paged || m.open != open || rd.toClose(from, last) {
		return wholly
	}
	if rd.clock.Now().Sub(m.wholeAt) >= max(wholeEvery, 10*m.took) {
		return wholly
	}
	if rd.sorting == unsorted {
		return lightly
	}
	return cheaply
}

// toClose tells whether a day in from..last can be tried now.
func (rd *read) toClose(from, last day) bool {
	if from == past {
		return true
	}
	for d := from; d <= last; d++ {
		if _, waiting := rd.waiting(d); !waiting && !rd.memory.done[d] {
			return true
		}
	}
	for d := from; d <= last; d++ {
		if why, waiting := rd.waiting(d); waiting {
			rd.because(why)
		}
	}
	return false
}

// remember what a read of the open window that is now published came to.
func (rd *read) remember(o outcome, open day, began time.Time, took time.Duration, seen schemas.Instant) {
	m := &rd.memory
	if !o.whole {
		if !rd.reader.light {
			m.deepAt = time.Now().Add(max(firstHold, 3*took))
		}
		return
	}
	m.whole, m.open, m.wholeAt, m.reach = true, open, began, seen.Add(-rd.Overlap)
	m.took, m.requests, m.paged = took, o.requests, o.paged
	m.end = o.rows / rd.reader.pageOf(pageSize)
}

// because notes why nothing settles further, each reason once.
func (rd *read) because(why string) {
	if !slices.Contains(rd.why, why) {
		rd.why = append(rd.why, why)
	}
}

// held is what Done says of the reasons: the first, and how many more there are.
func (rd *read) held() string {
	switch n := len(rd.why); n {
	case 0:
		return ""
	case 1:
		return rd.why[0]
	default:
		return fmt.Sprintf("%s (and %d more)", rd.why[0], n-1)
	}
}
