package main

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// release is set by the linker: -X main.release=v1.2.3.
var release string

// version is the release, or what Go noted of the working copy that it was built from.
func version() string {
	if release != "" {
		return release
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	revision, changed := "", ""
	for _, s := range info.Settings {
		switch {
		case s.Key == "vcs.revision":
			revision = s.Value
		case s.Key == "vcs.modified" && s.Value == "true":
			changed = "+changes"
		}
	}
	if len(revision) >= 12 {
		return "dev-" + revision[:12] + changed
	}
	if v := info.Main.Version; v != "" && v != "(devel)" {
		return v
	}
	return "dev"
}

// fullVersion returns the version with its compiler and platform.
func fullVersion() string {
	return fmt.Sprintf("%s %s %s/%s", version(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
}

func versionCommand(env *environment) *cobra.Command {
	return &cobra.Command{
		Use:     "version",
		Short:   "Print the version",
		Example: "  storestream version",
		Args:    noArgs,
		RunE: func(*cobra.Command, []string) error {
			env.print("storestream %s\n", fullVersion())
			return nil
		},
	}
}
