package rest

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/storestream/storestream/internal/rounds"
	"github.com/storestream/storestream/poller"
	"github.com/storestream/storestream/poller/rest/dialect"
	"github.com/storestream/storestream/schemas"
	"pgregory.net/rapid"
)

const brand = `,"brand":"b"`

func noBrand(product) string { return brand }

// withoutBrand are the rows in which brand is null.
func (got *taken) withoutBrand(t interface {
	Helper()
	Fatal(why ...any)
}) (ids []int64) {
	t.Helper()
	set, err := loadSchemas()
	if err != nil {
		t.Fatal(err)
	}
	values, err := schemas.NewValueReader(set.Get("products"), "")
	if err != nil {
		t.Fatal(err)
	}
	for id, row := range got.rows {
		value, err := values.Read(row.Value)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(value.AppendJSON(nil, false)), `"brand":null`) {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids
}

func TestAFieldThatTheServiceHasLostHoldsEveryKindOfRead(t *testing.T) {
	for _, blank := range []bool{false, true} {
		t.Run(fmt.Sprintf("first pages are empty: %v", blank), func(t *testing.T) { loseAField(t, blank) })
	}
}

func loseAField(t *testing.T, blank bool) {
	t.Helper()
	s := newService(t)
	s.blank = blank
	s.now = clockAt("2026-11-20T12:00:00Z")
	s.products = append(oneDay(1, 100, "2026-11-15"), oneDay(200, 1, "2026-11-20")...)
	got, err := readAll(t.Context(), s.fresh(), pass(schemas.MinInstant))
	if err != nil {
		t.Fatal(err)
	}
	fields := got.done.Fields
	if !slices.Equal(fields, products(t).Columns()) {
		t.Errorf("every row has every field, and it found %q", fields)
	}
	suspects := []poller.Suspect{{ID: 1, UpdatedAt: schemas.MinInstant,
		CreatedAt: schemas.InstantOf(s.products[0].created)}}
	requests := []poller.Request{
		pass(schemas.MinInstant), pass(got.settled), {Kind: poller.Full, From: schemas.MinInstant},
		{Kind: poller.Lookup, Suspects: suspects},
		{Kind: poller.Lookup, Suspects: suspects, Everywhere: true, From: schemas.MinInstant},
	}
	s.hidden = noBrand
	for _, r := range requests {
		r.Fields = fields
		got, err := readAll(t.Context(), s.fresh(), r)
		var blocked *poller.BlockedError
		if !errors.As(err, &blocked) || !strings.Contains(err.Error(), "have lost brand:") {
			t.Errorf("%+v: %v", r, err)
		}
		if len(got.rows) > 0 || got.settled != schemas.MinInstant {
			t.Errorf("%+v: %d rows, settled %s", r, len(got.rows), got.settled)
		}
	}
	src := s.fresh()
	for _, r := range requests {
		r.Fields = slices.DeleteFunc(slices.Clone(fields), func(name string) bool { return name == "brand" })
		if _, err := readAll(t.Context(), src, r); err != nil {
			t.Errorf("the schema's new field, which no row had: %v", err)
		}
	}
	s.hidden = nil
	for _, r := range requests {
		r.Fields = append(slices.Clone(fields), "color")
		got, err := readAll(t.Context(), src, r)
		if err != nil || len(got.rows) == 0 || len(got.withoutBrand(t)) > 0 {
			t.Errorf("it is back: %d rows, %v", len(got.rows), err)
		}
		if done := got.done; r.Kind == poller.Pass && !slices.Equal(done.Fields, fields) {
			t.Errorf("the schema has no color any more, and %q are expected", done.Fields)
		}
	}
}

func TestAServiceThatLeavesOutNullIsNotBlocked(t *testing.T) {
	for name, hidden := range map[string]func(product) string{
		"in the first load": func(p product) string {
			if p.id%2 == 0 {
				return brand
			}
			return ""
		},
		"in one new row": func(p product) string {
			if p.id == 5000 {
				return brand
			}
			return ""
		},
		"in all new rows, which are not on the first page of all": func(p product) string {
			if p.id >= 5000 {
				return brand
			}
			return ""
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newService(t)
			s.now = clockAt("2026-11-20T12:00:00Z")
			s.hidden = hidden
			s.products = oneDay(1, 1500, "2026-11-15")
			got, err := readAll(t.Context(), s.fresh(), pass(schemas.MinInstant))
			if err != nil {
				t.Fatal(err)
			}
			fields := got.done.Fields
			s.products = append(s.products, oneDay(5000, 30, "2026-11-20")...)
			r := pass(got.settled)
			r.Fields = fields
			got, err = readAll(t.Context(), s.fresh(), r)
			if err != nil {
				t.Fatal(err)
			}
			got.has(t, s.products[1500:])
			if slices.Contains(got.done.Fields, "brand") {
				t.Error("brand is still expected")
			}
		})
	}
}

