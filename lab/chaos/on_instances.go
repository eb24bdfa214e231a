package main

import (
	"context"
	"syscall"
	"time"
)

// What happens to storestream itself.
var instanceKinds = []*kind{
	{name: "kill -9", weight: 5, hits: oneInstance, least: 0, most: 10 * time.Second,
		do: func(_ context.Context, s *stage, e event) (func() error, error) {
			i := s.fleet.instances[e.instance]
			return i.start, i.kill()
		}},
	{name: "kill -9 of all instances", weight: 1, hits: everyInstance, least: 0, most: 5 * time.Second,
		do: func(_ context.Context, s *stage, _ event) (func() error, error) {
			return s.fleet.start, s.fleet.kill()
		}},
	{name: "SIGTERM", weight: 2, hits: oneInstance, least: 0, most: 8 * time.Second,
		do: func(_ context.Context, s *stage, e event) (func() error, error) {
			i := s.fleet.instances[e.instance]
			i.terminate()
			return i.start, nil
		}},
	// Longer than the session: its resources are handed on while it sleeps, and it wakes up in the middle of
	// its work.
	{name: "SIGSTOP", weight: 4, hits: oneInstance, least: 8 * time.Second, most: 20 * time.Second, do: freeze},
	{name: "short SIGSTOP", weight: 1, hits: oneInstance, least: time.Second, most: 4 * time.Second, do: freeze},
}

func freeze(_ context.Context, s *stage, e event) (func() error, error) {
	i := s.fleet.instances[e.instance]
	return func() error { return i.signal(syscall.SIGCONT) }, i.signal(syscall.SIGSTOP)
}
