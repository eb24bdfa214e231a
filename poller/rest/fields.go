package rest

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/storestream/storestream/poller"
	"github.com/storestream/storestream/poller/rest/paging"
	"github.com/storestream/storestream/schemas"
)

// fields notices when the service has lost a field: a row without it is read as null there, and a pass, or a
// sweep, would put null over every value that the topic has.
//
// A row without a field can also be one that has null there, for a service may leave out nulls. The
// two differ in how the rows of one answer look: a service that leaves out null has rows with the field
// beside rows without, while a field that is gone is gone from every row. So a field is expected once every
// row of a pass had it (of suspectRows at least: fewer show no habit). Where an answer has no row with an
// expected field, another one decides, of rows of any time:
//
//	the other answer                         what it means
//	has rows with it, and rows without       null is left out: the field is expected no longer
//	has it in no row                         the field is gone: the resource is blocked
//	has it in every row                      both are asked for again, some times. The same: null is left
//	                                         out, in rows that are alike. Otherwise the field was gone for a
//	                                         moment, or one of several servers lacks it: the read fails, and
//	                                         is tried again
//
// Where null is left out, a field that every row had and that is null now in a thousand rows in a row looks
// as if it were gone: blocked, and said. A field that some rows never had is never expected: of such a
// service no answer can tell. Tables of fewer rows than suspectRows are not watched.
type fields struct {
	res      *schemas.Resource
	known    bool   // expected comes from an earlier pass
	expected []bool // by field
	// Of the read in hand: how many good rows it met, and by field how many of them lack it.
	rows    int
	missing []int
	page    []int // the same of one answer; its memory is used again
}

// newFields expects the fields of these names, as names returned them. Nil means that none is known.
func newFields(r *schemas.Resource, names []string) fields {
	f := fields{res: r, known: names != nil, expected: make([]bool, len(r.Fields)),
		missing: make([]int, len(r.Fields))}
	for i := range r.Fields {
		f.expected[i] = slices.Contains(names, r.Fields[i].Name)
	}
	return f
}

// names returns the fields to expect from now on, in the schema's order. Nil means that none is known.
func (f *fields) names() []string {
	habit := f.rows >= suspectRows
	if !f.known && !habit {
		return nil
	}
	names := []string{}
	for i, expected := range f.expected {
		if expected || habit && f.missing[i] == 0 {
			names = append(names, f.res.Fields[i].Name)
		}
	}
	return names
}

// check looks at the rows that s has parsed of the answer to query. It returns a *poller.BlockedError if a
// field is gone.
func (f *fields) check(ctx context.Context, s *Source, query string) error {
	var rows int
	rows, f.page = s.parser.Missing(f.page[:0])
	f.rows += rows
	var lost []int
	for i, n := range f.page {
		f.missing[i] += n
		switch {
		case n == 0 || !f.expected[i]:
		case n < rows:
			f.expected[i] = false
		default:
			lost = append(lost, i)
		}
	}
	for n := 0; n < confirmations && len(lost) > 0; n++ {
		var err error
		if lost, err = f.confirm(ctx, s, query, lost); err != nil {
			return err
		}
	}
	for _, i := range lost {
		f.expected[i] = false
	}
	return nil
}

// confirmations is how often both answers have to agree again. If one of two servers has lost a field, they
// may agree by chance.
const confirmations = 8

// confirm finds out why no row of the answer to query has the fields lost. It returns those that all rows of
// any time have, and that the rows of that answer still lack.
func (f *fields) confirm(ctx context.Context, s *Source, query string, lost []int) (alike []int, err error) {
	others, without, err := f.ofAnyTime(ctx, s)
	if err != nil {
		return nil, err
	}
	var gone []int
	for _, i := range lost {
		switch without[i] {
		case others:
			gone = append(gone, i)
		case 0:
			alike = append(alike, i)
		default:
			f.expected[i] = false
		}
	}
	if len(gone) > 0 {
		return nil, f.blocked(gone, others)
	}
	if len(alike) == 0 {
		return nil, nil
	}
	rows, without, _, err := missing(ctx, s, query)
	if err != nil {
		return nil, err
	}
	for _, i := range alike {
		if rows == 0 || without[i] < rows {
			return nil, fmt.Errorf("%s: answers differ in whether rows have the field %s; they are read again",
				f.res.Name, f.res.Fields[i].Name)
		}
	}
	return alike, nil
}

func (f *fields) blocked(gone []int, rows int) error {
	var names []string
	for _, i := range gone {
		names = append(names, f.res.Fields[i].Name)
	}
	return &poller.BlockedError{What: fmt.Sprintf("%s: the service's rows have lost %s: every row had it, and "+
		"none of %d has it now. Nothing is published, for it would be null in every row. This goes on by "+
		"itself when it is back; if it is gone for good, take it out of the schema",
		f.res.Name, strings.Join(names, ", "), rows)}
}

// ofAnyTime looks at the first rows of all. A page may be empty though more follow.
func (f *fields) ofAnyTime(ctx context.Context, s *Source) (rows int, without []int, err error) {
	all := window{updated: always, created: always}
	for page, more := 0, true; more && page < mostGlances; page++ {
		rows, without, more, err = missing(ctx, s, all.query(page, paging.PageSize))
		if err != nil || rows > 0 {
			return rows, without, err
		}
	}
	return 0, nil, fmt.Errorf("%s: rows lack a field that every row had, and there are no others to compare "+
		"them with", f.res.Name)
}

// missing asks for rows, which it does not hand on, and says how many of them are good and, by field, how
// many of these lack it; and whether more rows follow.
func missing(ctx context.Context, s *Source, query string) (rows int, without []int, more bool, err error) {
	p, err := s.endpoint.Page(ctx, query)
	defer s.endpoint.Release()
	if err != nil {
		return 0, nil, false, err
	}
	for _, raw := range p.Rows {
		s.parser.Parse(raw)
	}
	rows, without = s.parser.Missing(nil)
	if p.Age > 0 {
		return 0, nil, false, fmt.Errorf("%s: %s", s.cfg.Resource.Name, cached(p.Age))
	}
	return rows, without, p.More, nil
}
