package poller

import (
	"context"
	"time"

	"go.uber.org/zap"

	"github.com/storestream/storestream/internal/watermark"
	"github.com/storestream/storestream/schemas"
)

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
	takeover := false
	for _, r := range asked {
		p.state.mark.Request, p.state.mark.RequestUID = r.ID, r.UID
		now := p.cfg.wall()
		// The record that the request is, and its author as the record says.
		log := p.cfg.Log.With(zap.String("topic", r.Topic), zap.Int64("request", r.ID), zap.String("by", r.By),
			zap.String("kind", string(r.Kind)))
		named := r.ConfirmedDeletes
		if named > 0 && !p.confirms(r, now) {
			r.ConfirmedDeletes = 0
			log.Warn("a request goes on without its --confirm-deletes: no pass is complete yet, or the request is "+
				"more than an hour old", zapInstant("asked", r.At))
		}
		switch {
		case r.Kind == watermark.Sweeps:
			p.state.mark.Sweep = &watermark.Sweep{Request: r.ID, RequestUID: r.UID, At: now,
				ConfirmedDeletes: r.ConfirmedDeletes}
			p.sweeper.asked(r.Kind)
		case r.Kind == watermark.Erases:
			p.state.mark.AcceptErase(r, now)
			p.sweeper.asked(r.Kind)
		case r.Kind == watermark.Replays, r.Kind == watermark.Retries:
			if accepted, err := p.acceptPart(r, now); err != nil {
				return err
			} else if !accepted {
				log.Warn("replay refused: too many wait", zap.Int("waiting", watermark.MostParts))
				continue
			}
		case r.Kind == watermark.Cancels:
			p.sweeper.asked(r.Kind)
			ended, reset := p.state.cancelReplays(now)
			if takeover = takeover || reset; ended == 0 {
				log.Warn("there is no replay to cancel, or it is part of the first load")
				continue
			}
		case r.Kind == watermark.Pauses:
			p.sweeper.end() // it does not die, and goes on after the pause
			p.state.mark.Pause = &watermark.Pause{Since: now, Until: r.To, Why: r.Why, By: r.By}
		case r.Kind == watermark.Resumes:
			p.state.mark.Pause = nil
		case r.Kind != watermark.Reset:
			log.Warn("request of an unknown kind, ignored")
			continue
		case r.To == nil || *r.To > now.Add(resetAhead):
			log.Warn("reset refused: it has no time, or one in the future")
			continue
		default:
			ends, err := p.cfg.Session.EndOffsets(p.writer.commits)
			if err != nil {
				return err
			}
			p.sweeper.end() // it does not die: the takeover that comes goes on with it
			p.state.beginReplay(r, now, ends)
			log.Info("replay begins", zapInstant("from", *r.To))
			takeover = true
		}
		log.Info("request accepted", zap.Int("confirmed_deletes", named), zap.Int("rows", len(r.Rows)))
	}
	if err := p.writer.commit(watermark.Transaction{}); err != nil {
		return err
	}
	if takeover {
		return ErrTakeover
	}
	return nil
}

// acceptPart accepts a replay of a part, unless too many wait.
func (p *Poller) acceptPart(r watermark.Request, now schemas.Instant) (accepted bool, err error) {
	parts := p.state.mark.Parts
	if len(parts) >= watermark.MostParts {
		return false, nil
	}
	ends, err := p.cfg.Session.EndOffsets(p.writer.commits)
	if err != nil {
		return false, err
	}
	p.state.mark.Parts = append(parts[:len(parts):len(parts)], watermark.PartOf(r, now, ends))
	p.sweeper.asked(r.Kind)
	return true, nil
}

// rests reports whether the resource is paused. Then its owner only writes the watermark, which says that
// it is alive. A pause whose time is over ends.
func (p *Poller) rests() (rests bool, err error) {
	mark := &p.state.mark
	if mark.Pause == nil {
		return false, nil
	}
	if mark.Pause.Lasts(p.cfg.wall()) {
		p.cfg.Doing("paused")
		return true, p.writer.commitIfDue(watermark.Transaction{})
	}
	mark.Pause = nil
	p.cfg.Log.Info("the pause is over")
	return false, p.writer.commit(watermark.Transaction{})
}

// confirmedFor is how long after a request its author may be taken to know which rows were deleted.
const confirmedFor = time.Hour

// confirms reports whether the confirmation of r is valid. A request may be done once more after the
// watermark is lost, and it may wait for weeks until an instance polls the resource. By then other rows are
// missing than those that its author looked at.
func (p *Poller) confirms(r watermark.Request, now schemas.Instant) bool {
	return p.state.mark.AsOf != schemas.MinInstant && now.Sub(r.At) < confirmedFor
}

func zapInstant(key string, i schemas.Instant) zap.Field { return zap.Stringer(key, i) }
func zapRequest(id int64) zap.Field                      { return zap.Int64("request", id) }
