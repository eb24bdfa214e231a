package main

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"
)

// options are the command line.
type options struct {
	runs     int
	orders   int
	products int
	users    int
	day      int    // rows of the open day
	large    int    // rows of the large cases: a sweep, a first load beside a writer
	cgroup   string // folder of the control group that limits PostgreSQL in the line cold, or ""
	against  string // a version to measure beside it, or ""
	quick    bool
	big      bool
	steady   time.Duration
	kafka    bool
	pooler   bool
	only     []string
	set      map[string]string
	measured string // program that --storestream names
	profile  string
	write    string
	keep     bool
}

const usage = `bench measures storestream and prints tables. With --write FILE it also replaces the first
figures in that document. In the folder plots beside it, it writes all tables (tables.csv) and the plots.

  bin/bench                                   all lines but those of --kafka, --steady and --only matrix
  bin/bench --against v1.2.0                  with that version beside it in every round
  bin/bench --only firstload --runs 9         one of them
  bin/bench --only matrix                     first loads into Apache Kafka by compression, batch, partitions
  bin/bench --only firstload --profile /tmp/p and a CPU and a memory profile of each run
  bin/bench --quick                           small numbers and one round: only whether everything still runs
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
	f.IntVar(&o.large, "large", 10_000_000, "rows of the large cases: sweep, first load beside a writer")
	f.BoolVar(&o.big, "big", false,
		"also an open day and sweeps of five times as many rows, and the large scattered table in order")
	f.DurationVar(&o.steady, "steady", 0,
		"also follow 1,000 changes a second for so long, such as 2h (with --kafka: on Apache Kafka)")
	f.StringVar(&o.cgroup, "cgroup", "",
		"folder of a memory control group that limits PostgreSQL in the line cold, such as one of 1 GiB")
	f.StringVar(&o.against, "against", "", "commit or tag that is built and measured beside it, round by round")
	f.BoolVar(&o.kafka, "kafka", false,
		"also with Apache Kafka as the broker (needs Java; the first time Maven fetches it)")
	f.BoolVar(&o.pooler, "pooler", false, "read through PgBouncer, COPY too")
	f.StringSliceVar(&o.only, "only", nil, "measure only these: "+strings.Join(lineNames(), ", "))
	f.StringToStringVar(&o.set, "set", nil,
		"further settings, such as poll.memory=256MiB; a version that does not know one goes without")
	f.StringVar(&o.measured, "storestream", "", "measure this program instead of a fresh build")
	f.StringVar(&o.profile, "profile", "", "folder for CPU and memory profiles of the first loads")
	f.StringVar(&o.write, "write", "",
		"document whose first figures are replaced, with the tables and plots beside it")
	f.BoolVar(&o.keep, "keep", false, "keep the folder with logs and configurations")
	if err := f.Parse(args); err != nil {
		return o, err
	}
	if o.quick {
		o.runs, o.orders, o.users, o.products, o.day, o.large = 1, 50_000, 5_000, 5_000, 20_000, 50_000
	}
	if o.write != "" && (o.quick || len(o.only) > 0) {
		return o, errors.New("--write: expected no --quick or --only, as all figures are to be of one run")
	}
	names := lineNames()
	for _, name := range o.only {
		if !slices.Contains(names, name) {
			return o, fmt.Errorf("--only %s: expected one of %s", name, strings.Join(names, ", "))
		}
	}
	if o.steady < 0 || o.steady > 0 && o.steady < 4*time.Second {
		return o, fmt.Errorf("--steady %s: expected 4s or more", o.steady)
	}
	if o.runs < 1 || min(o.orders, o.users, o.products, o.day, o.large) < 1000 {
		return o, fmt.Errorf("runs %d, orders %d, users %d, products %d, day %d, large %d: "+
			"expected 1 run or more and 1000 rows or more", o.runs, o.orders, o.users, o.products, o.day, o.large)
	}
	return o, nil
}

func (o *options) wants(line string) bool { return len(o.only) == 0 || slices.Contains(o.only, line) }
