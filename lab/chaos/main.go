package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"github.com/spf13/pflag"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal kills
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

const (
	exitDone   = 0
	exitFailed = 1
	exitUsage  = 2
)

const usage = `Runs storestream while everything around it fails, then compares its topics with the service.
Exit status 1 if a row is lost, stale, twice, stepped back or deleted by mistake.

Usage:
  chaos [flags]

Example, a run again whose seed was printed:
  make chaos SEED=17 FOR=5m

Flags:
`

// options is the command line.
type options struct {
	terms
	planOnly, keep bool
	race           string
}

// run carries out args and returns the exit status.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	o, err := parse(args, stdout)
	if errors.Is(err, pflag.ErrHelp) {
		return exitDone
	}
	if err != nil {
		_, _ = fmt.Fprintf(stderr, "chaos: %v (see --help)\n", err) // if stderr fails, only the exit status is left
		return exitUsage
	}
	p := newPlan(o.terms)
	if o.planOnly {
		p.write(stdout)
		return exitDone
	}
	p.writeTerms(stdout)
	if err := rehearse(ctx, p, o, stdout); err != nil {
		_, _ = fmt.Fprintf(stderr, "chaos: seed %d: %v\n", p.seed, err)
		return exitFailed
	}
	return exitDone
}

func parse(args []string, stdout io.Writer) (options, error) {
	var o options
	flags := pflag.NewFlagSet("chaos", pflag.ContinueOnError)
	flags.SortFlags = false
	flags.Usage = func() { _, _ = fmt.Fprint(stdout, usage, flags.FlagUsages()) }
	flags.Uint64Var(&o.seed, "seed", 0, "decides the plan (0 draws one and prints it)")
	flags.DurationVar(&o.length, "for", 5*time.Minute, "how long mishaps go on")
	flags.StringVar(&o.broker, "broker", apacheKafka,
		"kafka: an Apache Kafka; embedded: one without Java, which is not restarted")
	flags.StringVar(&o.source, "source", "",
		"where orders and items are read from: database, or rest, where days end during the run "+
			"(default: the seed chooses)")
	flags.StringVar(&o.registry, "registry", "", "embedded, or apicurio (default: the seed chooses)")
	flags.BoolVar(&o.planOnly, "plan", false, "print the plan and exit")
	flags.BoolVar(&o.keep, "keep", false, "keep the run's folder also when all went well")
	flags.StringVar(&o.only, "only", "",
		"only mishaps whose names hold this `text`, or one of several parted by commas, to look into these kinds; "+
			"it makes another plan of the same seed")
	flags.StringVar(&o.race, "race", string(raceOne),
		"which instances are built with the race detector: all, one, none; with all, takeovers are slow after "+
			"some minutes")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	if o.seed == 0 {
		o.seed = 1 + rand.Uint64N(1_000_000)
	}
	for _, c := range []struct {
		flag, value string
		allowed     []string
	}{
		{"broker", o.broker, []string{apacheKafka, embedded}},
		{"source", o.source, []string{"", fromDatabase, fromREST}},
		{"registry", o.registry, []string{"", embedded, apicurio}},
		{"race", o.race, []string{string(raceAll), string(raceOne), string(raceNone)}},
	} {
		if !slices.Contains(c.allowed, c.value) {
			return o, fmt.Errorf("--%s %q: expected one of %q", c.flag, c.value, c.allowed)
		}
	}
	if flags.NArg() > 0 {
		return o, fmt.Errorf("unexpected argument %q", flags.Arg(0))
	}
	return o, nil
}

// rehearse sets the stage, plays the plan and prints the result. The folder of a run that failed is kept and
// named.
func rehearse(ctx context.Context, p plan, o options, stdout io.Writer) error {
	dir, err := os.MkdirTemp("", fmt.Sprintf("storestream-chaos-%d-", p.seed))
	if err != nil {
		return err
	}
	if err := os.Chmod(dir, 0o755); err != nil { // PostgreSQL may have to run as another user
		return err
	}
	log, err := os.Create(filepath.Join(dir, "chaos.log"))
	if err != nil {
		return err
	}
	defer log.Close()
	out := io.MultiWriter(stdout, log)
	p.write(log)
	err = perform(ctx, &p, dir, raceMode(o.race), out)
	if err != nil || o.keep {
		fmt.Fprintf(out, "\nlogs, topics and plan: %s\n", dir)
		return err
	}
	return os.RemoveAll(dir)
}

// perform sets the stage, plays the plan, and takes the stage down. Result and verdict go to out.
func perform(ctx context.Context, p *plan, dir string, race raceMode, out io.Writer) (err error) {
	s, err := newStage(ctx, p, dir, race, out)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.stop()) }()
	r, err := play(ctx, s)
	if err != nil {
		return err
	}
	r.write(out)
	if !r.ok() {
		return errors.Join(errJudged, s.tail.dump(dir))
	}
	return nil
}
