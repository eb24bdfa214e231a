package poller

import (
	"context"
	"time"

	"go.uber.org/zap"

	"github.com/storestream/storestream/internal/metrics"
	"github.com/storestream/storestream/internal/watermark"
	"github.com/storestream/storestream/schemas"
)

// Config has the settings and the surroundings of a Poller. All fields are needed unless they say otherwise.
type Config struct {
	Settings
	Clock    func() Moment
	Source   Source
	Session  Session
	Requests Requests
	Sweep    SweepConfig
	Metrics  *metrics.Resource
	Log      *zap.Logger
	// Failures counts consecutive failures across takeovers. A successful poll resets it. nil: a new one.
	Failures *Failures
	// Waits returns the pause that the service asked for, while it lasts: the service's answer, since when it
	// refuses, and until when it is not asked. Without a pause, since is the zero time. nil: it never asks.
	Waits func() (why string, since, until time.Time)
	// Renewed returns a channel that is closed when the credentials of sources may have changed.
	Renewed func() <-chan struct{}
	// Hide takes secrets out of a text that all readers of the watermarks see.
	Hide func(text string) string
	// Doing is called with each new activity of the poller, in words for people.
	Doing func(activity string)
	// Published is called with the rows and deletions of each transaction that is committed.
	Published func(rows []schemas.Record, deleted []int64)
}

// Settings say which resource is polled, and how.
type Settings struct {
	Resource *schemas.Resource
	// SourceName is postgres or rest. It goes into the watermark and the header of dead letters.
	SourceName string
	Interval   time.Duration
	Overlap    time.Duration
	// Memory limits the bytes for rows that a pass may read again. Zero means no limit.
	Memory int
	// CatchesUp is set if the source reads no server that is behind one that it has read (PostgreSQL). So within
	// a takeover no read shows an older state of a row than a read before it. If a server lacked a row at first,
	// a later pass reads it. Otherwise (REST) any answer may show an older state.
	CatchesUp bool
	// Start is the lower bound of every read. schemas.MinInstant means none.
	Start schemas.Instant
	// Eager is set for `run --once`: every pass is complete, every watermark is written at once, and there
	// are no sweeps.
	Eager bool
}

// Moment is one reading of two clocks. Now is compared only with other Nows, and a step of the machine's
// clock does not move it (time.Now). Wall is the machine's clock, for times that are kept and shown. It may
// step at any time, by any amount.
type Moment struct {
	Now  time.Time
	Wall schemas.Instant
}

func (c *Config) now() time.Time { return c.Clock().Now }

func (c *Config) wall() schemas.Instant { return c.Clock().Wall }

// Session is the Kafka side of one takeover.
type Session interface {
	// Watermark and DeadLetters were found by the takeover: the watermark, and the hash of the row of each
	// dead letter, by its key.
	Watermark() watermark.Watermark
	DeadLetters() map[string]uint64
	// MaxRows limits the rows of the next transaction.
	MaxRows() int
	// MaxRecordBytes limits a record of a row, see watermark.RecordSize.
	MaxRecordBytes() int
	// EndOffsets returns the end offset of each partition of the data topic.
	EndOffsets(ctx context.Context) ([]int64, error)
	// Commit writes one transaction. It returns nil only if the transaction is known to be committed.
	Commit(ctx context.Context, tx watermark.Transaction) error
}

// Requests are the requests of users, of all resources.
type Requests interface {
	// After returns the requests for a resource that came after the one with this id and uid, in order.
	After(resource string, id int64, uid string) []watermark.Request
	// Changed returns a channel that is closed when the next request arrives, for any resource.
	Changed() <-chan struct{}
}
