package poller

import (
	"context"
	"errors"
	"time"

	"github.com/storestream/storestream/internal/watermark"
	"github.com/storestream/storestream/schemas"
	"go.uber.org/zap"
)

// ErrReplay ends Run when a reset was accepted: the watermark says so, and a takeover goes on with it.
var ErrReplay = errors.New("a replay begins")

// acceptRequests applies the requests that came in since the last one accepted, in order, with one transaction: from then on the watermark
// carries them, and a successor goes on with them.
func (p *Poller) acceptRequests(ctx context.Context) error {
	asked := p.Requests(p.mark.Request)
	if len(asked) == 0 {
		return nil
	}
	replay := false
	for _, r := range asked {
		p.mark.Request = r.ID
		switch r.Kind {
		case watermark.Reset:
			begins, err := p.acceptReset(ctx, r)
			if err != nil {
				return err
			}
			replay = replay || begins
		case watermark.Sweeps:
			p.mark.Sweep = &watermark.Sweep{Request: r.ID, At: schemas.InstantOf(p.Now())}
			p.sweepNext = time.Time{}
		default:
			p.Log.Warn("request of an unknown kind, passed over", zapRequest(r.ID), zap.String("kind", string(r.Kind)))
		}
	}
	if err := p.flush(ctx); err != nil {
		return err
	}
	if replay {
		return ErrReplay
	}
	return nil
}

// acceptReset begins a replay: every row with updated_at at or after r.To is published again.
//
// Settled goes back, never forward: a reset to a later time than settled would skip what lies between. The end offsets say which records are
// of this replay: only those suppress an equal row, also after a takeover in the middle. And the replay begins with a takeover,
// because seen has forgotten the rows between the reset's time and settled: without them an old state that a lagging service still
// returns would be published over the newer one that the topic holds (K16).
func (p *Poller) acceptReset(ctx context.Context, r watermark.Request) (begins bool, err error) {
	now := schemas.InstantOf(p.Now())
	if r.To == nil || *r.To > now.Add(resetAhead) {
		p.Log.Warn("reset refused: its time is missing or lies in the future", zapRequest(r.ID), zap.String("by", r.By))
		return false, nil
	}
	ends, err := p.EndOffsets(ctx)
	if err != nil {
		return false, err
	}
	from := *r.To
	if running := p.mark.Replay; running != nil {
		from = min(from, running.From)
	}
	p.mark.Settled = min(p.mark.Settled, max(*r.To, p.Start))
	p.mark.Cursor = nil
	p.mark.Replay = &watermark.Replay{Request: r.ID, From: from, At: now, Ends: ends}
	p.Log.Info("replay begins", zapInstant("from", *r.To), zapRequest(r.ID), zap.String("by", r.By))
	return true, nil
}

// resetAhead allows for the difference between the clock of whoever asks and ours.
const resetAhead = time.Minute

func zapInstant(key string, i schemas.Instant) zap.Field { return zap.Stringer(key, i) }
func zapRequest(id int64) zap.Field                      { return zap.Int64("request", id) }
