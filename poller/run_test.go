package poller

import (
	"context"
	"errors"
	"testing"

	"github.com/storestream/storestream/internal/watermark"
)

// A stop waits for the transaction in hand, and writes the watermark once more. Any other cause ends that
// transaction: the resource belongs to another instance.
func TestAStopFinishesTheTransactionInHandAndALostResourceDropsIt(t *testing.T) {
	lost := errors.New("the resource was lost")
	for _, cause := range []error{ErrStopping, lost} {
		s := openShop(t, 3, nil)
		s.rows[7] = s.row(7, 0, 1)
		ctx, cancel := context.WithCancelCause(t.Context())
		commits := 0
		s.publishes = func(commit context.Context, tx watermark.Transaction) error {
			if commits++; commits == 1 {
				cancel(cause)
				if !errors.Is(cause, ErrStopping) {
					<-commit.Done()
				}
			}
			if commit.Err() != nil {
				return context.Cause(commit)
			}
			return s.publish(commit, tx)
		}
		err := s.poller.Run(ctx)
		_, published := s.newest(7)
		switch {
		case errors.Is(cause, ErrStopping) && (err != nil || !published || commits != 2):
			t.Errorf("a stop: %v, published: %v, %d commits", err, published, commits)
		case errors.Is(cause, lost) && (!errors.Is(err, lost) || published || commits != 1):
			t.Errorf("a lost resource: %v, published: %v, %d commits", err, published, commits)
		}
	}
}

// The state remembers rows that are not in the topic after a failed commit, so no watermark may be written.
func TestNothingIsWrittenAfterACommitThatFailed(t *testing.T) {
	s := openShop(t, 3, nil)
	s.rows[7] = s.row(7, 0, 1)
	commits := 0
	s.publishes = func(context.Context, watermark.Transaction) error {
		commits++
		return errAborted
	}
	for range 2 {
		if err := s.work(); !errors.Is(err, errAborted) {
			t.Errorf("the poll ends with %v", err)
		}
	}
	if err := s.poller.Run(t.Context()); !errors.Is(err, errAborted) || commits != 1 {
		t.Errorf("%v, %d commits", err, commits)
	}
}
