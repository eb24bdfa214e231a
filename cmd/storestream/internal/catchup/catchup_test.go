package catchup

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/storestream/storestream/cmd/storestream/internal/stage"
	"github.com/storestream/storestream/internal/health"
	"github.com/storestream/storestream/internal/status"
	"github.com/storestream/storestream/internal/watermark"
	"github.com/storestream/storestream/schemas"
)

// kafka is watermarks that change with the time: each is there from so long after the start on.
type kafka struct {
	start time.Time
	marks []markAt
}

type markAt struct {
	after time.Duration
	mark  watermark.Watermark
}

func (k *kafka) read(context.Context) (map[string]watermark.Watermark, map[string]error, error) {
	marks := map[string]watermark.Watermark{}
	for _, m := range k.marks {
		if time.Since(k.start) >= m.after {
			marks[m.mark.Resource] = m.mark
		}
	}
	return marks, nil, nil
}

// at is a watermark of another instance as of so long after the start.
func (k *kafka) at(after time.Duration, resource string, rows int64, asOf time.Duration) {
	w := watermark.New(resource)
	w.Rows, w.Instance, w.AsOf = rows, "other-1", schemas.InstantOf(k.start.Add(asOf))
	k.marks = append(k.marks, markAt{after, w})
}

// standby is an instance that owns nothing.
func standby(ctx context.Context) error {
	<-ctx.Done()
	return nil
}

func configOf(k *kafka) Config {
	return Config{Resources: []string{"orders", "users"}, Moment: schemas.InstantOf(k.start),
		Patience: time.Minute, Instance: "here-1", Watermarks: k.read,
		Status: func() status.Snapshot { return status.Snapshot{} }}
}

func TestItEndsWhenEveryResourceIsPublishedWhoeverDoesIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := &kafka{start: time.Now()}
		k.at(2*time.Second, "orders", 7, time.Second)
		k.at(20*time.Second, "users", 9, 19*time.Second)
		k.at(20*time.Second, "shipments", 1, -time.Hour) // is not enabled
		if err := Run(t.Context(), configOf(k), standby); err != nil {
			t.Error(err)
		}
		if took := time.Since(k.start); took < 20*time.Second || took > 21*time.Second {
			t.Errorf("it took %s", took)
		}
	})
}

func TestAPassThatBeganBeforeTheMomentIsNotEnough(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := &kafka{start: time.Now()}
		k.at(0, "orders", 7, -time.Second)
		k.at(0, "users", 7, -time.Second)
		err := Run(t.Context(), configOf(k), standby)
		if err == nil || !strings.Contains(err.Error(), "no progress for 1m0s (--patience): orders: ") {
			t.Errorf("%v", err)
		}
	})
}

func TestPatienceBeginsAnewWithEveryStepOfAResource(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := &kafka{start: time.Now()}
		for s := range 3 {
			k.at(time.Duration(50*s)*time.Second, "orders", int64(s), -time.Hour)
		}
		k.at(59*time.Second, "users", 1, -time.Hour)
		k.at(105*time.Second, "users", 2, -time.Hour)
		err := Run(t.Context(), configOf(k), standby)
		if err == nil || !strings.Contains(err.Error(), "orders: ") || strings.Contains(err.Error(), "users") {
			t.Errorf("%v, expected it to name orders alone", err)
		}
		if took := time.Since(k.start); took < 160*time.Second || took > 161*time.Second {
			t.Errorf("it gave up after %s, expected a minute after the last step of orders", took)
		}
		if !strings.Contains(err.Error(), "instance other-1") {
			t.Errorf("%v, expected it to name the instance whose log says more", err)
		}
	})
}

func TestTheReasonWhyAResourceStandsStillIsNamed(t *testing.T) {
	for _, test := range []struct {
		name   string
		change func(*Config)
		says   string
	}{
		{"nothing is known", func(*Config) {}, "users: no pass of it is complete yet; the log of " +
			"instance here-1 may say more"},
		{"it fails here", func(c *Config) {
			c.Status = statusOf(health.Resource{Name: "users", Owned: true, Doing: "waiting",
				Why: "GET /store-users: 500", Trouble: &watermark.Trouble{Failing: true}})
		}, "users: GET /store-users: 500"},
		{"settling is delayed here", func(c *Config) {
			c.Status = statusOf(health.Resource{Name: "users", Why: "2026-11-20 is not closed",
				Trouble: &watermark.Trouble{Publishes: true}})
		}, "users: 2026-11-20 is not closed"},
		{"it does something here", func(c *Config) {
			c.Status = statusOf(health.Resource{Name: "users", Owned: true, Doing: "waiting for the rate limit"})
		}, "users: waiting for the rate limit"},
		{"the instance waits", func(c *Config) {
			c.Status = func() status.Snapshot { return status.Snapshot{Waiting: "kafka: no broker"} }
		}, "users: kafka: no broker"},
		{"the broker is refused", func(c *Config) {
			c.Watermarks = func(context.Context) (map[string]watermark.Watermark, map[string]error, error) {
				return nil, nil, errors.New("kafka [b:9092] does not answer")
			}
		}, "users: its watermark cannot be read: kafka [b:9092] does not answer"},
		{"its own watermark cannot be read, and another's", func(c *Config) {
			c.Watermarks = func(context.Context) (map[string]watermark.Watermark, map[string]error, error) {
				return nil, map[string]error{"orders": errors.New("garbage of orders"),
					"users": errors.New("garbage of users")}, nil
			}
		}, "users: its watermark cannot be read: garbage of users"},
		{"another's cannot be read", func(c *Config) {
			c.Watermarks = func(context.Context) (map[string]watermark.Watermark, map[string]error, error) {
				return nil, map[string]error{"orders": errors.New("garbage")}, nil
			}
		}, "users: no pass of it is complete yet; the log of " +
			"instance here-1 may say more"},
		{"the broker is silent", func(c *Config) {
			c.Watermarks = func(ctx context.Context) (map[string]watermark.Watermark, map[string]error, error) {
				<-ctx.Done()
				return nil, nil, ctx.Err()
			}
		}, "users: its watermark cannot be read: context deadline exceeded"},
	} {
		synctest.Test(t, func(t *testing.T) {
			k := &kafka{start: time.Now()}
			c := configOf(k)
			test.change(&c)
			if err := Run(t.Context(), c, standby); err == nil || !strings.Contains(err.Error(), test.says) {
				t.Errorf("%s: %v, expected %q", test.name, err, test.says)
			}
		})
	}
}

