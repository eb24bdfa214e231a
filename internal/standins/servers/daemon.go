package servers

import (
	"context"
	"sync"
	"syscall"
	"time"
)

// stopPatience is how long a server may take to end before it is killed.
const stopPatience = 10 * time.Second

// daemon is a server's process, which may be ended and started again on the same folder and ports.
type daemon struct {
	// launch starts the process and returns once it answers.
	launch func(ctx context.Context) (*process, error)

	mu      sync.Mutex
	process *process // the last one, or nil before the first start
}

// start starts the server unless it runs.
func (d *daemon) start(ctx context.Context) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.process != nil && d.process.alive() {
		return nil
	}
	p, err := d.launch(ctx)
	if err == nil {
		d.process = p
	}
	return err
}

// stop sends the signals one after the other, each with patience to take effect, then SIGKILL, and returns
// when the server is gone. One that has already ended is no error.
func (d *daemon) stop(patience time.Duration, signals ...syscall.Signal) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.process.stop(patience, signals...)
}
