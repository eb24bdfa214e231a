// Command house measures how well storestream's code can be held in the head. It fails if a rule is broken or
// a size is above its budget.
//
// Five counts are to be zero. It prints the places that they count:
//
//   - types whose methods lie in four files or more, in the product, the lab and the examples;
//   - lines of Go over 110 columns, there and in tests;
//   - exported names of the product without a comment;
//   - imports against the arrows: cmd -> poller, producer, config -> internal -> schemas, none upward and
//     none sideways;
//   - cells and rows of the documents' tables that are too long to read.
//
// These sizes have a budget, in lab/budget/budget.txt:
//
//   - lines of code and types of the product;
//   - settings of the configuration, and members of one watermark's JSON;
//   - marks of hard English per 1,000 words, in comments and messages, and in documents. prose.go lists them;
//   - words of the documents.
//
// Tests and stand-ins do not count as product. With -marks it prints the place of each mark instead.
package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"strconv"

	"github.com/storestream/storestream/lab/budget"
)

func main() {
	marks := flag.Bool("marks", false, "list the marks of hard English, and nothing else")
	flag.Parse()
	root := "."
	if flag.NArg() > 0 {
		root = flag.Arg(0)
	}
	order, err := run(os.Stdout, root, *marks)
	if err != nil {
		fmt.Fprintln(os.Stderr, "house:", err)
		os.Exit(2)
	}
	if !order {
		os.Exit(1)
	}
}

// run inspects the tree at root and tells whether the house is in order.
func run(w io.Writer, root string, marks bool) (order bool, err error) {
	found, err := inspect(root)
	if err != nil {
		return false, err
	}
	if marks {
		for _, place := range append(found.code.places, found.documents.places...) {
			fmt.Fprintln(w, place)
		}
		return true, nil
	}
	limits, err := budget.Read(root)
	if err != nil {
		return false, err
	}
	zeros := found.printRules(w)
	return found.printSizes(w, limits) && zeros, nil
}

// printRules prints each place that breaks a rule, and tells whether there is none.
func (h *house) printRules(w io.Writer) bool {
	order := true
	for _, rule := range []struct {
		name  string
		found []string
	}{
		{"types with methods in four files or more", h.scattered()},
		{"lines over 110 columns", h.long},
		{"exported names without a comment", h.bare},
		{"imports against the arrows", h.against},
		{"cells of tables over 20 words, or rows over 200 characters", h.documents.tables},
	} {
		fmt.Fprintf(w, "%6d  %s\n", len(rule.found), rule.name)
		for _, place := range rule.found {
			fmt.Fprintf(w, "        %s\n", place)
		}
		order = order && len(rule.found) == 0
	}
	return order
}

// printSizes prints every size, and tells whether each is within its budget.
func (h *house) printSizes(w io.Writer, limits budget.Budget) bool {
	order := true
	for _, size := range []struct {
		name, what string
		is         float64
	}{
		{"lines", "lines of the product's code, comments and blank lines not counted", float64(h.product.lines)},
		{"types", "types of the product", float64(h.product.types)},
		{"keys", "settings of the configuration, those of a resource once", float64(h.keys)},
		{"members", "members of one watermark's JSON", float64(h.members)},
		{"code-marks", "marks of hard English per 1,000 words, in comments and messages", h.code.perThousand()},
		{"document-marks", "the same in documents", h.documents.perThousand()},
		{"document-words", "words of README and docs, code not counted", float64(h.documents.words)},
	} {
		fmt.Fprintf(w, "%6s  %s\n", strconv.FormatFloat(size.is, 'f', -1, 64), size.what)
		says, ok := limits.Check(size.name, size.is)
		if says != "" {
			fmt.Fprintf(w, "        %s %s\n", size.name, says)
		}
		order = order && ok
	}
	fmt.Fprintf(w, "the product: %s, %d direct dependencies\n", &h.product, h.dependencies)
	fmt.Fprintf(w, "stand-ins: %s\n", &h.standIns)
	return order
}
