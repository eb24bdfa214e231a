package poller

import (
	"context"
	"fmt"
	"slices"
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
		mark, now := &p.state.mark, p.cfg.wall()
		mark.Request, mark.RequestUID = r.ID, r.UID
		// The record that the request is, and its author as the record says.
		log := p.cfg.Log.With(zap.String("topic", r.Topic), zap.Int64("request", r.ID), zap.String("by", r.By),
			zap.String("kind", string(r.Kind)))
		named := r.ConfirmedDeletes
		if named > 0 && !p.confirms(r, now) {
			r.ConfirmedDeletes = 0
			log.Warn("a request goes on without its --confirm-deletes: no pass is complete yet, or the request is "+
				"more than an hour old", zapInstant("asked", r.At))
		}
		done, err := p.accept(r, now)
		if err != nil {
			return err
		}
		takeover = takeover || done.takeover
		if done.over || done.refused != "" {
			result := watermark.Result{Request: r.ID, RequestUID: r.UID, Kind: r.Kind, From: schemas.MinInstant,
				Began: now, Ended: now, Left: done.refused}
			mark.End(result)
			p.writer.results = append(slices.Clip(p.writer.results), result) // the line below says it
		}
		if done.refused != "" {
			log.Warn("request refused", zap.String("reason", done.refused))
			continue
		}
		log.Info("request accepted", zap.String("why", r.Why), zap.Int("confirmed_deletes", named),
			zap.Int("rows", len(r.Rows)), zap.Reflect("from", r.From), zap.Reflect("to", r.To))
	}
	if err := p.writer.commit(watermark.Transaction{}); err != nil {
		return err
	}
	if takeover {
		return ErrTakeover
	}
	return nil
}

// acceptance is the state of a request that was just read.
type acceptance struct {
	over     bool   // it is carried out
	refused  string // the reason why it will not be, or ""
	takeover bool   // the poller has to end with a takeover
}

// accept begins what r asks for, or does it.
func (p *Poller) accept(r watermark.Request, now schemas.Instant) (done acceptance, err error) {
	mark := &p.state.mark
	switch r.Kind {
	case watermark.Sweeps:
		mark.Sweep = &watermark.Sweep{Request: r.ID, RequestUID: r.UID, At: now,
			ConfirmedDeletes: r.ConfirmedDeletes}
		p.sweeper.asked(r.Kind)
	case watermark.Erases:
		mark.AcceptErase(r, now)
		p.sweeper.asked(r.Kind)
	case watermark.Replays, watermark.Retries:
		done.refused, err = p.acceptPart(r, now)
	case watermark.Cancels:
		p.sweeper.asked(r.Kind)
		var ended int
		if ended, done.takeover = p.state.cancelReplays(now); ended == 0 {
			done.refused = "there is no replay to cancel, or it is part of the first load"
		}
		done.over = true
	case watermark.Pauses:
		p.sweeper.end() // it does not die, and goes on after the pause
		mark.Pause, done.over = &watermark.Pause{Since: now, Until: r.To, Why: r.Why, By: r.By}, true
	case watermark.Resumes:
		if mark.Pause == nil {
			done.refused = "it is not paused"
		}
		mark.Pause, done.over = nil, true
	case watermark.Reset:
		if r.To == nil || *r.To > now.Add(resetAhead) {
			done.refused = "a reset without a time, or to one in the future"
			break
		}
		var ends []int64
		if ends, err = p.cfg.Session.EndOffsets(p.writer.commits); err == nil {
			p.sweeper.end() // it does not die: the takeover that comes goes on with it
			p.state.beginReplay(r, now, ends)
			done.takeover = true
		}
	default:
		done.refused = "a request of an unknown kind"
	}
	return done, err
}

// acceptPart puts a replay of a part or a retry at the end of those that wait. refused is the reason if it
// does not.
func (p *Poller) acceptPart(r watermark.Request, now schemas.Instant) (refused string, err error) {
	mark := &p.state.mark
	if len(mark.Parts) >= watermark.MostParts {
		return fmt.Sprintf("%d replays and retries wait already", watermark.MostParts), nil
	}
	asked := len(r.Rows)
	if r.Kind == watermark.Retries && asked > 0 {
		well := func(id int64) bool { return !p.state.deadLetters.has(id) }
		r.Rows = slices.DeleteFunc(slices.Clone(r.Rows), well)
		if len(r.Rows) == 0 {
			return "none of the rows has a dead letter", nil
		}
	}
	ends, err := p.cfg.Session.EndOffsets(p.writer.commits)
	if err != nil {
		return "", err
	}
	part := watermark.PartOf(r, now, ends)
	part.Left = int64(asked - len(r.Rows))
	mark.Parts = append(slices.Clone(mark.Parts), part)
	p.sweeper.asked(r.Kind)
	return "", nil
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
