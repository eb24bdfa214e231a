// Command house measures how well storestream's code can be held in the head. It prints four counts that are
// to be zero, with what it found, and fails where one is not:
//
//   - types whose methods lie in four files or more, in the product, the lab and the examples;
//   - lines of Go over 110 columns, there and in tests;
//   - exported names of the product without a comment;
//   - imports against the arrows: cmd -> poller, producer, config -> internal -> schemas, none upward and
//     none sideways.
//
// It prints the sizes that go with them as well: lines, files, packages, types and direct dependencies.
package main

import (
	"fmt"
	"io"
	"os"
)

func main() {
	root := "."
	if len(os.Args) > 1 {
		root = os.Args[1]
	}
	found, err := inspect(root)
	if err != nil {
		fmt.Fprintln(os.Stderr, "house:", err)
		os.Exit(2)
	}
	if !found.print(os.Stdout) {
		os.Exit(1)
	}
}

// print says what was found, and whether the house is in order.
func (h *house) print(w io.Writer) bool {
	fmt.Fprintf(w, "product: %s, %d direct dependencies\n", &h.product, h.dependencies)
	fmt.Fprintf(w, "stand-ins: %s\n", &h.standIns)
	order := true
	for _, rule := range []struct {
		name  string
		found []string
	}{
		{"types with methods in four files or more", h.scattered()},
		{"lines over 110 columns", h.long},
		{"exported names without a comment", h.bare},
		{"imports against the arrows", h.against},
	} {
		fmt.Fprintf(w, "%5d  %s\n", len(rule.found), rule.name)
		for _, place := range rule.found {
			fmt.Fprintf(w, "       %s\n", place)
		}
		order = order && len(rule.found) == 0
	}
	return order
}
