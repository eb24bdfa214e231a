package rest

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"testing"
	"time"

	"github.com/storestream/storestream/poller"
	"github.com/storestream/storestream/schemas"
)

// zones are as far from UTC as any, with those between that begin just before and after midnight.
var zones = []time.Duration{-12 * time.Hour, -5 * time.Hour, -15 * time.Minute, 0, time.Hour, 8 * time.Hour,
	14 * time.Hour}

// The service cuts the days of each filter in a zone of its own, and may read each to_ date as its midnight.
// A row that a full read meets has to be met by a lookup, by a source that knows nothing of the service and
// by one that has made a pass. Times of rows lie close to midnights, where zones and roundings differ most.
func TestALookupMeetsEveryRowThatAFullReadMeetsHoweverTheServiceCutsDays(t *testing.T) {
	for _, created := range zones {
		for _, updated := range zones {
			t.Run(fmt.Sprintf("created %s, updated %s", created, updated), func(t *testing.T) {
				t.Parallel()
				for _, midnights := range [][]string{nil, {"created"}, {"updated"}, {"created", "updated"}} {
					s := newService(t)
					s.createdZone = time.FixedZone("", int(created.Seconds()))
					s.zone = time.FixedZone("", int(updated.Seconds()))
					s.upTo = midnights
					s.now = clockAt("2026-11-20T12:00:00Z")
					s.products = aroundMidnights()
					for _, passFirst := range []bool{false, true} {
						s.looksUpAll(passFirst)
					}
				}
			})
		}
	}
}

// aroundMidnights is a shop with a row at each of some times of day, and fractions that are rounded on the
// way.
func aroundMidnights() (rows []product) {
	for i, clock := range []string{"00:00:00Z", "00:20:00Z", "02:00:00Z", "11:59:59Z", "12:30:00Z", "16:30:00Z",
		"20:00:00Z", "23:30:00Z", "23:59:59.7Z"} {
		created := at(fmt.Sprintf("2026-11-%02dT%s", 1+i, clock))
		rows = append(rows, product{id: int64(i + 1), created: created, updated: created.Add(36 * time.Hour)})
	}
	return rows
}

// looksUpAll reads all in full, and then looks each row up, by created_at and updated_at, and by each of
// them, alone and together with all the others.
func (s *service) looksUpAll(passFirst bool) {
	s.t.Helper()
	src := s.fresh()
	if passFirst {
		if _, err := readAll(s.t.Context(), src, pass(schemas.MinInstant)); err != nil {
			s.t.Fatal(err)
		}
	}
	full, err := readAll(s.t.Context(), src, poller.Request{Kind: poller.Full, From: schemas.MinInstant})
	if err != nil || len(full.rows) != len(s.products) {
		s.t.Fatalf("a full read meets %d rows, %v", len(full.rows), err)
	}
	var together [3][]poller.Suspect
	for _, p := range s.products {
		both := poller.Suspect{ID: p.id, UpdatedAt: full.rows[p.id].UpdatedAt,
			CreatedAt: schemas.InstantOf(p.created.Round(time.Second))}
		byCreated, byUpdated := both, both
		byCreated.UpdatedAt, byUpdated.CreatedAt = schemas.MinInstant, schemas.MinInstant
		for i, suspect := range []poller.Suspect{both, byCreated, byUpdated} {
			together[i] = append(together[i], suspect)
			r := poller.Request{Kind: poller.Lookup, Suspects: []poller.Suspect{suspect}}
			got, err := readAll(s.t.Context(), src, r)
			if err != nil {
				s.t.Fatal(err)
			}
			if _, met := got.rows[p.id]; !met {
				s.t.Errorf("to_ dates that are midnights: %v, pass first: %v: a lookup of %+v does not meet the row",
					s.upTo, passFirst, suspect)
			}
		}
	}
	for _, suspects := range together {
		got, err := readAll(s.t.Context(), src, poller.Request{Kind: poller.Lookup, Suspects: suspects})
		if err != nil {
			s.t.Fatal(err)
		}
		for _, p := range s.products {
			if _, met := got.rows[p.id]; !met {
				s.t.Errorf("to_ dates that are midnights: %v, pass first: %v: a lookup of %d rows like %+v does not "+
					"meet row %d", s.upTo, passFirst, len(suspects), suspects[0], p.id)
			}
		}
	}
}

// A row's created_at may be corrected without a new updated_at. Then its record in the topic names another
// day.
func TestALookupMeetsARowOfWhichCreatedAtWasCorrected(t *testing.T) {
	s := newService(t)
	s.now = clockAt("2026-11-20T12:00:00Z")
	s.products = aroundMidnights()
	before := s.products[3]
	s.products[3].created = before.created.AddDate(0, -2, 0)
	suspect := poller.Suspect{ID: before.id, UpdatedAt: schemas.InstantOf(before.updated),
		CreatedAt: schemas.InstantOf(before.created)}
	r := poller.Request{Kind: poller.Lookup, Suspects: []poller.Suspect{suspect}}
	got, err := readAll(t.Context(), s.fresh(), r)
	if _, met := got.rows[before.id]; err != nil || !met {
		t.Errorf("met %v, %v", met, err)
	}
}

