package servers

import "syscall"

// attributes puts the child into a process group of its own, under the given user, with lastWish as the
// signal that the kernel sends it when this process dies.
func attributes(as *account, lastWish syscall.Signal) *syscall.SysProcAttr {
	a := &syscall.SysProcAttr{Setpgid: true, Pdeathsig: lastWish}
	if as != nil {
		a.Credential = &syscall.Credential{Uid: as.uid, Gid: as.gid}
	}
	return a
}
