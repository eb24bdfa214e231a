package main

import (
	"cmp"
	"fmt"
	"runtime"
	"runtime/debug"
)

// release is set by the linker: -X main.release=v1.2.3.
var release string

// version is the release, or what Go noted of the working copy that it was built from.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return cmp.Or(release, "unknown")
	}
	return cmp.Or(release, info.Main.Version)
}

// fullVersion returns the version with its compiler and platform.
func fullVersion() string {
	return fmt.Sprintf("%s %s %s/%s", version(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
}
