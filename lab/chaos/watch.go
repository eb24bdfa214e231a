package main

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// watchFor is how long watch waits: it only ends a run in which what it waits for never comes.
const watchFor = 4 * time.Minute

// watch waits until seen is true and returns what it says. "" when nobody needs to wait any more, because
// still has become false.
func watch(ctx context.Context, seen func() (string, bool), still func(context.Context) bool) (string,
	error) {
	ctx, cancel := context.WithTimeout(ctx, watchFor)
	defer cancel()
	for {
		text, all := seen()
		if all {
			return text, nil
		}
		if !still(ctx) && ctx.Err() == nil {
			return "", nil
		}
		if !until(ctx, time.Now().Add(500*time.Millisecond)) {
			return "", errors.Join(fmt.Errorf("not seen within %s: %s", watchFor, text), context.Cause(ctx))
		}
	}
}
