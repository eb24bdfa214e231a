package main

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/storestream/storestream/internal/standins/storefake"
)

// excuses lists the incidents that storestream's promise does not cover: rows that went back, a clock that
// was moved. The judge allows for them. Its methods may be called from several goroutines.
type excuses struct {
	mu sync.Mutex
	// back are the instants to which updated_at was set back, by row, each in ms since 1970: the only steps
	// back that a topic may make.
	back map[rowKey][]int64

	restores, steps int // of the service from a backup, of its clock
	missed          int // steps of its clock that no poll met in time
	silent          int // rows that changed without a new updated_at
	gone            int // rows that were deleted, and an erasure asked for
	// hidden are the times, in ms since 1970, of which the service shows no row while its clock is set back.
	hidden [][2]int64
	// cameBack has the time at which a deleted row was there again.
	cameBack map[rowKey]time.Time
}

// rowKey is a row of a resource.
type rowKey struct {
	resource string
	id       int64
}

func newExcuses() *excuses {
	return &excuses{back: map[rowKey][]int64{}, cameBack: map[rowKey]time.Time{}}
}

// changedSilently notes that rows changed without a new updated_at.
func (x *excuses) changedSilently(rows int) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.silent += rows
}

// removed notes that rows were deleted.
func (x *excuses) removed(rows int) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.gone += rows
}

// returned notes that a row which was gone is there again.
func (x *excuses) returned(resource string, id int64) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.cameBack[rowKey{resource, id}] = time.Now()
}

// returnedSince reports whether the row came back after the given time.
func (x *excuses) returnedSince(resource string, id int64, at time.Time) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.cameBack[rowKey{resource, id}].After(at)
}

// wentBack notes that a row's updated_at goes back to an instant, as its source shows it.
func (x *excuses) wentBack(resource string, id int64, to time.Time) {
	x.mu.Lock()
	defer x.mu.Unlock()
	row := rowKey{resource, id}
	x.back[row] = append(x.back[row], to.UnixMilli())
}

// restored notes the effect of a restore. shown rounds an instant as the resource's source shows it.
func (x *excuses) restored(did *storefake.Restored, shown func(string, time.Time) time.Time) (back,
	gone int) {
	for name, rows := range did.Back {
		back, gone = back+len(rows), gone+len(did.Gone[name])
		for id, at := range rows {
			x.returned(name, id)
			x.wentBack(name, id, shown(name, at))
		}
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	x.restores++
	return back, gone
}

// steppedBack notes that the service's clock is set back from now by d, or forward if d is negative: settled
// may go back after it.
func (x *excuses) steppedBack(now time.Time, d time.Duration) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.steps++
	x.hidden = append(x.hidden, [2]int64{now.Add(-d).UnixMilli(), now.UnixMilli()})
}

// mayHide says whether the service may have hidden a row that is stamped with this instant, in ms since 1970:
// a replay that ends while its clock is back does not meet the row.
func (x *excuses) mayHide(millis int64) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	return slices.ContainsFunc(x.hidden, func(h [2]int64) bool { return h[0] <= millis && millis <= h[1] })
}

// missedStep notes a step of the clock that no poll met. Only a sweep finds the rows that were written then.
func (x *excuses) missedStep() {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.missed++
}

// setBack lists the instants to which the row's updated_at was set back, in ms since 1970.
func (x *excuses) setBack(resource string, id int64) []int64 {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.back[rowKey{resource, id}]
}

// onlySetBack says whether the updated_at of all these rows was set back: storestream looks at such a row
// twice, overlap apart, before it believes it.
func (x *excuses) onlySetBack(resource string, ids []int64) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, id := range ids {
		if len(x.back[rowKey{resource, id}]) == 0 {
			return false
		}
	}
	return true
}

// needsSweep says whether something happened to the service after which only a sweep brings all rows.
func (x *excuses) needsSweep() bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.restores+x.missed+x.silent > 0
}

// hasRemoved says whether rows were deleted that the topics may keep.
func (x *excuses) hasRemoved() bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.gone > 0
}

// hasRestored says whether the service was restored from a backup: its topics keep rows that it has no
// longer.
func (x *excuses) hasRestored() bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.restores > 0
}

// settledMayGoBack says whether the service had an incident after which storestream reads settled rows again.
func (x *excuses) settledMayGoBack() bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.restores+x.steps > 0
}

// String describes the excuses. It returns "" if there are none.
func (x *excuses) String() string {
	x.mu.Lock()
	defer x.mu.Unlock()
	text := ""
	if x.restores > 0 {
		text += fmt.Sprintf("the service was restored from a backup %d times: rows may step back to the "+
			"backup's versions and be published again, even unchanged ones of the last overlap, and rows "+
			"written since stay in the topics\n", x.restores)
	}
	if x.silent > 0 {
		text += fmt.Sprintf("%d rows changed without a new updated_at: a sweep published the changes\n", x.silent)
	}
	if x.gone > 0 {
		text += fmt.Sprintf("%d rows were deleted, and their erasure was asked for: they may stay in the topics\n",
			x.gone)
	}
	if x.steps > 0 {
		text += fmt.Sprintf("the service's clock was moved %d times: settled may go back. %d steps met no poll, "+
			"and a sweep brought the rows written then\n", x.steps, x.missed)
	}
	return text
}
