package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
)

// part is one way in which cost grows.
type part struct {
	name    string
	measure func(context.Context, *stage, *figures) error
}

func parts() []part {
	return []part{
		{"rows", growingRows},
		{"days", growingDays},
		{"changes", growingChanges},
		{"takeover", growingTakeover},
		{"fleet", growingFleet},
	}
}

func partNames() []string {
	var names []string
	for _, p := range parts() {
		names = append(names, p.name)
	}
	return names
}

// grow measures how cost grows, keeps the figures in a folder and draws them there. A part that fails does not take the others with it: its older figures stay.
func grow(ctx context.Context, o options, stdout io.Writer) (err error) {
	s, err := open(ctx, o, stdout)
	if s != nil {
		defer func() { err = errors.Join(err, s.close()) }()
	}
	if err != nil {
		return err
	}
	revision, err := exec.CommandContext(ctx, "git", "describe", "--always", "--dirty").Output()
	if err != nil {
		revision = []byte("unknown")
	}
	var failed []error
	for _, p := range parts() {
		if !o.wants(p.name) || ctx.Err() != nil {
			continue
		}
		f := &figures{version: strings.TrimSpace(string(revision)), broker: "embedded"}
		if o.kafka {
			f.broker = "Apache Kafka"
		}
		if err := p.measure(ctx, s, f); err != nil {
			failed = append(failed, fmt.Errorf("%s: %w", p.name, err))
			s.say("%s: %v", p.name, err)
			continue
		}
		if err := f.keep(o.plots); err != nil {
			return err
		}
	}
	return errors.Join(append(failed, drawAll(o.plots))...)
}

// someBroker is a new, empty broker: Apache Kafka where that was asked for.
func (s *stage) someBroker(ctx context.Context) (*broker, error) {
	if s.kafka {
		return s.apache(ctx)
	}
	return s.embedded(ctx)
}

// warmBroker is a new broker that has been written to: the first to write to an Apache Kafka waits seconds for it.
func (s *stage) warmBroker(ctx context.Context) (*broker, error) {
	dsn, _, err := s.tableOf(ctx, 1000)
	if err != nil {
		return nil, err
	}
	b, err := s.someBroker(ctx)
	if err != nil {
		return nil, err
	}
	if _, err := s.firstLoad(ctx, b, "orders", setting{dsn: dsn, prefix: "warm.", group: "warm"}); err != nil {
		return nil, errors.Join(err, b.stop())
	}
	return b, nil
}
