package rest

import (
	"context"
	"fmt"
	"slices"

	"github.com/storestream/storestream/poller"
	"github.com/storestream/storestream/poller/rest/client"
	"github.com/storestream/storestream/poller/rest/paging"
	"github.com/storestream/storestream/schemas"
)

// fields notices when the service has lost a field. A row without the field is read as null there. So a pass,
// or a sweep, would put null over every value that the topic has.
//
// A row without a field can also have null there, because a service may leave out nulls. The rows of one
// answer show the difference. A service that leaves out null has rows with the field beside rows without. A
// field that is gone is gone from every row. So a field is expected once every row of a pass had it (of
// suspectRows at least: fewer show no habit). If an answer has no row with an expected field, another answer
// decides, with rows of any time:
//
//	the other answer                         what it means
//	has rows with it, and rows without       null is left out: the field is expected no longer
//	has it in no row                         the field is gone: the resource is blocked
//	has it in every row                      both are asked for again, some times. The same: null is left
//	                                         out, in rows that are alike. Otherwise the field was gone for a
//	                                         moment, or one of several servers lacks it: the read fails, and
//	                                         is tried again
//
// If a service leaves out null, and a field that every row had is null now in a thousand rows in a row, the
// field looks as if it were gone. Then the resource is blocked, with that reason. A field that some rows
// never had is never expected, because no answer can show that it is gone. Tables of fewer rows than
// suspectRows are not watched.
type fields struct {
	res      *schemas.Resource
	known    bool   // expected comes from an earlier pass
	expected []bool // by field
	// Of the read in hand: how many good rows it met, and by field how many of them lack it.
	rows    int
	missing []int
	page    []int // the same of one answer; its memory is used again
}

// newFields expects the fields of these names, as names returned them. Nil means unknown.
func newFields(r *schemas.Resource, names []string) fields {
	f := fields{res: r, known: names != nil, expected: make([]bool, len(r.Fields)),
		missing: make([]int, len(r.Fields))}
	for i := range r.Fields {
		f.expected[i] = slices.Contains(names, r.Fields[i].Name)
	}
	return f
}

// names returns the fields to expect from now on, in the schema's order. Nil means unknown.
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

// confirmations is how often both answers have to agree again. If one of two servers has lost a field, they
// may agree by chance.
const confirmations = 8

// check looks at the rows that rd has parsed of a page of w. It returns a *poller.BlockedError if a field is
// gone.
func (f *fields) check(ctx context.Context, rd *read, w window, page, size int) error {
	var rows int
	rows, f.page = rd.src.parser.Missing(f.page[:0])
	f.rows += rows
	for i, n := range f.page {
		f.missing[i] += n
		if n == 0 || !f.expected[i] {
			continue
		}
		if n == rows {
			if err := f.lost(ctx, rd, i, w, page, size); err != nil {
				return err
			}
		}
		f.expected[i] = false
	}
	return nil
}

// lost returns nil if field i is null in all rows of a page of w, and a service that leaves out null can
// explain that.
func (f *fields) lost(ctx context.Context, rd *read, i int, w window, page, size int) error {
	name := f.res.Fields[i].Name
	for range confirmations {
		others, without, err := f.glance(ctx, rd, i, window{always, always}, 0, paging.PageSize)
		switch {
		case err != nil:
			return err
		case others == 0:
			return fmt.Errorf("%s: rows lack a field that every row had (%s), and there are no others to compare "+
				"them with", f.res.Name, name)
		case without == others:
			return &poller.BlockedError{What: fmt.Sprintf("%s: the service's rows have lost %s: every row had it, "+
				"and none of %d has it now. Nothing is published, for it would be null in every row. This goes on by "+
				"itself when it is back; if it is gone for good, take it out of the schema", f.res.Name, name, others)}
		case without > 0:
			return nil
		}
		rows, without, err := f.glance(ctx, rd, i, w, page, size)
		if err != nil {
			return err
		}
		if rows == 0 || without < rows {
			return fmt.Errorf("%s: answers differ in whether rows have the field %s; they are read again",
				f.res.Name, name)
		}
	}
	return nil
}

// glance returns how many rows of w, from a page on, the first page with a good row has, and how many of
// these lack field i.
func (f *fields) glance(
	ctx context.Context, rd *read, i int, w window, page, size int,
) (rows, without int, err error) {
	doubt, err := rd.glance(ctx, w, page, size, func(p client.Page) (enough bool) {
		for _, raw := range p.Rows {
			rd.src.parser.Parse(raw)
		}
		n, missing := rd.src.parser.Missing(nil)
		rows, without = n, missing[i]
		return rows > 0
	})
	if err == nil && doubt != "" {
		err = fmt.Errorf("%s: %s", f.res.Name, doubt)
	}
	return rows, without, err
}
