package e2e

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"github.com/storestream/storestream/lab/product"
)

// releasedCommit is that of the release before this one. E2E_RELEASED names another. E2E_HISTORY=required
// fails the test if this clone does not have it. A commit that writes watermarks of another form
// (watermark.Version), or shares the resources out in another way (producer/sharing.go), cannot share a group
// with this one: move this to the commit that changes either.
var releasedCommit = cmp.Or(os.Getenv("E2E_RELEASED"), "fcc31d9")

var errNoHistory = errors.New("this clone does not have it")

// releasedProgram builds storestream as it was at releasedCommit, once. The error is
// errNoHistory where this clone has not got the commit.
var releasedProgram = sync.OnceValues(func() (path string, err error) {
	dir, err := os.MkdirTemp(filepath.Dir(program), "released-*") // which TestMain removes
	if err != nil {
		return "", err
	}
	root, err := product.Root()
	if err != nil {
		return "", err
	}
	if err := exec.Command("git", "-C", root, "cat-file", "-e", releasedCommit+"^{commit}").Run(); err != nil {
		return "", fmt.Errorf("commit %s: %w", releasedCommit, errNoHistory)
	}
	tree := exec.Command("sh", "-c", `git -C "$1" archive "$2" | tar -x -C "$3"`, "sh", root, releasedCommit,
		dir)
	if out, err := tree.CombinedOutput(); err != nil {
		return "", fmt.Errorf("take the sources of %s: %w\n%s", releasedCommit, err, out)
	}
	path = filepath.Join(dir, "storestream")
	return path, product.BuildForTest(context.Background(), dir, path)
})

// Three instances of the release before share a group. They are replaced one after the other by this release,
// and then by the one before again, while the shop trades and whoever has a resource publishes it. Nothing is
// lost, stale or there twice, and each build's commands read what the other left.
func TestTwoReleasesSideBySideLoseAndRepeatNothingEitherWay(t *testing.T) {
	t.Parallel()
	realServers(t)
	before, err := releasedProgram()
	switch {
	case errors.Is(err, errNoHistory) && os.Getenv("E2E_HISTORY") != "required":
		t.Skipf("%v: it is shallow, or a copy without its history", err)
	case errors.Is(err, errNoHistory):
		t.Fatalf("%v: fetch it (git fetch --unshallow), or leave this test out (make test-upgrade HISTORY=)", err)
	case err != nil:
		t.Fatal(err)
	}
	s := start(t, setup{apicurio: true, fake: smallShop(63), yaml: quick})
	s.fake.StartTraffic(40)
	running := []*process{s.spawnOf(before, "run"), s.spawnOf(before, "run"), s.spawnOf(before, "run")}
	share(running...)
	for _, p := range running {
		p.isReady()
	}
	s.roll(running, program)
	s.roll(running, before)
	s.eventuallySays("Everything is up to date", "watermark", "list") // a pass may take a while at first
	for round, build := range []string{program, before, program} {    // and not in good order
		running[round].kill()
		running[round] = s.spawnOf(build, "run")
		share(running...)
		s.changes(100)
	}
	s.quiet()
	s.expect(0, []string{"Identical"}, "verify")
	if out, err := exec.Command(before, "verify", "--config", s.config).CombinedOutput(); err != nil {
		t.Errorf("the release before finds differences: %v\n%s", err, out)
	}
}
