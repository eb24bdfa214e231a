package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/storestream/storestream/internal/health"
	"github.com/storestream/storestream/internal/standins/servers"
	"github.com/storestream/storestream/internal/standins/storefake"
	"github.com/storestream/storestream/internal/status"
	"github.com/storestream/storestream/internal/terminal"
)

// lookPatience bounds one look at storestream's status.
const lookPatience = 2 * time.Second

// paceSeconds is the time over which rows a second are shown.
const paceSeconds = 10

// maxStatus bounds the size of a status, which normally takes a few kilobytes.
const maxStatus = 1 << 20

// watch shows the work of storestream.
type watch struct {
	screen   *screen
	ports    *ports
	length   time.Duration // 0 runs until ctx is done
	db       *database     // nil without PostgreSQL
	shop     *storefake.Fake
	stream   *stream
	apache   *servers.Kafka // nil if the broker is embedded
	registry string

	since    time.Time // storestream was started
	snapshot status.Snapshot
	past     []status.Snapshot // of the last seconds, the oldest first
	silent   error             // why there is no newer one, nil if there is
	allAfter time.Duration     // until every topic had rows, or 0 before that
	failures failures          // of the shop's changes
}

// failures are those of the shop's changes that no success has followed yet: after a time without a new one
// they are forgotten.
type failures struct {
	total  int       // ever
	before int       // of total, forgotten
	latest time.Time // when total last grew
}

// failuresLast is how long failures are shown after the last one.
const failuresLast = 10 * time.Second

// count takes how many changes have failed in all, and returns how many are to be shown.
func (f *failures) count(total int, now time.Time) int {
	if total > f.total {
		f.total, f.latest = total, now
	}
	if now.Sub(f.latest) >= failuresLast {
		f.before = total
	}
	return total - f.before
}

// invite prints the settings for a consumer, and commands to try next.
func (w *watch) invite(ctx context.Context) {
	w.screen.print("", w.screen.paint.as(bold, "For a consumer of your own")+
		" (docs/consuming.md has examples):")
	w.screen.print(w.consumerSettings()...)
	w.screen.print("", w.screen.paint.as(bold, "Try in another terminal:"))
	for _, i := range invitations(ctx, w.stream, w.ports, w.db, w.apache, w.registry) {
		if i.shows != "" {
			w.screen.print("  " + w.screen.paint.as(faint, "# "+i.shows))
		}
		w.screen.print("  " + i.command)
	}
	w.screen.print("")
}

// run shows once a second the work of storestream, until ctx is done, the time is over, storestream fails or
// the output is closed. If you stop or kill storestream, run starts it again: the demo is there to show the
// effect of that on the topics.
func (w *watch) run(ctx context.Context) error {
	if w.length > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, w.length)
		defer cancel()
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: lookPatience}
	ticker := time.NewTicker(time.Second)
	defer ticker.Stop()
	toggles := make(chan os.Signal, 1)
	signal.Notify(toggles, syscall.SIGUSR1)
	defer signal.Stop(toggles)
	for {
		w.look(ctx, client)
		if ctx.Err() == nil {
			w.show()
		}
		if w.screen.err != nil {
			return fmt.Errorf("writing to the screen: %w", w.screen.err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-w.stream.Exited():
			if w.stream.failed() {
				return w.stream.Ended()
			}
			if w.stream.dumped() {
				w.screen.note("the stacks of storestream's goroutines are in %s", w.stream.log)
			}
			if err := w.stream.start(); err != nil {
				return err
			}
			w.snapshot, w.past = status.Snapshot{}, nil
			w.screen.note("storestream was stopped, and is started again as process %d", w.stream.Pid())
		case <-toggles:
			w.db.toggle(ctx)
		case <-ticker.C:
		}
	}
}

