package rowsway

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// goroutine is one goroutine of the program.
type goroutine struct {
	state string
	ids   []string    // its own, that of the goroutine that started it, and so on
	calls []string    // the names of all functions on its own stack, innermost first
	ours  []*function // on its own stack and on those of ids, outermost first
}

var (
	header  = regexp.MustCompile(`^goroutine (\d+) .*\[([^],]+)`)
	starter = regexp.MustCompile(`^\[originating from goroutine (\d+)`)
	place   = regexp.MustCompile(`^\t(.+):(\d+)`)
	literal = regexp.MustCompile(`\.func\d+[^/]*$`)
)

// readStacks reads the goroutines that have functions of ours on their own stack, from the text that the
// runtime prints. A library's goroutine has none there, even if a call of ours started it.
func readStacks(text string, fs functions) []*goroutine {
	var found []*goroutine
	for _, block := range strings.Split(text, "\n\n") {
		lines := strings.Split(block, "\n")
		head := header.FindStringSubmatch(lines[0])
		if head == nil {
			continue
		}
		g, own := &goroutine{ids: head[1:2], state: head[2]}, false
		for i, line := range lines[1:] {
			if start := starter.FindStringSubmatch(line); start != nil {
				g.ids = append(g.ids, start[1])
			}
			at := place.FindStringSubmatch(line)
			called, _, _ := strings.Cut(lines[i], "(0x") // the line before
			if at == nil || strings.HasPrefix(called, "created by ") {
				continue
			}
			number, _ := strconv.Atoi(at[2])
			f := fs.around(at[1], number, 0, !literal.MatchString(called))
			if f != nil {
				g.ours = append(g.ours, f)
			}
			if len(g.ids) == 1 {
				g.calls = append(g.calls, called)
				own = own || f != nil
			}
		}
		if own {
			slices.Reverse(g.ours)
			found = append(found, g)
		}
	}
	return found
}

// rests tells whether the goroutine waits for something.
func (g *goroutine) rests() bool {
	return g.state != "running" && g.state != "runnable"
}

// polls tells whether the goroutine is one of a poller.
func (g *goroutine) polls() bool {
	return slices.ContainsFunc(g.ours, func(f *function) bool { return strings.HasPrefix(f.file, "poller/") })
}

// speaks tells whether the goroutine itself is within a call of a library.
func (g *goroutine) speaks(library string) bool {
	return slices.ContainsFunc(g.calls, func(name string) bool { return strings.HasPrefix(name, library) })
}
