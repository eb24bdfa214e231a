// Package overview is what Kafka says of every resource: how far it is published, who polls it, what is asked
// for and what cannot be published. It answers the question that somebody has at three in the morning: is
// everything up to date? `watermark list` prints it.
package overview

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/storestream/storestream/cmd/storestream/internal/connect"
	"github.com/storestream/storestream/cmd/storestream/internal/ownership"
	"github.com/storestream/storestream/config"
	"github.com/storestream/storestream/internal/terminal"
	"github.com/storestream/storestream/internal/watermark"
	"github.com/storestream/storestream/producer"
	"github.com/storestream/storestream/schemas"
)

// Resource is what Kafka says of one resource.
type Resource struct {
	Resource   string              `json:"resource"`
	Settled    *schemas.Instant    `json:"settled"` // null: nothing yet
	AsOf       *schemas.Instant    `json:"as_of"`   // null: no complete pass yet
	LagSeconds *float64            `json:"lag_seconds"`
	Rows       int64               `json:"rows"`
	Owner      string              `json:"owner"`    // the member of the group that has it now, "": none
	Instance   string              `json:"instance"` // who wrote the watermark last
	Group      string              `json:"group"`
	Written    *schemas.Instant    `json:"written"`
	Replay     *watermark.Replay   `json:"replay,omitempty"`
	Sweep      *watermark.Sweep    `json:"sweep,omitempty"`
	LastSweep  *schemas.Instant    `json:"last_sweep"` // null: never
	Swept      *watermark.Swept    `json:"swept,omitempty"`
	Pending    []watermark.Request `json:"pending"` // asked for, not accepted yet
	// DeadLetters are the rows that cannot be published now, by reason.
	DeadLetters []DeadLetters `json:"dead_letters"`
	// Held is why the owner publishes nothing, or settles no further, as it said last; null: it holds nothing.
	Held *watermark.Held `json:"held"`
	// Stalled: the owner, by the group's word, has not written the watermark for longer than one that polls.
	Stalled bool `json:"stalled"`

	// Now is when Kafka was asked.
	Now schemas.Instant `json:"-"`
	// Between: nobody has it now, and the group is handing it over.
	Between bool `json:"-"`
	// Enabled: this configuration polls it.
	Enabled  bool          `json:"-"`
	interval time.Duration // of its polls
	ahead    time.Duration // of as_of, if that lies in the future
}

// DeadLetters are rows of one resource that cannot be published, for one reason. They are named by id: what
// they hold is in the topic alone.
type DeadLetters struct {
	Field string   `json:"field,omitempty"` // "": the row as a whole
	Error string   `json:"error"`
	Rows  int      `json:"rows"`
	IDs   []string `json:"ids"` // a few of them, the newest first
}

// Read asks Kafka. It returns every resource that is enabled or has a watermark.
func Read(ctx context.Context, cfg *config.Config, cluster *producer.Cluster) ([]Resource, error) {
	ctx, cancel := context.WithTimeout(ctx, connect.BrokerPatience)
	defer cancel()
	marks, err := producer.ReadWatermarks(ctx, cluster)
	if err != nil && !errors.Is(err, kerr.UnknownTopicOrPartition) { // no such topic: nothing has ever run
		return nil, err
	}
	watch := producer.NewWatch(cluster)
	if err := watch.Look(ctx); err != nil && !errors.Is(err, kerr.UnknownTopicOrPartition) {
		return nil, err
	}
	requests := cluster.Requests()
	if err := requests.CatchUp(ctx); errors.Is(err, kerr.UnknownTopicOrPartition) {
		requests = nil
	} else if err != nil {
		return nil, err
	}
	members, err := ownership.Members(ctx, cluster)
	sharing := errors.Is(err, producer.ErrSharing)
	if err != nil && !sharing {
		return nil, err
	}
	owners, letters := ownership.ByResource(members), watch.DeadLetters()
	now := schemas.InstantOf(time.Now())
	all := []Resource{}
	for _, name := range schemas.Names() {
		mark, written := marks[name]
		if !written {
			mark = watermark.New(name)
		}
		r := of(mark, cfg.Resources[name], now)
		if !written && !r.Enabled {
			continue
		}
		if requests != nil {
			r.Pending = append(r.Pending, requests.After(name, mark.Request, mark.RequestUID)...)
		}
		r.ownedBy(owners[name])
		r.Between = r.Owner == "" && (sharing || len(members) > 0) && r.LagSeconds != nil &&
			r.Lag() <= ownership.HandoverPatience
		for _, reason := range letters[name] {
			r.DeadLetters = append(r.DeadLetters, DeadLetters{reason.Field, reason.Err, reason.Count, reason.IDs})
		}
		all = append(all, r)
	}
	return all, nil
}

