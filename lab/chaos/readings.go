package main

import (
	"time"

	"github.com/storestream/storestream/internal/standins/storefake"
)

const wholeDay = 24 * time.Hour

// drawService decides which reading of its document the service plays, and how storestream polls it.
func (p *plan) drawService(d draw) {
	s := &p.service
	s.size = storefake.Size{Users: 200 + d.IntN(1000), Orders: 500 + d.IntN(3000), Products: 100 + d.IntN(500),
		Days: 30 + d.IntN(370)}
	s.wholeSeconds = d.likely(.2)
	s.speed = 1
	p.polling = polling{
		interval:     d.between(200*time.Millisecond, time.Second),
		restInterval: d.between(500*time.Millisecond, 2*time.Second),
		overlap:      40 * time.Second, restOverlap: 2 * time.Minute, requestsPerSecond: oneOf(d, 30, 60, 200),
		hold: time.Minute, restHold: 5 * time.Second,
		// An open day over REST must fit: it grows by the shop's new rows.
		memory: 2048 + 512*memory(p.length/(30*time.Minute)),
	}
	p.drawReadings(d)
	s.columns = storefake.Columns{Int: oneOf(d, "int8", "int4"),
		Money: oneOf(d, "numeric", "numeric", "float8", "float4", "text"),
		Time:  oneOf(d, "timestamptz", "timestamp"), Status: oneOf(d, "text", "varchar")}
	s.noIndex = d.likely(.15)
	if s.sparse = p.source == fromDatabase && d.likely(.7); s.sparse {
		s.size.Orders += 2500
	}
	if p.source == fromREST {
		p.hurryClock(d)
	}
	drawMidnights(d, &s.readings)
	drawZones(d, &s.readings)
	s.readings.PageWord = oneOf(d, storefake.PageGranted, storefake.PageGranted, storefake.PageAsked,
		storefake.PageAbsent)
}

// hurryClock makes days end during the run. The service's clock stays behind ours to the end: storestream
// closes no day before both clocks are past it.
func (p *plan) hurryClock(d draw) {
	s := &p.service
	aDay := min(max(p.length/3, time.Minute), 2*time.Minute) + d.between(0, 10*time.Second)
	s.speed = float64(wholeDay / aDay)
	s.behind = (time.Duration(float64(p.length+30*time.Minute) * s.speed)).Round(time.Hour) +
		time.Duration(d.IntN(24))*time.Hour
	p.polling.hold, p.polling.restHold = 3*time.Second, 3*time.Second
	p.polling.restOverlap = time.Duration(20 * s.speed * float64(time.Second)).Round(time.Minute)
	s.readings.NoDate = false // Date is its only way to learn of this clock
	if s.readings.Delay > 0 {
		s.readings.Delay = time.Duration(2 * s.speed * float64(time.Second))
	}
}

// drawReadings draws the points that the document leaves open.
func (p *plan) drawReadings(d draw) {
	r := &p.service.readings
	r.Count = oneOf(d, storefake.CountTotal, storefake.CountPage)
	r.HasMore = oneOf(d, storefake.MoreFollows, storefake.MoreFollows, storefake.MoreFollows, storefake.MoreFull)
	r.PastEnd = oneOf(d, storefake.PastEndEmpty, storefake.PastEndBadRequest, storefake.PastEndNotFound,
		storefake.PastEndLast)
	r.Oversize = oneOf(d, storefake.OversizeCapped, storefake.OversizeRefused)
	r.Order = oneOf(d, storefake.ByID, storefake.ByUpdated, storefake.ByUpdatedDesc, storefake.ByHash,
		storefake.ByShuffle)
	r.PermuteTies = d.likely(.3)
	r.MaxPage = oneOf(d, 0, 0, 50+d.IntN(400))
	if r.Order == storefake.ByShuffle {
		r.MaxPage = 0 // dozens of passes over dozens of pages would take longer than the run
	}
	if d.likely(.2) {
		r.EmptyPages, r.ShortPages = .05, .1
	}
	r.Limit = drawLimit(d)
	r.Keys = oneOf(d, storefake.Keys{}, storefake.Keys{}, storefake.Keys{Lifetime: d.between(10*time.Second,
		time.Minute)},
		storefake.Keys{Requests: 100 + d.IntN(900)})
	r.MoneyForm = oneOf(d, storefake.MoneyAsIs, storefake.MoneyPadded, storefake.MoneyString,
		storefake.MoneyExponent)
	r.ExtraFields = d.likely(.3)
	r.Nulls = oneOf(d, 0, 0, .05)
	r.NewStatuses = oneOf(d, 0, 0, .1)
	r.Deletes = oneOf(d, 0, 0, 0, .01)
	r.UsedIDs = oneOf(d, 0, .3) // if there are any
	r.NoDate = d.likely(.1)
	r.DayOffset = oneOf(d, 0, 0, 0, 0, 2*time.Hour, -5*time.Hour)
	r.Delay = oneOf(d, 0, 0, 0, 2*time.Second)
}

// drawMidnights draws whether a to_ date means its midnight: of both parameters, or of one of them. It stays
// that way: storestream finds out once how the service reads them.
func drawMidnights(d draw, r *storefake.Readings) {
	if !d.likely(.3) {
		return
	}
	which := oneOf(d, updatedTo|createdTo, updatedTo, createdTo)
	r.UpdatedToMidnight, r.CreatedToMidnight = which&updatedTo != 0, which&createdTo != 0
}

// drawZones draws the zones in which days are cut: one for both filters (drawn already), one for updated_* or
// created_* alone, or one for each.
func drawZones(d draw, r *storefake.Readings) {
	if r.DayOffset != 0 {
		r.CreatedOffset = oneOf(d, 0, -r.DayOffset, 3*time.Hour)
	} else {
		r.CreatedOffset = oneOf(d, 0, 0, 9*time.Hour, -7*time.Hour)
	}
}

const (
	updatedTo = 1 << iota
	createdTo
)

func drawLimit(d draw) storefake.Limit {
	return storefake.Limit{
		PerSecond: oneOf(d, 0., 0, 25, 60), Burst: oneOf(d, 0, 5, 20), Status: oneOf(d, 429, 503, 403, 420),
		HTML: d.likely(.3),
		RetryAfter: oneOf(d, storefake.RetryAfterSeconds, storefake.RetryAfterDate, storefake.RetryAfterZero,
			storefake.RetryAfterAbsent),
	}
}
