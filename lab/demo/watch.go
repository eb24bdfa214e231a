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
	"syscall"
	"time"

	"github.com/storestream/storestream/internal/status"
)

// lookPatience bounds one look at storestream's status.
const lookPatience = 2 * time.Second

// maxStatus bounds what is read of a status: five resources take a few kilobytes.
const maxStatus = 1 << 20

// view is what was last seen of storestream.
type view struct {
	since    time.Time // storestream was started
	snapshot status.Snapshot
	silent   error         // why there is no newer one, nil if there is
	allAfter time.Duration // until every topic had rows, 0: not yet
}

// watch shows once a second what storestream does, until ctx is done, the time is over, storestream ends or nobody reads any more.
func (d *demo) watch(ctx context.Context) error {
	if d.length > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, d.length)
		defer cancel()
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: lookPatience}
	ticker := time.NewTicker(time.Second)
	defer ticker.Stop()
	v := &view{since: time.Now()}
	switches := make(chan os.Signal, 1)
	signal.Notify(switches, syscall.SIGUSR1)
	defer signal.Stop(switches)
	for {
		v.look(ctx, client, "http://"+d.ports.status.address()+"/status.json")
		if ctx.Err() == nil {
			d.show(v)
		}
		if d.screen.err != nil {
			return fmt.Errorf("writing what is going on: %w", d.screen.err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-d.stream.Exited():
			return d.stream.Ended()
		case <-switches:
			d.switchDatabase(ctx)
		case <-ticker.C:
		}
	}
}

// look asks storestream how it is.
func (v *view) look(ctx context.Context, client *http.Client, url string) {
	snapshot, err := fetch(ctx, client, url)
	if v.silent = err; err != nil {
		return
	}
	v.snapshot = snapshot
	if v.allAfter == 0 && len(snapshot.Resources) > 0 {
		for _, r := range snapshot.Resources {
			if r.Rows == 0 {
				return
			}
		}
		v.allAfter = time.Since(v.since)
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
func (v *view) rows() (n int64) {
	for _, r := range v.snapshot.Resources {
		n += r.Rows
	}
	return n
}

// trouble is what is not as it should be, a line each.
func (v *view) trouble() []string {
	var lines []string
	if v.silent != nil {
		text := "storestream does not answer: " + v.silent.Error()
		if errors.Is(v.silent, context.DeadlineExceeded) || v.snapshot.Started.IsZero() {
			text = "storestream is starting"
		}
		lines = append(lines, text)
	}
	if v.snapshot.Waiting != "" {
		lines = append(lines, "storestream waits: "+v.snapshot.Waiting)
	}
	for _, r := range v.snapshot.Resources {
		if r.Error != "" {
			lines = append(lines, r.Name+": "+r.Error)
		}
		if r.Held != "" {
			lines = append(lines, r.Name+" settles no further: "+r.Held)
		}
		if r.DeadLetters > 0 {
			lines = append(lines, fmt.Sprintf("%s: %s rows could not be published, see store.dead_letters", r.Name, count(int64(r.DeadLetters))))
		}
	}
	return lines
}
