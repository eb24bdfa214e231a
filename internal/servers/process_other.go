//go:build unix && !linux

package servers

import "syscall"

// attributes puts the child into a process group of its own, under the given user. Only Linux can tie a
// child's life to its parent's: elsewhere a child outlives a parent that is killed with SIGKILL.
func attributes(as *account, _ syscall.Signal) *syscall.SysProcAttr {
	a := &syscall.SysProcAttr{Setpgid: true}
	if as != nil {
		a.Credential = &syscall.Credential{Uid: as.uid, Gid: as.gid}
	}
	return a
}
