package producer

import (
	"sync/atomic"
	"time"
)

const (
	mostRows   = 100_000 // beyond it a transaction gains nothing: measured, 10k and more cost the same a row
	fewestRows = 500
)

// pace is how many rows a transaction of one resource should hold.
type pace struct {
	max atomic.Int64
}

func (c *Cluster) paceOf(resource string) *pace {
	c.mu.Lock()
	defer c.mu.Unlock()
	p, ok := c.pace[resource]
	if !ok {
		p = &pace{}
		p.max.Store(mostRows)
		c.pace[resource] = p
	}
	return p
}

func (p *pace) rows() int { return int(p.max.Load()) }

// note takes in how long a transaction of n rows took. One that took a third of the timeout halves the next: the broker's clock and ours differ, and a
// transaction that times out was for nothing. It grows back by a sixteenth with each that had time to spare.
func (p *pace) note(rows int, took, timeout time.Duration, failed bool) {
	now := p.rows()
	switch {
	case took > timeout/3:
		p.max.Store(int64(max(min(now, max(rows, 1))/2, fewestRows)))
	case !failed && took < timeout/12 && rows >= now/2:
		p.max.Store(int64(min(now+now/16, mostRows)))
	}
}
