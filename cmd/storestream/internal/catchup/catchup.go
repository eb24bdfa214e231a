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
	"github.com/storestream/storestream/internal/watermark"
	"github.com/storestream/storestream/producer"
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
	// Watermarks reads the watermarks from Kafka.
	Watermarks func(context.Context) (map[string]watermark.Watermark, error)
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
	w := newWatch(c)
	err := w.wait(watching)
	stop()
	if failed := <-ended; failed != nil && !errors.Is(err, failed) {
		err = errors.Join(err, failed)
	}
	return w.marks, err
}

// watch follows the watermarks.
type watch struct {
	c       Config
	marks   map[string]watermark.Watermark // of each resource the last one that was a step further
	moved   map[string]time.Time           // when that was seen
	ahead   map[string]ahead
	trouble map[string]*watermark.Trouble // why it is blocked, delayed or failing, or nil
}

// ahead is the last as of that lay ahead of our clock, and how many there were.
type ahead struct {
	asOf schemas.Instant
	n    int
}

// enoughAhead is the one that was seen first, and two more.
const enoughAhead = 3

func newWatch(c Config) *watch {
	w := &watch{c: c, marks: map[string]watermark.Watermark{}, moved: map[string]time.Time{},
		ahead: map[string]ahead{}, trouble: map[string]*watermark.Trouble{}}
	for _, name := range c.Resources {
		w.marks[name], w.moved[name] = watermark.New(name), time.Now()
	}
	return w
}

// wait returns nil when every resource is done. A broker that does not answer is no progress, and no more
// than that: it may come back.
func (w *watch) wait(ctx context.Context) error {
	ticker := time.NewTicker(lookEvery)
	defer ticker.Stop()
	for {
		marks, readErr := w.read(ctx)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		w.note(marks, time.Now())
		open := w.open()
		if len(open) == 0 {
			return nil
		}
		if err := w.stalled(open, readErr, time.Now()); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-ticker.C:
		}
	}
}

func (w *watch) read(ctx context.Context) (map[string]watermark.Watermark, error) {
	ctx, cancel := context.WithTimeout(ctx, w.c.Patience)
	defer cancel()
	return w.c.Watermarks(ctx)
}

func (w *watch) note(marks map[string]watermark.Watermark, now time.Time) {
	for name, last := range w.marks {
		mark, ok := marks[name]
		if !ok {
			continue
		}
		if further(last, mark) {
			w.marks[name], w.moved[name] = mark, now
		}
		if a := w.ahead[name]; mark.AsOf > schemas.InstantOf(now) && mark.AsOf != a.asOf {
			w.ahead[name] = ahead{mark.AsOf, a.n + 1}
		}
		w.trouble[name] = mark.Trouble
	}
}

// further reports whether b is further than a. A watermark that was written again is no progress, because a
// poller that meets the same rows again and again writes one every ten seconds.
func further(a, b watermark.Watermark) bool {
	if (a.Cursor == nil) != (b.Cursor == nil) || (a.Cursor != nil && *a.Cursor != *b.Cursor) {
		return true
	}
	return a.Settled != b.Settled || a.Rows != b.Rows || a.AsOf != b.AsOf
}

// open is the resources that are not done.
func (w *watch) open() []string {
	var open []string
	for _, name := range w.c.Resources {
		asOf, a := w.marks[name].AsOf, w.ahead[name]
		if asOf < w.c.Moment || asOf == a.asOf && a.n < enoughAhead {
			open = append(open, name)
		}
	}
	return open
}

// stalled is an error that names every open resource which has stood still for too long. One that waits to
// look at rows again does not stand still. readErr is why the last look at the watermarks failed.
func (w *watch) stalled(open []string, readErr error, now time.Time) error {
	var still []string
	for _, name := range open {
		since := w.moved[name]
		if trouble := w.trouble[name]; trouble != nil && trouble.Until != nil && trouble.Until.Time().After(since) {
			since = trouble.Until.Time()
		}
		if now.Sub(since) >= w.c.Patience {
			still = append(still, name+": "+w.why(name, readErr))
		}
	}
	if len(still) == 0 {
		return nil
	}
	return fmt.Errorf("no progress for %s (--patience): %s", w.c.Patience, strings.Join(still, "; "))
}

func (w *watch) why(name string, readErr error) string {
	readErr = producer.Concerning(readErr, name)
	if readErr != nil && !errors.Is(readErr, context.DeadlineExceeded) {
		return readErr.Error()
	}
	if text := w.knownHere(name); text != "" {
		return text
	}
	if trouble := w.trouble[name]; trouble != nil {
		return trouble.Why
	}
	mark := w.marks[name]
	stands := "nothing of it is settled yet"
	if mark.Settled != schemas.MinInstant {
		stands = "it stands at " + mark.Settled.Time().Format(time.RFC3339)
	}
	if mark.Instance != "" && mark.Instance != w.c.Instance {
		return stands + ", last written by instance " + mark.Instance + ", whose log says more"
	}
	if readErr != nil {
		return "the broker does not answer: " + readErr.Error()
	}
	return stands + " and no error is known; the log may say more"
}

// knownHere returns the reason that the instance here knows for a resource that stands still, or "".
func (w *watch) knownHere(name string) string {
	s := w.c.Status()
	for _, r := range s.Resources {
		switch {
		case r.Name != name:
		case r.Error != "":
			return r.Error
		case r.Delayed != "":
			return r.Delayed
		case r.Owned && r.Doing != "":
			return r.Doing
		}
	}
	return s.Waiting
}
