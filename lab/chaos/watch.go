package main

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// watchFor limits how long watch waits. It only ends a run that would wait forever.
const watchFor = 4 * time.Minute

// watch waits until seen is true and returns its text. It returns "" once still is false, because the wait
// has lost its purpose.
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
