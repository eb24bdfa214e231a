package producer_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/storestream/storestream/producer"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest"
)

// heldUp is what the client logs between the two steps, when it was built with that line.
const heldUp = "the partitions have their records and do not show"

// A session's first watermark, alone: the client stands still after it has handed the record to its
// partition and before it shows that partition to itself, until the record is in the broker's log and the
// commit has had time for a hundred round trips more. It must not say that it is committed when it is not.
//
// Nothing from outside can hold the client up there, so it is built with a log line at that place, and the
// test stands still in the logger.
func TestACommittedWatermarkIsThereHoweverLateTheClientShowsItsPartitions(t *testing.T) {
	switch {
	case os.Getenv("STORESTREAM_HELD_UP") != "":
	case os.Getenv("STORESTREAM_LONG") != "":
		runWithClientHeldUp(t)
		return
	default:
		t.Skip("it compiles franz-go: make test-long")
	}
	s := newStage(t)
	committed := make(chan struct{})
	var held atomic.Int32
	holdUp := func(e zapcore.Entry) error {
		if e.Message != heldUp {
			return nil
		}
		held.Add(1)
		for left := 100; left > 0; {
			ends, err := s.admin.ListEndOffsets(s.ctx(), "store.watermarks")
			if err != nil {
				return err
			}
			written := int64(0)
			for _, end := range ends.Offsets()["store.watermarks"] {
				written += end.At
			}
			select {
			case <-committed:
				return nil
			default:
			}
			if written > 0 {
				left--
			}
		}
		return nil
	}
	session := s.take(s.cluster("a", func(c *producer.Config) {
		c.Log = zaptest.NewLogger(t, zaptest.WrapOptions(zap.Hooks(holdUp)))
	}))
	s.commit(session, next(session))
	close(committed)
	if n := len(s.committed("store.watermarks")); n != 1 || held.Load() != 1 {
		t.Errorf("a commit was held up %d times, and %d watermarks are there: expected 1 and 1", held.Load(), n)
	}
}

// runWithClientHeldUp runs the test of this name with a client that logs heldUp where it can be held up.
func runWithClientHeldUp(t *testing.T) {
	t.Helper()
	try := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	output := func(args ...string) string {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), "go", args...)
		cmd.Env = append(os.Environ(), "STORESTREAM_HELD_UP=1")
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%s: %v\n%s", cmd, err, out)
		}
		return strings.TrimSpace(string(out))
	}
	const client, sum = "github.com/twmb/franz-go", "go.sum"
	dir := t.TempDir()
	module, held := filepath.Join(dir, "go.mod"), filepath.Join(dir, "franz-go")
	try(os.CopyFS(held, os.DirFS(output("list", "-m", "-f", "{{.Dir}}", client))))
	source := filepath.Join(held, "pkg", "kgo", "topics_and_partitions.go")
	text, err := os.ReadFile(source)
	try(err)
	const handed = "\t\t\tcl.doPartition(l, lv, pr)\n\t\t}\n"
	if n := strings.Count(string(text), handed); n != 1 {
		t.Fatalf("%s has %q %d times, expected 1: look at awaitPartitions again", client, handed, n)
	}
	line := "\t\tcl.cfg.logger.Log(LogLevelWarn, \"" + heldUp + "\")\n"
	try(os.WriteFile(source, []byte(strings.Replace(string(text), handed, handed+line, 1)), 0o600))

	for name, path := range map[string]string{"go.mod": module, sum: filepath.Join(dir, sum)} {
		text, err := os.ReadFile(filepath.Join("..", name))
		try(err)
		try(os.WriteFile(path, text, 0o600))
	}
	output("mod", "edit", "-replace", client+"="+held, module)
	t.Log(output("test", "-modfile", module, "-count=1", "-v", "-run", "^"+t.Name()+"$", "."))
}
