//go:build unix && !linux

package servers

import "syscall"

// tieToOwner does nothing: only Linux can tie a child's life to its parent's. Elsewhere a child outlives a
// parent that is killed with SIGKILL.
func tieToOwner(*syscall.SysProcAttr, syscall.Signal) {}
