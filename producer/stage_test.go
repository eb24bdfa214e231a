//go:build !kafka

package producer_test

import "testing"

// plainStage is for tests that need no faults of the broker's. With the build tag kafka it is an Apache
// Kafka.
func plainStage(t *testing.T) *stage {
	t.Helper()
	return newStage(t)
}
