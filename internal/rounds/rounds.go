// Package rounds runs property tests, each model for as many rounds as its rare defects need.
package rounds

import (
	"cmp"
	"flag"
	"os"
	"strconv"
	"testing"

	"pgregory.net/rapid"
)

// Check tries property n times STORESTREAM_TEST_ROUNDS (make test-long), or -rapid.checks times if that flag
// is set. The test must not be parallel, because the number is a flag of the process. Check returns the
// number of rounds for Played.Want, or 0 if -rapid.checks is set.
func Check(t *testing.T, n int, property func(*rapid.T)) (played int) {
	t.Helper()
	times, err := strconv.Atoi(cmp.Or(os.Getenv("STORESTREAM_TEST_ROUNDS"), "1"))
	if err != nil || times < 1 {
		t.Fatalf("STORESTREAM_TEST_ROUNDS is %q: expected a number of 1 or more",
			os.Getenv("STORESTREAM_TEST_ROUNDS"))
	}
	checks := flag.Lookup("rapid.checks")
	if was := checks.Value.String(); was == checks.DefValue {
		played = n * times
		if err := checks.Value.Set(strconv.Itoa(n * times)); err != nil {
			t.Fatal(err)
		}
		defer func() { _ = checks.Value.Set(was) }() // it was set to that before
	}
	rapid.Check(t, property)
	return played
}

// Played counts the events in all rounds of a model, by name. A model in which little happens finds no
// defect, and its test passes all the same.
type Played map[string]int

// Count counts the event if it happened.
func (p Played) Count(what string, did bool) {
	if did {
		p[what]++
	}
}

// Want fails the test unless each event happened as often as perRound says, on average. Each run draws other
// rounds, so tests ask for far fewer events than usually happen.
func (p Played) Want(t *testing.T, n int, perRound map[string]float64) {
	t.Helper()
	for what, least := range perRound {
		if got := p[what]; float64(got) < least*float64(n) {
			t.Errorf("%s: %d times in %d rounds, expected %.0f at least: the model hardly plays it",
				what, got, n, least*float64(n))
		}
	}
	t.Logf("%d rounds played %v", n, map[string]int(p))
}
