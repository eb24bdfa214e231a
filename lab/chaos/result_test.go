package main

import (
	"strings"
	"testing"
	"time"
)

func TestTheResultSaysWhichKindsWereNotPlayedAndWhy(t *testing.T) {
	p := newPlan(terms{seed: 1, length: 10 * time.Minute, broker: embedded, source: fromREST,
		only: "SIGTERM,kill -9"})
	r := result{plan: &p, probes: newProbes(nil, nil, nil)}
	for i, e := range p.events {
		s := struck{event: e, began: time.Unix(int64(i), 0)}
		if e.kind.name == "kill -9 in a sweep of" {
			s.not = "no sweep of users began"
		}
		r.struck = append(r.struck, s)
	}
	var out strings.Builder
	r.writeNotPlayed(&out)
	for _, want := range []string{
		"mishaps of 3 kinds out of ",
		"never kill -9 in a sweep of: it never came about; the last time: no sweep of users began\n",
		"never Kafka killed: it needs --broker=kafka\n",
		"never clock set: it needs orders and items from the database\n",
		"never SIGSTOP: --only leaves it out\n",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is missing from\n%s", want, &out)
		}
	}
	for _, played := range []string{"never SIGTERM", "never kill -9:", "never kill -9 of all"} {
		if strings.Contains(out.String(), played) {
			t.Errorf("%q, but it was played:\n%s", played, &out)
		}
	}
}
