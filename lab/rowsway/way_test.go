package rowsway

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
)

// way is a row's way through our functions.
type way struct {
	waiting, working, handing []*function // each function once, in the first that it is in
	deepest                   []*function // of the stacks
}

// functions counts all of them.
func (w *way) functions() int { return len(w.waiting) + len(w.working) + len(w.handing) }

// newWay finds the way from the trips of one row, of many, and of as many bare ones. Answers are the
// goroutines that waited for any answer.
func newWay(one, more, bare *trip, answers []*goroutine) *way {
	start := startOf(more.waiting.ours, more.committer.ours)
	w := &way{waiting: from(start, more.waiting.ours)}
	ofBare := one.forEachRow(bare)
	for _, f := range one.forEachRow(more) {
		if f.carries && slices.Contains(ofBare, f) && !slices.Contains(w.waiting, f) {
			w.working = append(w.working, f)
		}
	}
	slices.SortFunc(w.working, func(a, b *function) int {
		return cmp.Or(cmp.Compare(stage(a), stage(b)), cmp.Compare(a.file, b.file),
			cmp.Compare(a.at.Line, b.at.Line))
	})
	handing := append(slices.Clone(more.handing), more.committer)
	for _, g := range handing {
		for _, f := range from(start, g.ours) {
			if !slices.Contains(slices.Concat(w.waiting, w.working, w.handing), f) {
				w.handing = append(w.handing, f)
			}
		}
	}
	for _, g := range append(handing, answers...) {
		if stack := from(start, g.ours); len(stack) > len(w.deepest) {
			w.deepest = stack
		}
	}
	return w
}

// startOf returns the function at which the way starts. It is called by the last function of cmd that both
// stacks have in common.
func startOf(a, b []*function) *function {
	start := a[0]
	for i := range min(len(a), len(b)) - 1 {
		if a[i] != b[i] {
			break
		}
		if strings.HasPrefix(a[i].file, "cmd/") {
			start = a[i+1]
		}
	}
	return start
}

// from returns the functions of a stack from start on, each once. It returns none if start is not on it.
func from(start *function, stack []*function) (found []*function) {
	for _, f := range stack {
		if (f == start || len(found) > 0) && !slices.Contains(found, f) {
			found = append(found, f)
		}
	}
	return found
}

// stage orders functions as a row meets their packages.
func stage(f *function) int {
	folders := []string{"poller/rest/", "poller/postgres/", "schemas/", "poller/", "internal/", "producer/"}
	return slices.IndexFunc(folders, func(folder string) bool { return strings.HasPrefix(f.file, folder) })
}

// print prints the way for somebody who follows a row through the code.
func (w *way) print(out io.Writer, source string) {
	fmt.Fprintf(out, "%s: %d functions, the deepest stack has %d\n", source, w.functions(), len(w.deepest))
	for _, part := range []struct {
		name string
		fs   []*function
	}{
		{"waiting for the answer, outermost first", w.waiting},
		{"working on each row, by package", w.working},
		{"handing the rows on, and committing", w.handing},
		{"the deepest stack", w.deepest},
	} {
		fmt.Fprintf(out, "  %s: %d\n", part.name, len(part.fs))
		for _, f := range part.fs {
			fmt.Fprintf(out, "    %-42s %s\n", fmt.Sprintf("%s:%d", f.file, f.at.Line), f.name)
		}
	}
}
