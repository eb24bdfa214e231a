package rowsway

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// coverage is how often each block of a function ran, by the line and column where the block begins.
type coverage map[*function]map[[2]int]int

// readCoverage reads the counters that the program wrote at the trip's end.
func (tr *trip) readCoverage(root string, fs functions) error {
	profile := filepath.Join(tr.counters, "profile")
	cmd := exec.Command("go", "tool", "covdata", "textfmt", "-i="+tr.counters, "-o="+profile)
	cmd.Dir = root
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("go tool covdata: %w: %s", err, out)
	}
	text, err := os.ReadFile(profile)
	if err != nil {
		return err
	}
	tr.ran = coverage{}
	for line := range strings.Lines(string(text)) {
		file, numbers, _ := strings.Cut(strings.TrimPrefix(line, module), ":")
		var begin, end [2]int
		var statements, count int
		n, _ := fmt.Sscanf(numbers, "%d.%d,%d.%d %d %d", &begin[0], &begin[1], &end[0], &end[1], &statements,
			&count)
		if n != 6 {
			continue // the first line, which names the mode
		}
		if f := fs.around(root+file, begin[0], begin[1], false); f != nil {
			if tr.ran[f] == nil {
				tr.ran[f] = map[[2]int]int{}
			}
			tr.ran[f][begin] = count
		}
	}
	return nil
}

// forEachRow returns the functions that have a block which ran once for each row that more has beyond tr's,
// and that were not called more often.
func (tr *trip) forEachRow(more *trip) (found []*function) {
	rows := more.rows - tr.rows
	for f, blocks := range more.ran {
		works, first := false, [2]int{f.end.Line + 1, 0}
		for begin, count := range blocks {
			grown := count - tr.ran[f][begin]
			works = works || grown >= rows && grown < 2*rows
			if slices.Compare(begin[:], first[:]) < 0 {
				first = begin // the block that runs at each call
			}
		}
		if works && blocks[first]-tr.ran[f][first] < 2*rows {
			found = append(found, f)
		}
	}
	return found
}
