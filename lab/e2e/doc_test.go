// Package e2e runs storestream as its users do: a process with a configuration file, between a stand-in of
// the service (storefake), a real PostgreSQL behind a real PgBouncer, and a broker. It judges the topics by
// what the documents promise. Only the processes know storestream's code, and the decoder is another Avro
// library than the one that writes.
//
// A test waits for states: what /status.json, /metrics and /readyz say, what the topics and the watermarks
// hold. It does not wait for the wording of log messages.
//
// By itself the package runs one scenario of each promise; E2E=all runs every one (make test-e2e), and
// E2E=further those that it does not run by itself.
// E2E_BROKER=kafka takes a real Apache Kafka instead of the embedded broker (make test-kafka). Package
// servers says how to ask for a version of it, and of PostgreSQL (make test-versions). E2E_CGROUP=required
// fails what bounds memory by a control group, and is skipped otherwise, where none can be made.
package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/storestream/storestream/lab/product"
)

var (
	// all says whether every scenario runs (E2E=all, make test-e2e), or one of each promise (make test).
	all = os.Getenv("E2E") == "all"
	// furtherOnly leaves out what make test runs.
	furtherOnly = os.Getenv("E2E") == "further"
	// further are the names of the tests that make test does not run, as far as they have begun.
	further sync.Map
)

// furtherScenario skips a test in make test. It is called before the test has a stack.
func furtherScenario(t *testing.T) {
	t.Helper()
	if !all && !furtherOnly {
		t.Skip("make test-e2e runs it: another test shows the same promise in make test")
	}
	further.Store(t.Name(), true)
}

// skipIfMakeTestRunsIt skips a test that is no further scenario where only those are asked for.
func skipIfMakeTestRunsIt(t *testing.T) {
	t.Helper()
	if !furtherOnly {
		return
	}
	for name := t.Name(); name != ""; name = name[:max(0, strings.LastIndex(name, "/"))] {
		if _, is := further.Load(name); is {
			return
		}
	}
	t.Skip("make test runs it")
}

// program is the storestream binary under test, built with the race detector where the tests are.
var program string

func TestMain(m *testing.M) {
	os.Exit(func() int {
		dir, err := os.MkdirTemp("", "storestream-e2e-*")
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer os.RemoveAll(dir)
		program = filepath.Join(dir, "storestream")
		root, err := product.Root()
		if err == nil {
			err = product.BuildForTest(context.Background(), root, program)
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		return m.Run()
	}())
}
