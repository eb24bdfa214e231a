package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/storestream/storestream/internal/standins/storefake"
	"github.com/storestream/storestream/internal/wait"
)

// turn is something that happens to the service at a time since its start.
type turn struct {
	at   time.Duration
	text string
	do   func(context.Context, *storefake.Fake) error
}

// schedule lists the events that the command line sets for the run.
type schedule struct {
	from, until time.Duration // since the start; until 0 means to the end
	steps       map[string]string
	restores    map[string]string
}

// turns are all that is to happen, the earliest first. played are the readings and faults of the command
// line.
func (s *schedule) turns(played storefake.Config) ([]turn, error) {
	var all []turn
	var errs []error
	if s.from < 0 || s.until < 0 || s.until > 0 && s.until <= s.from {
		errs = append(errs, fmt.Errorf("from %s, until %s: expected times since the start, the later one last",
			s.from, s.until))
	}
	if s.from > 0 {
		all = append(all, turn{s.from, "readings and faults hold", behave(played.Readings, played.Faults)})
	}
	if s.until > 0 {
		all = append(all, turn{s.until, "the plainest service again",
			behave(plain(played.Readings), storefake.Faults{})})
	}
	for at, by := range s.steps {
		when, err := time.ParseDuration(at)
		d, stepErr := time.ParseDuration(by)
		if err != nil || stepErr != nil || when < 0 {
			errs = append(errs, fmt.Errorf("clock-step %s=%s: expected a time since the start, and by how much, "+
				"such as 30s=-5m", at, by))
		}
		all = append(all, turn{when, fmt.Sprintf("clock steps by %s", d),
			func(ctx context.Context, f *storefake.Fake) error { return f.StepClock(ctx, d) }})
	}
	for at, of := range s.restores {
		when, err := time.ParseDuration(at)
		then, backupErr := time.ParseDuration(of)
		if err != nil || backupErr != nil || then < 0 || when <= then {
			errs = append(errs, fmt.Errorf("restore %s=%s: expected when, and then the time of the backup, both "+
				"since the start, such as 3m=1m", at, of))
		}
		all = append(all, restoring(when, then)...)
	}
	slices.SortStableFunc(all, func(a, b turn) int { return cmp.Compare(a.at, b.at) })
	return all, errors.Join(errs...)
}

// plain are the plainest readings, but for those that history was made with.
func plain(r storefake.Readings) storefake.Readings {
	return storefake.Readings{Nulls: r.Nulls, NewStatuses: r.NewStatuses}
}

func behave(r storefake.Readings, faults storefake.Faults) func(context.Context, *storefake.Fake) error {
	return func(ctx context.Context, f *storefake.Fake) error {
		return errors.Join(f.SetReadings(func(to *storefake.Readings) { *to = r }),
			f.SetFaults(func(to *storefake.Faults) { *to = faults }), f.RenameColumns(ctx, r.Without))
	}
}

// restoring is a backup and its restore.
func restoring(when, then time.Duration) []turn {
	var b *storefake.Backup
	return []turn{
		{then, "backup", func(ctx context.Context, f *storefake.Fake) (err error) {
			b, err = f.Backup(ctx)
			return err
		}},
		{when, fmt.Sprintf("restored, with the rows of %s after the start", then),
			func(ctx context.Context, f *storefake.Fake) error {
				if b == nil {
					return errors.New("there is no backup")
				}
				_, err := f.Restore(ctx, b)
				return err
			}},
	}
}

// play makes the turns happen until ctx is done, and prints each with its time.
func play(ctx context.Context, turns []turn, fake *storefake.Fake, stdout io.Writer) {
	began := time.Now()
	for _, t := range turns {
		if wait.For(ctx, time.Until(began.Add(t.at))) != nil {
			return
		}
		if err := t.do(ctx, fake); err != nil {
			fmt.Fprintf(stdout, "%-13s%s: %v\n", t.at, t.text, err)
			continue
		}
		fmt.Fprintf(stdout, "%-13s%s\n", t.at, t.text)
	}
}
