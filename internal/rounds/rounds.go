// Package rounds says how often the tests try a property: each model as often as its rare defects need.
package rounds

import (
	"cmp"
	"flag"
	"os"
	"strconv"
	"testing"

	"pgregory.net/rapid"
)

// Check tries property n times, and as often again as STORESTREAM_TEST_ROUNDS says (make test-long); or as
// often as -rapid.checks says, where that is set. The test may not be a parallel one: the number is a flag of
// the process. It returns how many rounds that were, for Played.Want; 0 where -rapid.checks is set.
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

// Played counts what came about in all rounds of a model, by name. A model that plays nothing finds nothing,
// and nobody would see it.
type Played map[string]int

// Count notes that something came about, if it did.
func (p Played) Count(what string, did bool) {
	if did {
		p[what]++
	}
}

// Want fails the test unless each thing came about as often as it says, in one round on average. The rounds
// are drawn anew by each run: what it asks for is a good deal less than what comes about.
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
