//go:build consumers

package consumers

import (
	"context"
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// installed returns the folder in .cache that has what an example needs: the files of folder that are named,
// and what the commands make of them there. It is made once for each state of the files.
func installed(t *testing.T, folder string, files []string, commands ...[]string) string {
	t.Helper()
	hash := sha256.New()
	for _, file := range files {
		text, err := os.ReadFile(filepath.Join(folder, file))
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(hash, "%s %d\n%s", file, len(text), text)
	}
	fmt.Fprint(hash, commands)
	name := fmt.Sprintf("%s-%x", filepath.Base(folder), hash.Sum(nil)[:6])
	dir := filepath.Join(root, ".cache", "consumers", name)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	lock, err := os.Create(filepath.Join(dir, "lock"))
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Close() // which unlocks it
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	complete := filepath.Join(dir, "complete")
	if _, err := os.Stat(complete); err == nil {
		return dir
	}
	for _, file := range files {
		copyFile(t, filepath.Join(folder, file), filepath.Join(dir, file), nil)
	}
	for _, command := range commands {
		do(t, dir, command...)
	}
	if err := os.WriteFile(complete, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	return dir
}

// do runs a command of other people, which may fetch what it needs, to its end.
func do(t *testing.T, dir string, command ...string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", strings.Join(command, " "), err, tail(string(out), 40))
	}
}

// copyFile copies a file, with the texts on the left replaced by those on the right.
func copyFile(t *testing.T, from, to string, replace *strings.Replacer) {
	t.Helper()
	text, err := os.ReadFile(from)
	if err != nil {
		t.Fatal(err)
	}
	if replace != nil {
		text = []byte(replace.Replace(string(text)))
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(to, text, 0o644); err != nil {
		t.Fatal(err)
	}
}
