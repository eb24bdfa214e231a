package main

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// watchFor limits how long watch waits, and unpolledFor how long in all, with the time in which no instance
// polls the resource, because brokers are away or instances frozen. They only end a run that would wait
// forever.
const (
	watchFor    = 4 * time.Minute
	unpolledFor = 20 * time.Minute
	tick        = 500 * time.Millisecond // between two looks
)

// unpolled is the text of a resource that no instance polls.
const unpolled = "no instance polls it"

// watch waits until seen is true and returns its text. It returns "" once still is false, because the wait
// has lost its purpose.
func watch(ctx context.Context, seen func() (string, bool), still func(context.Context) bool) (string,
	error) {
	ctx, cancel := context.WithTimeout(ctx, unpolledFor)
	defer cancel()
	for looks := 0; ; {
		text, all := seen()
		if text != unpolled {
			looks++
		}
		if all {
			return text, nil
		}
		if !still(ctx) && ctx.Err() == nil {
			return "", nil
		}
		if looks > int(watchFor/tick) || !until(ctx, time.Now().Add(tick)) {
			return "", errors.Join(fmt.Errorf("not seen within %s: %s", watchFor, text), context.Cause(ctx))
		}
	}
}
