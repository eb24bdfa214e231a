package main

import (
	"fmt"
	"io"
	"sync"
	"time"
)

// journal prints events, and keeps the faults among them.
type journal struct {
	out io.Writer

	mu    sync.Mutex
	began time.Time // when the instances were started; zero before that
	wrong []error
}

func (j *journal) begin(at time.Time) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.began = at
}

// clock is the time since the instances were started, "" before that.
func (j *journal) clock() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.began.IsZero() {
		return ""
	}
	return clockText(time.Since(j.began))
}

// say prints a line with the time since the instances were started.
func (j *journal) say(format string, args ...any) {
	at := j.clock()
	j.mu.Lock()
	defer j.mu.Unlock()
	fmt.Fprintf(j.out, "%7s  "+format+"\n", append([]any{at}, args...)...)
}

// fail keeps and prints a fault.
func (j *journal) fail(err error) {
	j.say("WRONG: %v", err)
	j.mu.Lock()
	defer j.mu.Unlock()
	j.wrong = append(j.wrong, err)
}

func (j *journal) mistakes() []error {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.wrong
}