func statusOf(r health.Resource) func() status.Snapshot {
	return func() status.Snapshot {
		return status.Snapshot{Waiting: "", Resources: []health.Resource{{Name: "orders"}, r}}
	}
}

func TestAnInstanceThatEndsByItselfIsAFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := &kafka{start: time.Now()}
		refused := errors.New("topic store.watermarks: cleanup.policy is delete, expected compact")
		for returned, expected := range map[error]error{refused: refused, nil: errStopped} {
			err := Run(t.Context(), configOf(k), func(context.Context) error { return returned })
			if !errors.Is(err, expected) {
				t.Errorf("%v, expected %v", err, expected)
			}
		}
		ctx, interrupt := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, interrupt)
		if err := Run(ctx, configOf(k), standby); !errors.Is(err, context.Canceled) {
			t.Errorf("%v", err)
		}
	})
}

func TestWritingTheSameWatermarkAgainIsNoProgress(t *testing.T) {
	base := watermark.New("orders")
	base.Settled, base.Rows = stage.Instant(t, "2026-11-20T09:00:00Z"), 7
	base.Cursor = &watermark.Cursor{ID: 5}
	for _, test := range []struct {
		name    string
		change  func(*watermark.Watermark)
		further bool
	}{
		{"written again", func(w *watermark.Watermark) {
			w.Written, w.Instance = w.Settled, "b"
			w.Cursor = &watermark.Cursor{ID: 5}
		}, false},
		{"settled", func(w *watermark.Watermark) { w.Settled++ }, true},
		{"rows", func(w *watermark.Watermark) { w.Rows++ }, true},
		{"as of", func(w *watermark.Watermark) { w.AsOf = w.Settled }, true},
		{"the cursor", func(w *watermark.Watermark) { w.Cursor = &watermark.Cursor{ID: 6} }, true},
		{"the end of the pass", func(w *watermark.Watermark) { w.Cursor = nil }, true},
	} {
		next := base
		test.change(&next)
		if got := further(base, next); got != test.further {
			t.Errorf("%s: further %v, expected %v", test.name, got, test.further)
		}
	}
}

// The clock of an instance was an hour ahead for one poll: its watermark says nothing of this moment, not
// even when our clock has come to it.
func TestAnAsOfFromTheFutureIsNotBelieved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := &kafka{start: time.Now()}
		for _, name := range []string{"orders", "users"} {
			k.at(0, name, 7, 10*time.Second)
			k.at(20*time.Second, name, 7, 19*time.Second) // the next owner's
		}
		if err := Run(t.Context(), configOf(k), standby); err != nil {
			t.Error(err)
		}
		if took := time.Since(k.start); took < 20*time.Second {
			t.Errorf("it believed after %s what a clock said that was ahead", took)
		}
	})
}

// Its clock is ahead and stays so. The third pass that it ends began after the first look.
func TestAnInstanceWhoseClockIsAheadIsBelievedOnceItHasBegunAnotherPass(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := &kafka{start: time.Now()}
		for pass := time.Duration(0); pass < time.Minute; pass += 10 * time.Second {
			for _, name := range []string{"orders", "users"} {
				k.at(pass, name, 7, time.Hour+pass)
			}
		}
		if err := Run(t.Context(), configOf(k), standby); err != nil {
			t.Error(err)
		}
		if took := time.Since(k.start); took < 20*time.Second || took > 21*time.Second {
			t.Errorf("it took %s", took)
		}
	})
}

// Rows that are deferred are looked at again after the overlap, which may be longer than the patience.
func TestWaitingToLookAtRowsAgainIsNotStandingStill(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := &kafka{start: time.Now()}
		k.at(2*time.Second, "users", 7, time.Second)
		until := schemas.InstantOf(k.start.Add(5 * time.Minute))
		k.at(0, "orders", 7, -time.Second)
		k.marks[1].mark.Trouble = &watermark.Trouble{Why: "2 rows came back older", Publishes: true, Until: &until}
		if err := Run(t.Context(), configOf(k), standby); err == nil {
			t.Error("it ends well although orders never go on")
		}
		if took := time.Since(k.start); took < 6*time.Minute || took > 6*time.Minute+time.Second {
			t.Errorf("it gave up after %s", took)
		}
	})
}
