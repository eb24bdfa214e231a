package main

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"text/tabwriter"
	"time"
)

// result is the outcome of a run.
type result struct {
	plan    *plan
	took    time.Duration // of the mishaps
	quiet   time.Duration // from the end of traffic until every topic equalled the service
	changes int64
	late    int
	refused int // changes of the shop that its database refused
	struck  []struck
	reports []*report
	probes  *probes
	marks   map[string]mark
	letters int
	stall   time.Duration // of this process, for want of a processor
	excuses string        // the incidents that the judge allows for
	raised  string        // the operator's actions
	loads   string        // those in the order of the blocks
	asked   string        // what became of replays, cancels and pauses
	wrong   []error
}

// ok is whether the run may exit 0.
func (r *result) ok() bool {
	return len(r.wrong) == 0 && !slices.ContainsFunc(r.reports, func(v *report) bool { return !v.ok() })
}

// write prints the result.
func (r *result) write(w io.Writer) {
	fmt.Fprintf(w, "\nseed %d, orders and items from %s, broker %s, registry %s, %d instances: %s of mishaps, "+
		"then equal after %s\n", r.plan.seed, r.plan.source,
		r.plan.broker, r.plan.registry, r.plan.instances, short(r.took), short(r.quiet))
	fmt.Fprintf(w, "rows changed %d (%d late commits held open, %d changes refused by a database that was "+
		"away), dead letters %d; this machine stood still for %s at most\n\n",
		r.changes, r.late, r.refused, r.letters, short(r.stall))
	fmt.Fprint(w, r.excuses, r.raised, r.loads, r.asked)
	r.writeTopics(w)
	fmt.Fprintln(w)
	r.writeMishaps(w)
	r.writeNotPlayed(w)
	r.writeFaults(w)
}

func (r *result) writeTopics(w io.Writer) {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "\ttopic\trows\tversions published\tof these by replays\tlost\tstale\ttwice\tstepped back\t"+
		"deleted by mistake\tlongest stall\tsettled, by the service's clock\t")
	for _, v := range r.reports {
		fmt.Fprintf(t, "\t%s\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%s\t%s\t\n", v.resource, v.rows, v.versions,
			v.repeated, v.lost.n, v.stale.n, v.twice.n, v.back.n, v.deleted.n,
			short(r.probes.longest(v.resource)), r.marks[v.resource].Settled.UTC().Format("2006-01-02 15:04:05"))
	}
	_ = t.Flush() // to a terminal or a log
}

// writeMishaps prints, for each kind, how long it took from its end until a change made after it was visible
// in every topic. Only mishaps that were alone until then count. For the others, see the longest stall.
func (r *result) writeMishaps(w io.Writer) {
	type line struct {
		lengths, recoveries []time.Duration
	}
	lines, names := map[string]*line{}, []string{}
	for _, e := range r.struck {
		if e.not != "" {
			continue
		}
		l := lines[e.kind.name]
		if l == nil {
			l = &line{}
			lines[e.kind.name] = l
			names = append(names, e.kind.name)
		}
		l.lengths = append(l.lengths, e.ended.Sub(e.began))
		if at, missing := r.probes.recovered(e.ended); missing == "" && r.alone(e, at) {
			l.recoveries = append(l.recoveries, at.Sub(e.ended))
		}
	}
	slices.Sort(names)
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "\tmishap\ttimes\tlongest\talone\tthen recovered after: median\tlongest\t")
	for _, name := range names {
		l := lines[name]
		middle, longest := "", ""
		if n := len(l.recoveries); n > 0 {
			slices.Sort(l.recoveries)
			middle, longest = short(l.recoveries[n/2]), short(l.recoveries[n-1])
		}
		fmt.Fprintf(t, "\t%s\t%d\t%s\t%d\t%s\t%s\t\n", name, len(l.lengths), short(slices.Max(l.lengths)),
			len(l.recoveries), middle, longest)
	}
	_ = t.Flush() // to a terminal or a log
}

// writeNotPlayed prints which kinds were not played, and why.
func (r *result) writeNotPlayed(w io.Writer) {
	played, failed, mishaps := map[string]bool{}, map[string]notPlayed{}, 0
	for _, e := range r.struck {
		if e.not != "" {
			failed[e.kind.name] = e.not
			continue
		}
		played[e.kind.name] = true
		mishaps++
	}
	all := kindNames()
	fmt.Fprintf(w, "\n%d mishaps of %d kinds out of %d\n", mishaps, len(played), len(all))
	for _, name := range all {
		if !played[name] {
			fmt.Fprintf(w, "  never %s: %s\n", plainName(name),
				cmp.Or(r.plan.absent(name), "it never came about; the last time: "+string(failed[name])))
		}
	}
}

// alone says whether no other mishap went on between e's beginning and the recovery from it, nor had shortly
// before.
func (r *result) alone(e struck, recovered time.Time) bool {
	for _, other := range r.struck {
		if other.not != "" || other.began.Equal(e.began) && other.kind == e.kind {
			continue
		}
		over := other.ended
		if at, missing := r.probes.recovered(other.ended); missing == "" {
			over = at
		}
		if other.began.Before(recovered) && over.After(e.began) {
			return false
		}
	}
	return true
}

// writeFaults prints each kind of fault with its first offenders.
func (r *result) writeFaults(w io.Writer) {
	for _, v := range r.reports {
		faults := v.faults()
		for _, name := range []string{"lost", "stale", "twice", "stepped back", "deleted by mistake", "extra",
			"not sent again", "broken"} {
			f := faults[name]
			for n, text := range f.first {
				if n == 0 {
					fmt.Fprintf(w, "\n%s: %d %s\n", v.resource, f.n, name)
				}
				fmt.Fprintf(w, "  %s\n", text)
			}
		}
	}
	for _, err := range r.wrong {
		fmt.Fprintf(w, "\nWRONG: %v\n", err)
	}
}

func short(d time.Duration) string { return d.Round(100 * time.Millisecond).String() }
