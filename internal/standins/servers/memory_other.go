//go:build unix && !linux

package servers

import "os"

// memoryDir is the usual folder for temporary files: only Linux has one in memory everywhere.
func memoryDir() string { return os.TempDir() }
