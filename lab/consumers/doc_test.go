//go:build consumers

// Package consumers runs the programs and configurations of examples/, with which other people's clients read
// storestream's topics, and compares the tables that they keep with the service: every field of every row of
// all five resources.
//
//	storefake -- PostgreSQL, PgBouncer -- storestream -- broker, registry -- an example -- its table
//	    |                                                                                     |
//	    +------------------------------- differences (compare_test.go) -----------------------+
//
// Meanwhile rows change and are deleted, sweeps write tombstones, a foreign transaction of wrong rows is
// aborted, and storestream and the examples are killed and come back.
//
// It has a build tag of its own, consumers, because the examples need Python, Node, a JDK and Maven, and what
// these fetch: make test-consumers. CONSUMERS="python connect" in the environment runs only some.
package consumers

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/storestream/storestream/lab/product"
)

// patience is how long a test waits for what must happen. It judges nothing. An example that was killed is
// waited for by its group, by Kafka's default for 45 s, and several may start at once on a small machine.
const patience = 5 * time.Minute

// program is the storestream binary under test, and root the folder of the clone.
var program, root string

func TestMain(m *testing.M) {
	os.Exit(func() int {
		dir, err := os.MkdirTemp("", "storestream-consumers-*")
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer os.RemoveAll(dir)
		program = filepath.Join(dir, "storestream")
		if err := product.Build(context.Background(), program, []string{"CGO_ENABLED=0"}); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		if root, err = product.Root(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		return m.Run()
	}())
}

// eventually tries until ok says true. It gives up on a try that began after patience was over.
func eventually(t *testing.T, what string, ok func() (bool, string)) {
	t.Helper()
	deadline := time.Now().Add(patience)
	ticker := time.NewTicker(500 * time.Millisecond)
	defer ticker.Stop()
	for {
		last := time.Now().After(deadline)
		done, state := ok()
		if done {
			return
		}
		if last {
			t.Fatalf("%s: not within %s: %s", what, patience, state)
		}
		<-ticker.C
	}
}
