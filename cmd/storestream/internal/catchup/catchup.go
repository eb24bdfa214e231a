// Package catchup is `run --once`: it runs an instance until everything that was visible at one moment is
// published.
//
// It goes by the watermarks in Kafka, not by what this process does: a running instance may own some of the
// resources, or all of them. A resource is done when its watermark is as of the moment or later, that is,
// when a complete pass that began after it is published.
//
// As of is read from the clock of the instance that made the pass. If it lies ahead of our clock, that clock
// is, or was, ahead. Such a value proves nothing about the moment, even after our clock has reached it. But
// passes of one owner follow one another. So when as of has changed twice, the last of these passes began
// after the first look.
package catchup

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/storestream/storestream/internal/status"
	"github.com/storestream/storestream/internal/wait"
	"github.com/storestream/storestream/internal/watermark"
	"github.com/storestream/storestream/schemas"
)

// Config says what to wait for. All of it is needed.
type Config struct {
	// Resources are those to wait for.
	Resources []string
	// Moment is when the rows that are to be published were visible.
	Moment schemas.Instant
	// Patience is how long a resource may stand still.
	Patience time.Duration
	// Instance is the name of the one that runs here.
	Instance string
	// Watermarks reads the watermarks from Kafka, and by resource why one cannot be read.
	Watermarks func(context.Context) (
		marks map[string]watermark.Watermark, unreadable map[string]error, err error)
	// Status returns the state of the instance here. It has the reasons why resources stand still.
	Status func() status.Snapshot
}

// lookEvery is how often the watermarks are read.
const lookEvery = 500 * time.Millisecond

// errStopped means that the instance ended before it was asked to.
var errStopped = errors.New("the instance stopped by itself")

// Run runs the instance until every resource is done, and then stops it in good order. Its error names the
// resources that made no progress for too long, and why; or it is the instance's.
func Run(ctx context.Context, c Config, instance func(context.Context) error) error {
	running, stop := context.WithCancel(ctx)
	defer stop()
	watching, unwatch := context.WithCancelCause(ctx)
	ended := make(chan error, 1)
	go func() {
		err := instance(running)
		unwatch(cmp.Or(err, errStopped))
		ended <- err
	}()
	err := c.wait(watching)
	stop()
	if failed := <-ended; failed != nil && !errors.Is(err, failed) {
		err = errors.Join(err, failed)
	}
	return err
}

// wait returns nil when every resource is done. A broker that does not answer is no progress, and no more
// than that: it may come back.
func (c *Config) wait(ctx context.Context) error {
	all := map[string]*progress{}
	for _, name := range c.Resources {
		all[name] = &progress{mark: watermark.New(name), moved: time.Now()}
	}
	for {
		reading, cancel := context.WithTimeout(ctx, c.Patience)
		marks, unreadable, readErr := c.Watermarks(reading)
		cancel()
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		open, still := false, []string{}
		for _, name := range c.Resources {
			p, now := all[name], time.Now()
			if mark, ok := marks[name]; ok {
				p.note(mark, now)
			}
			if p.done(c.Moment) {
				continue
			}
			open = true
			if now.Sub(p.waitsSince()) >= c.Patience {
				still = append(still, name+": "+c.why(p, cmp.Or(readErr, unreadable[name])))
			}
		}
		if len(still) > 0 {
			return fmt.Errorf("no progress for %s (--patience): %s", c.Patience, strings.Join(still, "; "))
		}
		if !open {
			return nil
		}
		if err := wait.For(ctx, lookEvery); err != nil {
			return err
		}
	}
}

// why returns why a resource makes no progress, as the instance here reports it. If that reports no reason,
// why names the last complete pass, and the instance that wrote the watermark. readErr is the error of
// reading the watermark, or nil.
func (c *Config) why(p *progress, readErr error) string {
	s := c.Status()
	switch {
	case s.Waiting != "":
		return s.Waiting
	case readErr != nil:
		return "its watermark cannot be read: " + readErr.Error()
	}
	for _, r := range s.Resources {
		if r.Name != p.mark.Resource {
			continue
		}
		if r.Trouble == nil && r.Doing != "" {
			return r.Doing
		}
		if r.Why != "" {
			return r.Why
		}
	}
	stands := "no pass of it is complete yet"
	if p.mark.AsOf != schemas.MinInstant {
		stands = "its last complete pass began at " + p.mark.AsOf.String()
	}
	return stands + "; the log of instance " + cmp.Or(p.mark.Instance, c.Instance) + " may say more"
}