// show redraws the table on a terminal. On any other output it writes a plain line for each resource.
func (w *watch) show() {
	trouble := w.trouble()
	if text := w.trafficTrouble(); text != "" {
		trouble = append(trouble, text)
	}
	if w.screen.terminal == nil {
		w.screen.draw(plain(w.snapshot, ratesOf(w.past), trouble))
		return
	}
	width, height := w.screen.size()
	lines := table(w.snapshot, ratesOf(w.past), w.screen.paint, width)
	for _, text := range trouble {
		for _, line := range wrap(text, width-2) {
			lines = append(lines, "  "+w.screen.paint.as(yellow, line))
		}
	}
	lines = append(lines, "", "  "+w.screen.paint.as(faint, cut(w.footer(), width-2)))
	// The cursor cannot go back up to a line that has left the screen.
	w.screen.draw(lines[:min(len(lines), max(1, height-1))])
}

// footer sums up.
func (w *watch) footer() string {
	parts := []string{"up " + terminal.Duration(time.Since(w.since)),
		terminal.Plural(w.rows(), "row") + " published"}
	if w.allAfter > 0 {
		parts = append(parts, "rows in all topics after "+terminal.Duration(w.allAfter))
	}
	if w.length > 0 {
		parts = append(parts, "stops after "+terminal.Duration(w.length))
	}
	return strings.Join(append(parts, "Ctrl-C stops"), ", ")
}

// look asks storestream how it is.
func (w *watch) look(ctx context.Context, client *http.Client) {
	snapshot, err := fetch(ctx, client, "http://"+w.ports.status.address()+"/status.json")
	if w.silent = err; err != nil {
		return
	}
	w.snapshot = snapshot
	if len(w.past) == 0 {
		w.past = []status.Snapshot{{Now: snapshot.Started}} // it began with nothing
	}
	w.past = append(w.past[max(0, len(w.past)-paceSeconds):], snapshot)
	if w.allAfter == 0 && len(snapshot.Resources) > 0 {
		for _, r := range snapshot.Resources {
			if r.Rows == 0 {
				return
			}
		}
		w.allAfter = time.Since(w.since)
	}
}

func fetch(ctx context.Context, client *http.Client, url string) (s status.Snapshot, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return s, err
	}
	response, err := client.Do(request)
	if err != nil {
		return s, err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return s, fmt.Errorf("%s: HTTP status %s", url, response.Status)
	}
	if err := json.NewDecoder(io.LimitReader(response.Body, maxStatus)).Decode(&s); err != nil {
		return s, fmt.Errorf("%s: %w", url, err)
	}
	return s, nil
}

// rows is how many rows were published in all.
func (w *watch) rows() (n int64) {
	for _, r := range w.snapshot.Resources {
		n += r.Rows
	}
	return n
}

// trouble lists the current problems, a line each.
func (w *watch) trouble() []string {
	var lines []string
	if text := w.db.state(); text != "" {
		lines = append(lines, text)
	}
	if w.silent != nil {
		text := "storestream does not answer: " + w.silent.Error()
		if errors.Is(w.silent, context.DeadlineExceeded) || w.snapshot.Started.IsZero() {
			text = "storestream is starting"
		}
		lines = append(lines, text)
	}
	if w.snapshot.Waiting != "" {
		lines = append(lines, "storestream waits: "+w.snapshot.Waiting)
	}
	for _, r := range w.snapshot.Resources {
		switch r.State {
		case health.Failing, health.Blocked, health.SettlingDelayed, health.Stalled, health.Unowned:
			text, _ := state(r, w.snapshot.Now)
			lines = append(lines, r.Name+": "+text+": "+r.Why)
		}
		if r.Letters() > 0 {
			lines = append(lines, fmt.Sprintf("%s: %s could not be published, see store.dead_letters", r.Name,
				terminal.Plural(r.Letters(), "row")))
		}
	}
	return lines
}

// trafficTrouble says which changes of the traffic failed, "" if none.
func (w *watch) trafficTrouble() string {
	total, err := w.shop.TrafficErrors()
	n := w.failures.count(total, time.Now())
	if n == 0 || errors.Is(err, context.Canceled) {
		return ""
	}
	return fmt.Sprintf("%s of the shop failed. The last error: %v", terminal.Plural(n, "change"), err)
}
