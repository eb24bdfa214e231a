package main

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/storestream/storestream/internal/standins/storefake"
)

// options are the user's settings.
type options struct {
	size        storefake.Size
	traffic     float64
	seed        uint64
	length      time.Duration // 0 runs until Ctrl-C
	noPostgres  bool
	kafka       bool
	freePorts   bool
	storestream string // "" takes the one next to this program, or builds one
	ports       ports
}

const usage = `Runs all parts on this machine: PostgreSQL behind PgBouncer, an embedded Kafka
broker and schema registry, a stand-in for the commerce data service with live
traffic, and storestream, which publishes its rows. You need Go. --kafka also
needs Java and Maven. All parts listen on 127.0.0.1 only. Ctrl-C stops them.

Usage:
  demo [flags]

Example, a busier shop for five minutes, and in another terminal its topics:
  make demo ARGS="--orders 100000 --traffic 200 --for 5m"
  kcat -b 127.0.0.1:9092 -L

A consumer of your own, against Apache Kafka:
  make demo ARGS=--kafka

Flags:
`

// usageError is wrong usage: exit status 2.
type usageError struct{ error }

// parse reads the command line. pflag.ErrHelp after --help, whose text it has printed.
func parse(args []string, stdout io.Writer) (options, error) {
	var o options
	flags := pflag.NewFlagSet("demo", pflag.ContinueOnError)
	flags.SortFlags = false
	flags.Usage = func() { _, _ = fmt.Fprint(stdout, usage, flags.FlagUsagesWrapped(80)) }
	flags.IntVar(&o.size.Orders, "orders", 25_000,
		"orders at the start, each with one to four items and a shipment")
	flags.IntVar(&o.size.Users, "users", 20_000, "users at the start")
	flags.IntVar(&o.size.Products, "products", 5_000, "products")
	flags.Float64Var(&o.traffic, "traffic", 20, "changes that the shop makes a second")
	flags.Uint64Var(&o.seed, "seed", 1, "the same seed makes the same shop")
	flags.DurationVar(&o.length, "for", 0,
		"stop after this `duration`, such as 90s or 5m (0: at Ctrl-C)")
	flags.BoolVar(&o.noPostgres, "no-postgres", false,
		"leave PostgreSQL out: orders and order items go over REST too")
	flags.BoolVar(&o.kafka, "kafka", false,
		"use Apache Kafka and the schema registry Apicurio instead of the embedded ones. "+
			"Needs Java 17, and Maven, which fetches both the first time (190 MB)")
	flags.StringVar(&o.storestream, "storestream", "",
		"the storestream `program` to run. Without it: the one next to this program, or a new build")
	o.ports.flags(flags)
	flags.BoolVar(&o.freePorts, "free-ports", false,
		"use a free port for each part without a --port flag, so that several demos run side by side")
	if err := flags.Parse(args); err != nil {
		if errors.Is(err, pflag.ErrHelp) {
			return o, err
		}
		return o, usageError{err}
	}
	return o, o.check(flags)
}

// check names everything in o that cannot be.
func (o *options) check(flags *pflag.FlagSet) error {
	var wrong []string
	if flags.NArg() > 0 {
		wrong = append(wrong, fmt.Sprintf("unexpected argument %q: expected flags only", flags.Arg(0)))
	}
	if err := o.size.Check(); err != nil {
		wrong = append(wrong, err.Error())
	}
	if o.traffic < 0 || o.traffic > 10_000 {
		wrong = append(wrong, fmt.Sprintf("--traffic %v: expected 0 to 10000 changes a second", o.traffic))
	}
	if o.length < 0 {
		wrong = append(wrong, fmt.Sprintf("--for %s: expected 0 or more", o.length))
	}
	wrong = append(wrong, o.ports.check(flags, o.freePorts)...)
	if len(wrong) > 0 {
		return usageError{errors.New(strings.Join(wrong, "; "))}
	}
	return nil
}
