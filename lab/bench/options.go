package main

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/pflag"
)

// options are the command line.
type options struct {
	runs     int
	orders   int
	products int
	users    int
	day      int // rows of the open day
	quick    bool
	big      bool
	kafka    bool
	pooler   bool
	only     []string
	measured string // program that --storestream names
	profile  string
	write    string
	keep     bool
}

const usage = `bench measures storestream and prints a table; with --write FILE it also replaces the table in
that document.

  bin/bench                                   all lines but those of --kafka and --big
  bin/bench --only firstload --runs 9         one of them
  bin/bench --only firstload --profile /tmp/p and a CPU and a memory profile of each run
  bin/bench --quick                           small tables and one round: only whether everything still runs
  bin/bench check --against main              hot paths against another commit, in one interleaved run

Flags:
`

func parse(args []string, stdout io.Writer) (options, error) {
	var o options
	f := pflag.NewFlagSet("bench", pflag.ContinueOnError)
	f.SortFlags = false
	f.SetOutput(stdout)
	f.Usage = func() { fmt.Fprint(stdout, usage, f.FlagUsages()) }
	f.IntVar(&o.runs, "runs", 5, "rounds; each figure is their median")
	f.IntVar(&o.orders, "orders", 2_000_000, "orders of the shop, with half as many items again")
	f.IntVar(&o.users, "users", 200_000, "users of the shop")
	f.IntVar(&o.products, "products", 200_000, "products of the shop")
	f.IntVar(&o.day, "day", 1_000_000, "rows of the open day that is polled")
	f.BoolVar(&o.quick, "quick", false, "small tables and one round")
	f.BoolVar(&o.big, "big", false, "also a first load of 10 million rows, and idle polls beside them")
	f.BoolVar(&o.kafka, "kafka", false,
		"also with Apache Kafka as the broker (needs Java; the first time Maven fetches it)")
	f.BoolVar(&o.pooler, "pooler", false, "read through PgBouncer, COPY too")
	f.StringSliceVar(&o.only, "only", nil, "measure only these: "+strings.Join(lineNames(), ", "))
	f.StringVar(&o.measured, "storestream", "", "measure this program instead of a fresh build")
	f.StringVar(&o.profile, "profile", "", "folder for CPU and memory profiles of the first loads")
	f.StringVar(&o.write, "write", "", "document whose table is replaced")
	f.BoolVar(&o.keep, "keep", false, "keep the folder with logs and configurations")
	if err := f.Parse(args); err != nil {
		return o, err
	}
	if o.quick {
		o.runs, o.orders, o.users, o.products, o.day = 1, 50_000, 5_000, 5_000, 20_000
	}
	names := lineNames()
	for _, name := range o.only {
		if !slices.Contains(names, name) {
			return o, fmt.Errorf("--only %s: expected one of %s", name, strings.Join(names, ", "))
		}
	}
	if o.runs < 1 || o.orders < 1000 || o.users < 1000 || o.products < 1000 || o.day < 1000 {
		return o, fmt.Errorf("runs %d, orders %d, users %d, products %d, day %d: "+
			"expected 1 run or more and 1000 rows or more", o.runs, o.orders, o.users, o.products, o.day)
	}
	return o, nil
}

func (o *options) wants(line string) bool { return len(o.only) == 0 || slices.Contains(o.only, line) }
