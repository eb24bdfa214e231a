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
// the process.
func Check(t *testing.T, n int, property func(*rapid.T)) {
	t.Helper()
	times, err := strconv.Atoi(cmp.Or(os.Getenv("STORESTREAM_TEST_ROUNDS"), "1"))
	if err != nil || times < 1 {
		t.Fatalf("STORESTREAM_TEST_ROUNDS is %q: expected a number of 1 or more",
			os.Getenv("STORESTREAM_TEST_ROUNDS"))
	}
	checks := flag.Lookup("rapid.checks")
	if was := checks.Value.String(); was == checks.DefValue {
		if err := checks.Value.Set(strconv.Itoa(n * times)); err != nil {
			t.Fatal(err)
		}
		defer func() { _ = checks.Value.Set(was) }() // it was set to that before
	}
	rapid.Check(t, property)
}
