package main

import (
	"context"
	"errors"
	"fmt"
)

// line is a part of the report that can be asked for alone.
type line struct {
	name    string
	section section
	most    int // limit of rounds, for a line that takes minutes
	measure func(context.Context, *round) error
}

func lines() []line {
	return []line{
		{"micro", loading, 9, microbenchmarks},
		{"firstload", loading, 9, firstLoads},
		{"apache", loading, 9, apacheLoads},
		{"matrix", loading, 1, matrix},
		{"cold", loading, 1, cold},
		{"wide", loading, 3, wideRows},
		{"rest", overREST, 9, restLoad},
		{"hash", overREST, 9, hashedLoads},
		{"openday", overREST, 1, openDays},
		{"days", overREST, 1, restDays},
		{"changing", following, 1, changing},
		{"latency", following, 1, latencies},
		{"steady", following, 1, steady},
		{"idle", following, 3, idleness},
		{"growing", holding, 1, growing},
		{"scattered", holding, 3, scattered},
		{"dedup", holding, 3, dedupOf},
		{"writer", holding, 1, besideAWriter},
		{"open", holding, 1, openTransaction},
		{"sweep", holding, 1, sweeping},
		{"hostile", holding, 3, hostile},
		{"start", starting, 5, starts},
		{"takeover", starting, 3, takeovers},
	}
}

func lineNames() []string {
	var names []string
	for _, l := range lines() {
		names = append(names, l.name)
	}
	return names
}

// round is one measurement of a line with one program.
type round struct {
	*stage
	program *program // the one that is measured
	section section
	number  int // 0 is the first
	table   *table
	plots   *plots
}

// add adds a figure to the table.
func (r *round) add(f figure, v float64) {
	r.table.add(r.section, r.program.name, f, v)
	r.note(f.what+": "+f.format, v)
}

// point adds a point to a plot. name selects the line, if the plot has several.
func (r *round) point(plot, panel, name string, x, y float64) {
	if name != "" {
		name += ", "
	}
	r.plots.add(plot, panel, name+r.program.name, x, y)
}

// note says something of this round while the bench goes on.
func (r *round) note(format string, args ...any) {
	r.say("%s, round %d: %s", r.program.name, r.number+1, fmt.Sprintf(format, args...))
}

// running starts an embedded broker and the round's storestream on it, calls do, and ends both. Where the
// setting names no database or service, they are the shop's.
func (r *round) running(ctx context.Context, set setting, do func(*broker, *stream) error) (err error) {
	if set.dsn == "" && set.base == "" {
		db, shop, err := r.openShop(ctx)
		if err != nil {
			return err
		}
		set.dsn, set.base = db.reader("postgres"), shop.base
	}
	b, err := startEmbedded(ctx, r.stage)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.stop()) }()
	set.broker = b
	st, err := r.program.start(set)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, st.Kill()) }()
	return do(b, st)
}
