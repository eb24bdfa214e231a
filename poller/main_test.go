package poller

import (
	"cmp"
	"flag"
	"os"
	"strconv"
	"testing"

	"pgregory.net/rapid"
)

// The rarest defects that the model found took some thousand runs; rapid's default is a hundred.
func TestMain(m *testing.M) {
	flag.Parse()
	chosen := false
	flag.Visit(func(f *flag.Flag) { chosen = chosen || f.Name == "rapid.checks" })
	if !chosen {
		if err := flag.Set("rapid.checks", "2000"); err != nil {
			panic(err)
		}
	}
	os.Exit(m.Run())
}

// checkLong checks a property of which one run takes as long as several of the others: so it has fewer, and
// the rest of them in make test-long, where STORESTREAM_TEST_ROUNDS multiplies them.
func checkLong(t *testing.T, property func(*rapid.T)) {
	t.Helper()
	checks := flag.Lookup("rapid.checks").Value
	all := checks.String()
	n, err := strconv.Atoi(all)
	if err != nil {
		t.Fatal(err)
	}
	rounds, err := strconv.Atoi(cmp.Or(os.Getenv("STORESTREAM_TEST_ROUNDS"), "1"))
	if err != nil {
		t.Fatal(err)
	}
	if err := checks.Set(strconv.Itoa(max(n*rounds/6, 1))); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = checks.Set(all) }() // it was set to that before
	rapid.Check(t, property)
}
