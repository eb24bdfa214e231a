package servers

import (
	"syscall"
	"time"
)

// Pid is the program's process id, for whoever measures it.
func (p *Program) Pid() int { return p.process.cmd.Process.Pid }

// CPU is what the program has used, user and system. Only for after Exited.
func (p *Program) CPU() time.Duration {
	u, ok := p.process.cmd.ProcessState.SysUsage().(*syscall.Rusage)
	if !ok {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// Pid is the broker's process id, for whoever measures it.
func (k *Kafka) Pid() int { return k.process.cmd.Process.Pid }

// Data is the folder of its topics' segments.
func (k *Kafka) Data() string { return k.dir.join("data") }
