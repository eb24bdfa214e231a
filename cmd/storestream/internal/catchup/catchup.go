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
	"slices"
	"strings"
	"time"

	"github.com/storestream/storestream/internal/health"
	"github.com/storestream/storestream/internal/status"
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

// errStopped: the instance ended before it was asked to.
var errStopped = errors.New("the instance stopped by itself")

// Run runs the instance until every resource is done, and then stops it in good order. It returns the
// watermarks. Its error names the resources that made no progress for too long, and why; or it is the
// instance's.
func Run(ctx context.Context, c Config, instance func(context.Context) error) (
	map[string]watermark.Watermark, error) {
	running, stop := context.WithCancel(ctx)
	defer stop()
	watching, unwatch := context.WithCancelCause(ctx)
	ended := make(chan error, 1)
	go func() {
		err := instance(running)
		unwatch(cmp.Or(err, errStopped))
		ended <- err
	}()
	all := map[string]*progress{}
	for _, name := range c.Resources {
		all[name] = &progress{mark: watermark.New(name), moved: time.Now()}
	}
	err := c.wait(watching, all)
	stop()
	if failed := <-ended; failed != nil && !errors.Is(err, failed) {
		err = errors.Join(err, failed)
	}
	marks := map[string]watermark.Watermark{}
	for name, p := range all {
		marks[name] = p.mark
	}
	return marks, err
}

// wait returns nil when every resource is done. A broker that does not answer is no progress, and no more
// than that: it may come back.
func (c *Config) wait(ctx context.Context, all map[string]*progress) error {
	ticker := time.NewTicker(lookEvery)
	defer ticker.Stop()
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
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-ticker.C:
		}
	}
}

// why says why a resource stands still. readErr is why its watermark could not be read, or nil.
func (c *Config) why(p *progress, readErr error) string {
	if readErr != nil && !errors.Is(readErr, context.DeadlineExceeded) {
		return readErr.Error()
	}
	s := c.Status()
	i := slices.IndexFunc(s.Resources, func(r health.Resource) bool { return r.Name == p.mark.Resource })
	switch {
	case i >= 0 && s.Resources[i].Trouble != nil:
		return s.Resources[i].Why
	case i >= 0 && s.Resources[i].Owned && s.Resources[i].Doing != "":
		return s.Resources[i].Doing
	case s.Waiting != "":
		return s.Waiting
	case p.trouble != nil:
		return p.trouble.Why
	}
	stands := "nothing of it is settled yet"
	if p.mark.Settled != schemas.MinInstant {
		stands = "it stands at " + p.mark.Settled.Time().Format(time.RFC3339)
	}
	switch {
	case p.mark.Instance != "" && p.mark.Instance != c.Instance:
		return stands + ", last written by instance " + p.mark.Instance + ", whose log says more"
	case readErr != nil:
		return "the broker does not answer: " + readErr.Error()
	}
	return stands + " and no error is known; the log may say more"
}
