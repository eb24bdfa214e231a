// Package budget compares measures of the code with the limits in budget.txt. The packages lab/house and
// lab/rowsway take the measures.
package budget

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// Raising is the advice for a measure that is above its budget.
const Raising = "make it smaller. Raise the budget only with a paragraph in docs/decisions.md " +
	"that names the gain"

// file has lines "name limit". A # begins a comment.
const file = "lab/budget/budget.txt"

// Budget holds the largest value that each measure may have, by the measure's name.
type Budget map[string]float64

// Read reads the budget of the clone at root.
func Read(root string) (Budget, error) {
	text, err := os.ReadFile(filepath.Join(root, file))
	if err != nil {
		return nil, err
	}
	b := Budget{}
	for i, line := range strings.Split(string(text), "\n") {
		line, _, _ = strings.Cut(line, "#")
		words := strings.Fields(line)
		if len(words) == 0 {
			continue
		}
		var limit float64
		if len(words) == 2 {
			limit, err = strconv.ParseFloat(words[1], 64)
		}
		if _, twice := b[words[0]]; len(words) != 2 || err != nil || twice {
			return nil, fmt.Errorf("%s:%d: %q: expected a measure's name and its limit, each name once", file, i+1,
				line)
		}
		b[words[0]] = limit
	}
	return b, nil
}

// Check compares a measure with its limit. Says is a remark for people, empty if the measure is at its limit.
// Ok is false if the measure is above its limit, or has none.
func (b Budget) Check(name string, is float64) (says string, ok bool) {
	limit, known := b[name]
	switch {
	case !known:
		return fmt.Sprintf("has no budget: add a line to %s", file), false
	case is > limit:
		return fmt.Sprintf("is %s above its budget of %s: %s", number(is-limit), number(limit), Raising), false
	case is < limit:
		return fmt.Sprintf("is %s below its budget of %s: lower the line in %s", number(limit-is), number(limit),
			file), true
	}
	return "", true
}

// number writes whole numbers without decimals, and others with one.
func number(n float64) string {
	return strings.TrimSuffix(strconv.FormatFloat(n, 'f', 1, 64), ".0")
}