// A row may have lost its created_at, and its updated_at may have been corrected. Then its record in the
// topic names no day on which it is, and a full reading by created_* does not show it either.
func TestALookupEverywhereMeetsARowThatIsOnNoDayOfItsRecord(t *testing.T) {
	s := newService(t)
	s.now = clockAt("2026-11-20T12:00:00Z")
	s.products = aroundMidnights()
	before := s.products[3]
	s.products[3].created, s.products[3].updated = time.Time{}, before.updated.AddDate(0, -2, 0)
	suspect := poller.Suspect{ID: before.id, UpdatedAt: schemas.InstantOf(before.updated),
		CreatedAt: schemas.InstantOf(before.created)}
	for _, everywhere := range []bool{false, true} {
		r := poller.Request{Kind: poller.Lookup, Everywhere: everywhere, Suspects: []poller.Suspect{suspect}}
		got, err := readAll(t.Context(), s.fresh(), r)
		isIt := func(r schemas.Reject) bool { return r.ID == before.id }
		met := err == nil && slices.ContainsFunc(got.rejects, isIt)
		if met != everywhere || got.done.Complete != everywhere {
			t.Errorf("everywhere %v: met %v, done %+v, %v", everywhere, met, got.done, err)
		}
	}
}

// A service that shows only some rows of any window, and counts no more, cannot be told from one that has no
// more. Polls have met its rows in windows of few. A full reading misses some, and a lookup everywhere finds
// them: two of them were created and updated on the same days. A row that is deleted is not found.
func TestARowThatAServiceShowsOnlyInTheNarrowestWindowIsNotTakenForDeleted(t *testing.T) {
	s := newService(t)
	s.now = clockAt("2026-11-20T12:00:00Z")
	for i := range 200 {
		created := at("2026-10-01T12:00:00Z").AddDate(0, 0, i%10)
		updated := at("2026-11-01T13:00:00Z").AddDate(0, 0, i/10%10)
		s.products = append(s.products, product{id: int64(i + 1), created: created, updated: updated})
	}
	src := s.fresh()
	before, err := readAll(t.Context(), src, pass(schemas.MinInstant))
	if err != nil {
		t.Fatal(err)
	}
	before.has(t, s.products)
	published, deleted := slices.Clone(s.products), s.products[77].id
	s.products = slices.Delete(s.products, 77, 78)
	s.shows, s.maxPage = 8, 4
	for range 2 {
		full, err := readAll(t.Context(), src, poller.Request{Kind: poller.Full, From: schemas.MinInstant})
		if err != nil || len(full.rows) > 100 {
			t.Fatalf("a full reading meets %d rows, %v", len(full.rows), err)
		}
		look := poller.Request{Kind: poller.Lookup, Everywhere: true}
		for _, p := range published {
			if _, met := full.rows[p.id]; !met {
				suspect := poller.Suspect{ID: p.id, UpdatedAt: schemas.InstantOf(p.updated),
					CreatedAt: schemas.InstantOf(p.created)}
				look.Suspects = append(look.Suspects, suspect)
			}
		}
		s.requests = 0
		got, err := readAll(t.Context(), src, look)
		if err != nil || !got.done.Complete || s.requests > 1000 {
			t.Fatalf("after %d requests: done %+v, %v", s.requests, got.done, err)
		}
		for _, suspect := range look.Suspects {
			if _, met := got.rows[suspect.ID]; met == (suspect.ID == deleted) {
				t.Errorf("row %d, of which %d is deleted: met %v", suspect.ID, deleted, met)
			}
		}
		t.Logf("%d rows sought, %d requests", len(look.Suspects), s.requests)
	}
}

// A service may refuse a window with both kinds of dates. Then a row that is gone from its created days and
// from its updated days is taken for deleted all the same.
func TestALookupEndsIfTheServiceRefusesCreatedAndUpdatedDaysTogether(t *testing.T) {
	s := newService(t)
	s.now = clockAt("2026-11-20T12:00:00Z")
	s.products = aroundMidnights()
	refusals := 0
	s.before = func(w http.ResponseWriter, q url.Values) bool {
		refused := q.Has("created_from") && q.Has("updated_from")
		if refused {
			refusals++
			refuse(w, 400, "invalid_param")
		}
		return refused
	}
	gone := poller.Suspect{ID: 999, UpdatedAt: schemas.InstantOf(at("2026-11-05T10:00:00Z")),
		CreatedAt: schemas.InstantOf(at("2026-11-03T10:00:00Z"))}
	look := poller.Request{Kind: poller.Lookup, Everywhere: true, Suspects: []poller.Suspect{gone}}
	got, err := readAll(t.Context(), s.fresh(), look)
	if err != nil || !got.done.Complete || refusals == 0 {
		t.Errorf("%d requests were refused: done %+v, %v", refusals, got.done, err)
	}
}

func TestWindowsOfAFewSuspectsAreJoinedOnlyIfTheyOverlap(t *testing.T) {
	single := func(days ...day) (list []span) {
		for _, d := range days {
			list = append(list, span{From: d, To: d})
		}
		return list
	}
	for apart, want := range map[day][]span{
		0: single(1, 2, 5, 9),
		1: {{From: 1, To: 2}, {From: 5, To: 5}, {From: 9, To: 9}},
		3: {{From: 1, To: 5}, {From: 9, To: 9}},
		4: {{From: 1, To: 9}},
	} {
		if got := joined(single(9, 2, 1, 5, 2), apart, future); !slices.Equal(got, want) {
			t.Errorf("apart %d: %v, expected %v", apart, got, want)
		}
	}
}
