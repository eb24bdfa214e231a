package poller

import (
	"context"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/storestream/storestream/internal/watermark"
	"github.com/storestream/storestream/schemas"
)

// asked says whether a request for this resource came in that was not accepted yet.
func (p *Poller) asked() bool { return len(p.requests()) > 0 }

// requests are those for this resource that were not accepted yet.
func (p *Poller) requests() []watermark.Request {
	return p.cfg.Requests.After(p.cfg.Resource.Name, p.state.mark.Request, p.state.mark.RequestUID)
}

// untilAsked returns ctx, which is also cancelled while a request for this resource waits to be accepted.
func (p *Poller) untilAsked(ctx context.Context) (_ context.Context, cancel func()) {
	ctx, end := context.WithCancelCause(ctx)
	id, uid := p.state.mark.Request, p.state.mark.RequestUID
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for ctx.Err() == nil {
			changed := p.cfg.Requests.Changed()
			if len(p.cfg.Requests.After(p.cfg.Resource.Name, id, uid)) > 0 {
				end(errAsked)
				return
			}
			select {
			case <-changed:
			case <-ctx.Done():
			}
		}
	}()
	return ctx, func() { end(nil); <-ended }
}

// resetAhead allows for the difference between the clock of the request's author and ours.
const resetAhead = time.Minute

// acceptRequests applies the requests that came in since the last one accepted, in order, with one
// transaction. From then on the watermark carries them, and a successor goes on with them.
func (p *Poller) acceptRequests() error {
	asked := p.requests()
	if len(asked) == 0 {
		return nil
	}
	replay := false
	var accepted []watermark.Request
	for _, r := range asked {
		p.state.mark.Request, p.state.mark.RequestUID = r.ID, r.UID
		now := p.cfg.wall()
		switch {
		case r.Kind == watermark.Sweeps:
			p.state.mark.Sweep = &watermark.Sweep{Request: r.ID, RequestUID: r.UID, At: now,
				ConfirmedDeletes: p.confirmed(r, now)}
			p.sweeper.asked(true)
		case r.Kind == watermark.Erases:
			good := r
			good.ConfirmedDeletes = p.confirmed(r, now)
			p.state.mark.AcceptErase(good, now)
			p.sweeper.asked(false)
		case r.Kind != watermark.Reset:
			p.cfg.Log.Warn("request of an unknown kind, ignored", zapAsked(r), zap.String("kind", string(r.Kind)))
			continue
		case r.To == nil || *r.To > now.Add(resetAhead):
			p.cfg.Log.Warn("reset refused: it has no time, or one in the future", zapAsked(r))
			continue
		default:
			ends, err := p.cfg.Session.EndOffsets(p.writer.commits)
			if err != nil {
				return err
			}
			p.state.beginReplay(r, now, ends)
			p.cfg.Log.Info("replay begins", zapInstant("from", *r.To), zapAsked(r))
			replay = true
		}
		accepted = append(accepted, r)
	}
	if err := p.writer.commit(watermark.Transaction{}); err != nil {
		return err
	}
	for _, r := range accepted { // the watermark has them: no successor accepts them again
		p.cfg.Log.Info("request accepted", zapAsked(r), zap.String("kind", string(r.Kind)),
			zap.Int("confirmed_deletes", r.ConfirmedDeletes), zap.Int("rows", len(r.Rows)))
	}
	if replay {
		return ErrTakeover
	}
	return nil
}

// confirmedFor is how long after a request its author may be taken to know which rows were deleted.
const confirmedFor = time.Hour

// confirmed returns how many deletions r confirms. It returns 0 if the confirmation is not valid any more. A
// request may be done once more after the watermark is lost, and it may wait for weeks until an instance
// polls the resource. By then other rows are missing than those that its author looked at.
func (p *Poller) confirmed(r watermark.Request, now schemas.Instant) int {
	good := p.state.mark.AsOf != schemas.MinInstant && now.Sub(r.At) < confirmedFor
	if good || r.ConfirmedDeletes == 0 {
		return r.ConfirmedDeletes
	}
	p.cfg.Log.Warn("a request goes on without its --confirm-deletes: no pass is complete yet, or the request "+
		"is more than an hour old", zapAsked(r), zapInstant("asked", r.At))
	return 0
}

// zapAsked says which record of which topic a request is, and by whom, as its writer says.
func zapAsked(r watermark.Request) zap.Field {
	return zap.Inline(zapcore.ObjectMarshalerFunc(func(line zapcore.ObjectEncoder) error {
		line.AddString("topic", r.Topic)
		line.AddInt64("request", r.ID)
		line.AddString("by", r.By)
		return nil
	}))
}

func zapInstant(key string, i schemas.Instant) zap.Field { return zap.Stringer(key, i) }
func zapRequest(id int64) zap.Field                      { return zap.Int64("request", id) }
