// Package wait has the waits that half of storestream needs, and Recover for goroutines that others wait for.
package wait

import (
	"context"
	"time"
)

// For waits for d. It returns nil after that time, or the cause of ctx when ctx ends first.
func For(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-timer.C:
		return nil
	}
}
