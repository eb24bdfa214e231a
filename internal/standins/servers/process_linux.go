package servers

import "syscall"

// tieToOwner has the kernel send the child lastWish when this process dies.
func tieToOwner(a *syscall.SysProcAttr, lastWish syscall.Signal) { a.Pdeathsig = lastWish }
