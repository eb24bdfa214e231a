package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
)

// measure measures the lines that were asked for and prints the tables. With --write it writes the first
// figures into their document, and all tables and plots beside it. If a line fails, the others still run.
func measure(ctx context.Context, o options, stdout io.Writer) (err error) {
	if o.write != "" { // better now than at the end
		text, err := os.ReadFile(o.write)
		if err == nil {
			_, err = place(string(text), new(table).parts(""))
		}
		if err != nil {
			return err
		}
	}
	around, err := lookAround(ctx)
	if err != nil {
		return err
	}
	s, err := open(ctx, o, stdout)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	t, p := &table{}, newPlots()
	for _, program := range s.programs {
		t.programs = append(t.programs, program.name)
	}
	var failed []error
	for _, l := range lines() {
		if o.wants(l.name) {
			failed = append(failed, s.rounds(ctx, l, t, p))
		}
	}
	parts := t.parts(around.describe(s))
	fmt.Fprintf(stdout, "\n%s\n", parts["head"])
	for _, of := range sections {
		if text := t.tables(of); text != "" {
			fmt.Fprintf(stdout, "**%s**\n\n%s\n", of, text)
		}
	}
	if o.write != "" && ctx.Err() == nil { // the head of the report names the lines that failed
		folder := filepath.Join(filepath.Dir(o.write), "plots")
		text, err := t.csv()
		failed = append(failed, err, replace(o.write, parts), p.write(folder),
			os.WriteFile(filepath.Join(folder, "tables.csv"), []byte(text), 0o644))
	}
	return errors.Join(append(failed, context.Cause(ctx))...)
}

// rounds measures a line with one program after the other, round by round, each time in the other order. A
// program that has failed is not tried again. A failure of the older version is reported and is not an error.
func (s *stage) rounds(ctx context.Context, l line, t *table, p *plots) error {
	failed := map[string]error{}
	programs := slices.Clone(s.programs)
	for number := range min(s.runs, l.most) {
		for _, program := range programs {
			if failed[program.name] != nil || ctx.Err() != nil {
				continue
			}
			r := &round{stage: s, program: program, section: l.section, number: number, table: t, plots: p}
			if err := l.measure(ctx, r); err != nil {
				failed[program.name] = err
				r.note("%s: %v", l.name, err)
				s.failures = append(s.failures, fmt.Sprintf("%s of %s in round %d", l.name, program.name, number+1))
			}
		}
		slices.Reverse(programs)
	}
	if err := failed[nameNow]; err != nil {
		return fmt.Errorf("%s: %w", l.name, err)
	}
	return nil
}
