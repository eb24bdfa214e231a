package main

import (
	"context"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/storestream/storestream/internal/standins/storefake"
)

// operator is the person on call. Only one kind of block may need a person: "poll.memory is too small to go
// on". The operator then follows docs/operations.md: raise poll.memory to the size in the text, and restart.
// Like `storestream watermark list`, the operator reads the watermarks.
type operator struct {
	course *course
	since  map[string]time.Time // when each block of a resource began
	raised map[string]*shortage // the last for which memory was raised, by resource
	did    []string
	cancel context.CancelFunc
	done   chan struct{}
}

// startOperator lets the operator look until it is stopped.
func startOperator(ctx context.Context, c *course) *operator {
	ctx, cancel := context.WithCancel(ctx)
	o := &operator{course: c, since: map[string]time.Time{}, raised: map[string]*shortage{}, cancel: cancel,
		done: make(chan struct{})}
	go func() {
		defer close(o.done)
		for until(ctx, time.Now().Add(time.Second)) {
			o.look()
		}
	}()
	return o
}

// stop ends the watch, after work that has begun is finished. A second stop does nothing.
func (o *operator) stop() {
	o.cancel()
	<-o.done
}

// look raises memory for the first resource that has been blocked for long enough.
func (o *operator) look() {
	for _, resource := range storefake.Names() {
		if o.needs(resource) == nil {
			delete(o.since, resource)
		} else if _, known := o.since[resource]; !known {
			o.since[resource] = time.Now()
		}
	}
	for _, resource := range storefake.Names() {
		if at, holds := o.since[resource]; holds && time.Since(at) >= o.course.stage.personComes {
			o.raise(resource, time.Since(at))
			clear(o.since) // the instances are new
			return
		}
	}
}

// shortage holds the facts in the text of such a block.
type shortage struct {
	text      string
	settled   string
	rows      int // published since settled
	has, want int // MiB
}

var shortageText = regexp.MustCompile(`poll\.memory is too small to go on: since settled \(([^)]+)\) ` +
	`([0-9]+) rows .*, and ([0-9]+)MiB hold .*: raise poll\.memory to ([0-9]+)MiB and restart`)

// readShortage reads the reason of a block. It returns nil for every other reason.
func readShortage(text string) *shortage {
	found := shortageText.FindStringSubmatch(text)
	if found == nil {
		return nil
	}
	n := &shortage{text: text, settled: found[1]}
	n.rows, _ = strconv.Atoi(found[2]) // the expression says that these are numbers
	n.has, _ = strconv.Atoi(found[3])
	n.want, _ = strconv.Atoi(found[4])
	return n
}

// again reports whether memory was raised for before, as it asked, in vain. While settled stands, more rows
// may be published into the memory that was raised. If they fill it, that is another shortage.
func (n *shortage) again(before *shortage) bool {
	return before != nil && before.settled == n.settled && before.rows >= n.rows
}

// needs returns the shortage that a resource reports. It returns nil if there is none, or if the report comes
// from an instance with less memory than they have now.
func (o *operator) needs(resource string) *shortage {
	m, _ := o.course.stage.tail.lastMark(resource)
	if m.Trouble == nil {
		return nil
	}
	n := readShortage(m.Trouble.Why)
	if n == nil || n.has < o.course.stage.fleet.memory.whole() {
		return nil
	}
	return n
}

// raise raises memory to the size that the resource asks for, once for all instances, and restarts them one
// after the other. Meanwhile no mishap ends one, or relies on the size of the memory.
func (o *operator) raise(resource string, after time.Duration) {
	for _, t := range []target{theMemory, oneInstance} {
		o.course.busy[t].Lock()
		defer o.course.busy[t].Unlock()
	}
	n := o.needs(resource)
	if n == nil { // it went on meanwhile
		return
	}
	s := o.course.stage
	s.journal.say("%s has been blocked for %s: %s", resource, short(after), n.text)
	if n.again(o.raised[resource]) {
		s.journal.fail(fmt.Errorf("%s: poll.memory was raised as it asked, and was not enough: %s",
			resource, n.text))
	}
	o.raised[resource] = n
	if err := s.fleet.restartWith(mebibytes(n.want)); err != nil {
		s.journal.fail(fmt.Errorf("raising poll.memory: %w", err))
		return
	}
	did := fmt.Sprintf("to %d MiB for %s at %s", n.want, resource, s.journal.clock())
	s.journal.say("all instances were restarted, with poll.memory raised %s", did)
	o.did = append(o.did, did)
}

// report lists the operator's actions, "" without any. Call it only after stop.
func (o *operator) report() string {
	if len(o.did) == 0 {
		return ""
	}
	return fmt.Sprintf("poll.memory was too small to go on %d times, and the operator raised it as the text "+
		"says: %s\n", len(o.did), strings.Join(o.did, ", "))
}
