// Package product builds the programs of storestream, as they stand in this clone, for the experiments of the
// lab.
package product

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
)

const module = "github.com/storestream/storestream"

// root is the folder of storestream's own module. The go command knows it, in the lab's module and in
// storestream's.
var root = sync.OnceValues(func() (string, error) {
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", module).Output()
	dir := strings.TrimSpace(string(out))
	if err != nil || dir == "" {
		return "", fmt.Errorf("expected to be in a clone of storestream, with Go installed: go list -m %s: %w",
			module, err)
	}
	return dir, nil
})

// Root is the folder of storestream's own module.
func Root() (string, error) { return root() }

// BuildForTest compiles cmd/storestream of the sources in dir to the file path. It uses the race detector if
// this process does, so that packages that go test has compiled serve again.
func BuildForTest(ctx context.Context, dir, path string) error {
	info, _ := debug.ReadBuildInfo()
	if slices.Contains(info.Settings, debug.BuildSetting{Key: "-race", Value: "true"}) {
		return BuildIn(ctx, dir, path, []string{"CGO_ENABLED=1"}, "-race")
	}
	return BuildIn(ctx, dir, path, nil)
}

// Build compiles cmd/storestream of this clone to the file path, as BuildIn does.
func Build(ctx context.Context, path string, environ []string, flags ...string) error {
	dir, err := Root()
	if err != nil {
		return err
	}
	return BuildIn(ctx, dir, path, environ, flags...)
}

// BuildIn compiles cmd/storestream of the sources in dir to the file path, with the given flags of go build
// and variables such as CGO_ENABLED=1.
//
// It builds in storestream's own module, so that the program has the dependencies of a release. In the lab's
// module it would have those that the lab has raised.
func BuildIn(ctx context.Context, dir, path string, environ []string, flags ...string) error {
	args := append(append([]string{"build"}, flags...), "-o", path, "./cmd/storestream")
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), environ...)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("go %s: %w\n%s", strings.Join(args, " "), err, out)
	}
	return nil
}
