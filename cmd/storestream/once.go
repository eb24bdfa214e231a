package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/storestream/storestream/internal/terminal"
	"github.com/storestream/storestream/internal/watermark"
	"github.com/storestream/storestream/schemas"
)

// lookEvery is how often `run --once` reads the watermarks.
const lookEvery = 500 * time.Millisecond

// catchUp is `run --once`: it waits until everything that was visible at start is published. It goes by the watermarks in Kafka and not by what this process
// does: a running instance may own some of the resources, or all.
type catchUp struct {
	enabled   []string
	start     schemas.Instant
	patience  time.Duration
	read      func(context.Context) (map[string]watermark.Watermark, error)
	lastError func(resource string) string
	paint     terminal.Paint

	progress map[string]progress
	readErr  error // of the last look
}

// progress is the last watermark of a resource that differed from the one before it, and when it was seen.
type progress struct {
	mark watermark.Watermark
	at   time.Time
}

// errStopped: the instance went before it was asked to.
var errStopped = errors.New("the instance stopped by itself")

// run runs the instance until wait is satisfied or gives up, and then stops it in good order.
func (o *catchUp) run(ctx context.Context, instance func(context.Context) error) error {
	running, stop := context.WithCancel(ctx)
	defer stop()
	ended := make(chan error, 1)
	go func() { ended <- instance(running) }()
	watching, unwatch := context.WithCancel(ctx)
	defer unwatch()
	watched := make(chan error, 1)
	go func() { watched <- o.wait(watching) }()

	select {
	case err := <-watched:
		stop()
		return errors.Join(err, <-ended)
	case err := <-ended:
		unwatch()
		if caughtUp := <-watched; caughtUp == nil { // in the same moment
			return err
		}
		if err == nil {
			err = errStopped
		}
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		return err
	}
}

// wait returns nil when every enabled resource is as of start or later.
func (o *catchUp) wait(ctx context.Context) error {
	o.progress = map[string]progress{}
	for _, name := range o.enabled {
		o.progress[name] = progress{watermark.New(name), time.Now()}
	}
	ticker := time.NewTicker(lookEvery)
	defer ticker.Stop()
	for {
		o.look(ctx)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if open := o.open(); len(open) == 0 {
			return nil
		} else if err := o.stalled(open, time.Now()); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-ticker.C:
		}
	}
}

// look notes what the watermarks say now. A broker that does not answer is no progress, and no more: it may come back.
func (o *catchUp) look(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, o.patience)
	defer cancel()
	marks, err := o.read(ctx)
	if o.readErr = err; err == nil {
		o.note(marks, time.Now())
	}
}

func (o *catchUp) note(marks map[string]watermark.Watermark, now time.Time) {
	for name, last := range o.progress {
		if mark, ok := marks[name]; ok && moved(last.mark, mark) {
			o.progress[name] = progress{mark, now}
		}
	}
}

// moved says whether b is further than a. That a watermark was written again is no progress: a poller that meets the same rows for ever
// writes one every ten seconds.
func moved(a, b watermark.Watermark) bool {
	if (a.Cursor == nil) != (b.Cursor == nil) || (a.Cursor != nil && *a.Cursor != *b.Cursor) {
		return true
	}
	return a.Settled != b.Settled || a.Rows != b.Rows || a.AsOf != b.AsOf
}

// open is the resources that are not done.
func (o *catchUp) open() []string {
	var open []string
	for _, name := range o.enabled {
		if o.progress[name].mark.AsOf < o.start {
			open = append(open, name)
		}
	}
	return open
}

// stalled is an error that names every open resource which has stood still for too long.
func (o *catchUp) stalled(open []string, now time.Time) error {
	var still []string
	for _, name := range open {
		if now.Sub(o.progress[name].at) >= o.patience {
			still = append(still, name+": "+o.why(name))
		}
	}
	if len(still) == 0 {
		return nil
	}
	return fmt.Errorf("no progress for %s (--patience): %s", o.patience, strings.Join(still, "; "))
}

func (o *catchUp) why(name string) string {
	if o.readErr != nil && !errors.Is(o.readErr, context.DeadlineExceeded) {
		return o.readErr.Error()
	}
	if text := o.lastError(name); text != "" {
		return text
	}
	if mark := o.progress[name].mark; mark.Instance != "" && mark.Instance != instanceName() {
		return "it stands at " + instantText(mark.Settled) + ", last written by instance " + mark.Instance + ", whose log says more"
	}
	if o.readErr != nil {
		return "the broker does not answer: " + o.readErr.Error()
	}
	return "it stands at " + instantText(o.progress[name].mark.Settled) + " and no error is known; the log may say more"
}

// summary is a line for each resource.
func (o *catchUp) summary() *terminal.Table {
	t := terminal.NewTable(o.paint, "RESOURCE", "ROWS", "SETTLED", "AS OF").Numbers(1)
	for _, name := range o.enabled {
		mark := o.progress[name].mark
		t.Row(name, terminal.Count(mark.Rows), instantText(mark.Settled), instantText(mark.AsOf))
	}
	return t
}