// of is what the watermark says of a resource.
func of(mark watermark.Watermark, cfg config.Resource, now schemas.Instant) Resource {
	r := Resource{Resource: mark.Resource, Settled: known(mark.Settled), AsOf: known(mark.AsOf), Rows: mark.Rows,
		Instance: mark.Instance, Group: mark.Group, Written: known(mark.Written), Held: mark.Held,
		Replay: mark.Replay, Sweep: mark.Sweep, LastSweep: known(mark.LastSweep), Swept: mark.Swept,
		Pending: []watermark.Request{}, DeadLetters: []DeadLetters{},
		Now: now, Enabled: cfg.Enabled, interval: cfg.Interval, ahead: max(0, mark.AsOf.Sub(now))}
	if r.AsOf != nil {
		lag := max(0, now.Sub(mark.AsOf).Seconds())
		r.LagSeconds = &lag
	}
	return r
}

// ownedBy adds who has it by the group's word, "" for nobody.
func (r *Resource) ownedBy(owner string) {
	r.Owner = owner
	r.Stalled = owner != "" && r.Written != nil && r.Now.Sub(*r.Written) > ownership.StalledAfter(r.interval)
}

// known is i, nil where it is not known.
func known(i schemas.Instant) *schemas.Instant {
	if i == schemas.MinInstant {
		return nil
	}
	return &i
}

// Lag is how long ago the last complete pass began; 0 where there is none.
func (r Resource) Lag() time.Duration {
	if r.LagSeconds == nil {
		return 0
	}
	return time.Duration(*r.LagSeconds * float64(time.Second))
}

// lateAfter is how old the last complete pass may be, or three intervals where those are longer: what the
// status page calls behind.
const lateAfter = time.Minute

// Late says why the resource is not up to date, "" if it is. A watermark that says nothing new is written
// every ten seconds, so that much lag means nothing.
func (r Resource) Late() string {
	why := r.late()
	if !r.Stalled {
		return why
	}
	stalled := fmt.Sprintf("%s has it, by the group's word, and has not written for %s: it is dead, hangs or "+
		"fails", r.Owner, terminal.Duration(r.Now.Sub(*r.Written)))
	if why == "" {
		return stalled
	}
	return why + "; " + stalled
}

func (r Resource) late() string {
	switch {
	case r.Written == nil && r.Owner == "":
		return "nothing is published yet, and no instance polls it"
	case r.Held != nil && !r.Held.Publishes:
		return fmt.Sprintf("held for %s, nothing is published: %s", terminal.Duration(r.Now.Sub(r.Held.Since)),
			r.Held.Why)
	case r.ahead > lateAfter:
		return "the last complete pass began " + terminal.Duration(r.ahead) + " from now: this machine's clock " +
			"is behind, or the owner's ahead, and nobody can say how late it is"
	case r.LagSeconds == nil:
		return "the first load is not finished"
	case r.Owner == "" && !r.Between:
		return "no instance polls it, since " + terminal.Duration(r.Lag())
	case r.Lag() > max(lateAfter, 3*r.interval):
		return "the last complete pass began " + terminal.Duration(r.Lag()) + " ago"
	}
	return ""
}