// A row without the field must not be handed on because the field was back when others were asked for.
func TestAFieldThatIsGoneForAMomentIsNotTakenForNull(t *testing.T) {
	s := newService(t)
	s.now = clockAt("2026-11-20T12:00:00Z")
	s.products = oneDay(1, 1500, "2026-11-15")
	got, err := readAll(t.Context(), s.fresh(), pass(schemas.MinInstant))
	if err != nil {
		t.Fatal(err)
	}
	r := pass(got.settled)
	r.Fields = got.done.Fields
	s.products = append(s.products, oneDay(5000, 30, "2026-11-20")...)
	gone, asked := false, 0
	s.before = func(_ http.ResponseWriter, q url.Values) bool {
		if gone = q.Get("updated_from") != "" && q.Get("updated_to") == ""; gone { // the open window, once
			asked++
			gone = asked == 2 // the first was for the clock
		}
		return false
	}
	s.hidden = func(product) string {
		if gone {
			return brand
		}
		return ""
	}
	got, err = readAll(t.Context(), s.fresh(), r)
	var blocked *poller.BlockedError
	if err == nil || errors.As(err, &blocked) || !strings.Contains(err.Error(), "brand") || len(got.rows) > 0 {
		t.Errorf("%d rows, %v", len(got.rows), err)
	}
	got, err = readAll(t.Context(), s.fresh(), r)
	if err != nil || len(got.withoutBrand(t)) > 0 {
		t.Errorf("the next pass: %v", err)
	}
	got.has(t, s.products[1500:])
}

func TestAFewRowsShowNoHabit(t *testing.T) {
	s := newService(t)
	s.now = clockAt("2026-11-20T12:00:00Z")
	s.products = oneDay(1, suspectRows-1, "2026-11-15")
	got, err := readAll(t.Context(), s.fresh(), pass(schemas.MinInstant))
	if err != nil || got.done.Fields != nil {
		t.Errorf("%v, fields %q", err, got.done.Fields)
	}
	r := pass(schemas.MinInstant)
	r.Fields = []string{"id", "brand"}
	if got, err = readAll(t.Context(), s.fresh(), r); err != nil || !slices.Equal(got.done.Fields, r.Fields) {
		t.Errorf("%v, fields %q, what was known before is still expected", err, got.done.Fields)
	}
}

// A service writes null, or leaves it out. A field vanishes and comes back between any two requests. Where
// null is written, no row is handed on without a value that it has, and a read that fails names the field;
// where it is left out and no field vanishes, no read fails. Before it vanishes and once it is back, all
// rows are read.
//
// A round is five reads over HTTP, and the first few find what there is to find.
func TestWhateverAServiceLeavesOutNoValueIsReadAsNull(t *testing.T) {
	missed := 0 // reads that named the field
	rounds.Check(t, 30, func(rt *rapid.T) {
		s := newService(t)
		defer s.server.Close()
		s.now = clockAt("2026-11-20T12:00:00Z")
		s.maxPage = rapid.SampledFrom([]int{1000, 40}).Draw(rt, "page")
		leavesOut := rapid.Bool().Draw(rt, "leaves out null")
		every := rapid.IntRange(2, 30).Draw(rt, "null every")
		s.products = append(oneDay(1, rapid.IntRange(20, 90).Draw(rt, "old rows"), "2026-11-15"),
			oneDay(1000, rapid.IntRange(0, 60).Draw(rt, "new rows"), "2026-11-20")...)
		null := func(p product) bool { return leavesOut && p.id%int64(every) == 0 }
		gone := false
		changes := rapid.SliceOfN(rapid.Bool(), 64, 64).Draw(rt, "vanishes")
		asked, vanishes := 0, false
		s.before = func(http.ResponseWriter, url.Values) bool {
			asked++
			gone = vanishes && !leavesOut && changes[asked%len(changes)]
			return false
		}
		s.hidden = func(p product) string {
			if gone || null(p) {
				return brand
			}
			return ""
		}
		settled, fields := schemas.MinInstant, []string(nil)
		for i := range 5 {
			vanishes = i > 0 && i < 4
			r := pass(settled)
			if i >= 3 {
				r = poller.Request{Kind: poller.Full, From: schemas.MinInstant}
			}
			r.Fields = fields
			got, err := readAll(t.Context(), s.fresh(), r)
			if err != nil && (leavesOut || !vanishes || !strings.Contains(err.Error(), "brand")) {
				rt.Fatalf("read %d: %v", i, err)
			}
			if err != nil {
				missed++
			}
			if !vanishes && len(got.rows) != len(s.products) {
				rt.Fatalf("read %d: %d of %d rows", i, len(got.rows), len(s.products))
			}
			if err == nil && got.done.Fields != nil {
				fields = got.done.Fields
			}
			settled = max(settled, got.settled)
			for _, id := range got.withoutBrand(rt) {
				if !null(product{id: id}) {
					rt.Fatalf("read %d: row %d came without its brand: %v", i, id, err)
				}
			}
		}
	})
	if missed == 0 {
		t.Error("no read named the field: the property says little")
	}
}

// The page that shows another zone still has the field. It is dropped, and proves nothing of the next one.
func TestAFieldThatIsLostBetweenTwoPlansHolds(t *testing.T) {
	s := newService(t)
	s.now = clockAt("2026-11-20T12:00:00Z")
	s.zone = time.FixedZone("", -5*3600)
	s.products = hourly(300, 37*time.Minute)
	src := s.fresh()
	s.before = func(http.ResponseWriter, url.Values) bool {
		if src.cfg.Dialect.Value(dialect.Days) == dialect.Other {
			s.hidden = noBrand
		}
		return false
	}
	r := pass(schemas.MinInstant)
	r.Fields = products(t).Columns()
	got, err := readAll(t.Context(), src, r)
	var held *poller.BlockedError
	if !errors.As(err, &held) || !strings.Contains(err.Error(), "have lost brand:") || s.hidden == nil {
		t.Errorf("%v; null was read in %d rows", err, len(got.withoutBrand(t)))
	}
}
