package rotation_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/storestream/storestream/internal/rotation"
	"github.com/storestream/storestream/internal/standins/servers"
)

// fiveOrMore is the rule of the secrets here.
func fiveOrMore(texts []string) (string, error) {
	if len(texts[0]) < 5 {
		return "", errors.New("expected 5 or more")
	}
	return texts[0], nil
}

// follow is a secret in the file at path, and what the log is told of it.
func follow(t *testing.T, path string) (rotation.Secret, *rotation.Set, *observer.ObservedLogs) {
	t.Helper()
	core, logs := observer.New(zapcore.InfoLevel)
	set := &rotation.Set{}
	set.Log = zap.New(core)
	value, err := rotation.New(set, "store.api_key", fiveOrMore, rotation.SecretFile(path))
	if err != nil {
		t.Fatal(err)
	}
	return rotation.FromValue(value), set, logs
}

// said is the lines since the last call, without a secret in any.
func said(t *testing.T, logs *observer.ObservedLogs) string {
	t.Helper()
	var lines []string
	for _, entry := range logs.TakeAll() {
		line, err := zapcore.NewJSONEncoder(zapcore.EncoderConfig{}).EncodeEntry(entry.Entry, entry.Context)
		if err != nil {
			t.Fatal(err)
		}
		lines = append(lines, entry.Level.String()+" "+entry.Message+" "+strings.TrimSpace(line.String()))
	}
	all := strings.Join(lines, "\n")
	for _, secret := range []string{"first", "second", "half"} {
		if strings.Contains(all, secret) {
			t.Errorf("a secret is in the log: %s", all)
		}
	}
	return all
}

func expectSecret(t *testing.T, s rotation.Secret, want string) {
	t.Helper()
	if got := s.Get(); got != want {
		t.Errorf("the secret is %q, expected %q", got, want)
	}
}

func TestASecretIsWhatItsFileHoldsAlsoWhereKubernetesSwapsTheFolder(t *testing.T) {
	m := servers.MountForTest(t, t.TempDir(), map[string]string{"key": "first\n"})
	secret, _, logs := follow(t, m.Path("key"))
	expectSecret(t, secret, "first")
	if lines := said(t, logs); lines != "" {
		t.Errorf("nothing has changed, and the log has %s", lines)
	}
	m.Swap(map[string]string{"key": "second\n"})
	for range 3 {
		expectSecret(t, secret, "second")
	}
	const want = `info a file has changed: what it holds is used from now on {"setting":"store.api_key"}`
	if lines := said(t, logs); lines != want {
		t.Errorf("the log has %s, expected %s", lines, want)
	}
}

// An application may write over a file that has the same size, within one tick of the file system's clock.
func TestAFileOfTheSameSizeAndTimeIsReadAllTheSame(t *testing.T) {
	path := filepath.Join(t.TempDir(), "key")
	at := time.Now().Add(-time.Hour)
	write := func(text string) {
		t.Helper()
		if err := errors.Join(os.WriteFile(path, []byte(text), 0o600), os.Chtimes(path, at, at)); err != nil {
			t.Fatal(err)
		}
	}
	write("first-1")
	secret, _, _ := follow(t, path)
	write("first-2")
	expectSecret(t, secret, "first-2")
}

func TestAFileThatCannotBeUsedLeavesTheLastGoodSecretAndIsToldOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "key")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("first")
	secret, _, logs := follow(t, path)
	for _, broken := range []struct {
		do  func()
		why string
	}{
		{func() { _ = os.Remove(path) }, "key: no such file or directory"},
		{func() { write("\n") }, "key: the file is empty"},
		{func() { write("half") }, "expected 5 or more"},
		{func() { write("        \n") }, "key: the file is empty"},
		{func() { _ = errors.Join(os.Remove(path), syscall.Mkfifo(path, 0o600)) }, "key: expected a regular file"},
		{func() { _ = os.Remove(path) }, "key: no such file or directory"},
		{func() { write("half") }, "expected 5 or more"},
		{func() { write(strings.Repeat("x", 2<<20)) }, "key: the file is larger than 1048576 bytes"},
	} {
		broken.do()
		for range 3 {
			expectSecret(t, secret, "first")
		}
		lines := said(t, logs)
		if strings.Count(lines, "\n") > 0 || !strings.HasPrefix(lines, "warn a file cannot be used") ||
			!strings.Contains(lines, broken.why) || !strings.Contains(lines, "store.api_key") {
			t.Errorf("the log has %s, expected one line that says %s", lines, broken.why)
		}
	}
	write("first")
	expectSecret(t, secret, "first")
	if lines := said(t, logs); !strings.HasPrefix(lines, "info a file can be used again") {
		t.Errorf("the log has %q, expected that it is over", lines)
	}
	write("half")
	expectSecret(t, secret, "first")
	write("second")
	expectSecret(t, secret, "second")
	if lines := said(t, logs); !strings.HasSuffix(lines, `from now on {"setting":"store.api_key"}`) {
		t.Errorf("the log has %q, expected that it has changed", lines)
	}
	if _, err := rotation.New(nil, "k", fiveOrMore, rotation.SecretFile(path+".missing")); err == nil ||
		!strings.Contains(err.Error(), "key.missing: no such file") {
		t.Errorf("%v", err)
	}
}

func TestAtASignalAllFilesAreReadAndOneLineTellsWhatHasChanged(t *testing.T) {
	path := filepath.Join(t.TempDir(), "key")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("first")
	synctest.Test(t, func(t *testing.T) {
		secret, set, logs := follow(t, path)
		signals, ended := make(chan os.Signal), make(chan struct{})
		go func() { defer close(ended); set.Follow(t.Context(), signals) }()
		for _, step := range []struct{ text, counts string }{
			{"first", `{"changed":0,"settings":[],"unusable":[]}`},
			{"second", `{"changed":1,"settings":["store.api_key"],"unusable":[]}`},
			{"half", `{"changed":0,"settings":[],"unusable":["store.api_key"]}`},
			{"half", `{"changed":0,"settings":[],"unusable":["store.api_key"]}`},
		} {
			write(step.text)
			renewed := set.Renewed()
			signals <- syscall.SIGHUP
			synctest.Wait()
			if !servers.Closed(renewed) {
				t.Errorf("with %q whoever was refused waits on", step.text)
			}
			lines := strings.Split(said(t, logs), "\n")
			last := lines[len(lines)-1]
			if !strings.HasPrefix(last, "info SIGHUP") || !strings.HasSuffix(last, step.counts) {
				t.Errorf("after %q the log has %q, expected %s", step.text, last, step.counts)
			}
		}
		expectSecret(t, secret, "second")

		// Nobody asks, and no signal comes: a new secret is found, and a broken file is told before it is needed.
		write("second")
		expectSecret(t, secret, "second")
		renewed := set.Renewed()
		time.Sleep(time.Minute) //nolint:forbidigo // of synctest's clock
		if servers.Closed(renewed) {
			t.Error("nothing has changed, and nobody waits any longer")
		}
		write("third")
		time.Sleep(time.Minute) //nolint:forbidigo // of synctest's clock
		if !servers.Closed(renewed) {
			t.Error("a minute after a file has changed whoever was refused still waits")
		}
		said(t, logs)
		write("")
		time.Sleep(2 * time.Minute) //nolint:forbidigo // of synctest's clock
		if lines := said(t, logs); strings.Count(lines, "warn a file cannot be used") != 1 {
			t.Errorf("after two minutes the log has %q, expected one warning", lines)
		}
	})
}
