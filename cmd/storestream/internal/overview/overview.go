// Package overview reads the state of every resource from Kafka: its watermark, its owner, its waiting
// requests and its dead letters. It answers the question of an operator at three in the morning: is
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
	"github.com/storestream/storestream/internal/status"
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
	Replayed   *watermark.Replayed `json:"replayed,omitempty"`
	Sweep      *watermark.Sweep    `json:"sweep,omitempty"`
	Erase      []watermark.Erase   `json:"erase,omitempty"`
	LastSweep  *schemas.Instant    `json:"last_sweep"` // null: never
	Swept      *watermark.Swept    `json:"swept,omitempty"`
	Pending    []watermark.Request `json:"pending"` // asked for, not accepted yet
	// DeadLetters are the rows that cannot be published now, by reason.
	DeadLetters []DeadLetters `json:"dead_letters"`
	// Policies are those for fields under which rows of the topic may have been published, the one in force
	// last.
	Policies watermark.Policies `json:"privacy,omitempty"`
	// Trouble is why the resource is blocked or fails, or settled stands still, in its owner's last words.
	// Otherwise it is null.
	Trouble *watermark.Trouble `json:"trouble"`
	// Stalled: the owner, according to the consumer group, has not written the watermark for longer than one
	// that polls.
	Stalled bool `json:"stalled"`
	// NotUpToDate says why the resource is not up to date, or that its watermark cannot be read; "": it is, or
	// this configuration does not poll it.
	NotUpToDate string `json:"late,omitempty"`
	// SweepLate is a text if no sweep has ended for long although sweeps are scheduled. Otherwise it is "".
	SweepLate string `json:"-"`

	// Mark is its watermark. It is a new one if there is none, or if it cannot be read. Unreadable has the
	// reason.
	Mark       watermark.Watermark `json:"-"`
	Unreadable error               `json:"-"`
	// Now is when Kafka was asked.
	Now schemas.Instant `json:"-"`
	// Between is set if no instance has it now and the group is handing it over.
	Between bool `json:"-"`
	// Enabled: this configuration polls it.
	Enabled  bool          `json:"-"`
	source   string        // that this configuration reads it from
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
	all, err := read(ctx, cfg, cluster)
	if err != nil {
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
	letters := watch.DeadLetters()
	for i := range all {
		r := &all[i]
		if requests != nil && r.Unreadable == nil { // else it is unknown which are accepted
			r.Pending = append(r.Pending, requests.After(r.Resource, r.Mark.Request, r.Mark.RequestUID)...)
		}
		for _, reason := range letters[r.Resource] {
			r.DeadLetters = append(r.DeadLetters, DeadLetters{reason.Field, reason.Err, reason.Count, reason.IDs})
		}
	}
	return all, nil
}

// Glance is Read without dead letters and requests. It is quick enough for each second, because there may be
// many letters.
func Glance(ctx context.Context, cfg *config.Config, cluster *producer.Cluster) ([]Resource, error) {
	ctx, cancel := context.WithTimeout(ctx, connect.BrokerPatience)
	defer cancel()
	return read(ctx, cfg, cluster)
}

// read asks for the watermarks, and who has what.
func read(ctx context.Context, cfg *config.Config, cluster *producer.Cluster) ([]Resource, error) {
	marks, err := producer.ReadWatermarks(ctx, cluster)
	var unreadable map[string]error // by resource
	if wrong, ok := errors.AsType[*producer.UnreadableError](err); ok {
		unreadable, err = wrong.ByResource, nil
	}
	if err != nil && !errors.Is(err, kerr.UnknownTopicOrPartition) { // no such topic: nothing has ever run
		return nil, err
	}
	members, err := ownership.Members(ctx, cluster)
	sharing := errors.Is(err, producer.ErrSharing)
	if err != nil && !sharing {
		return nil, err
	}
	owners, now := ownership.ByResource(members), schemas.InstantOf(time.Now())
	all := []Resource{}
	for _, name := range schemas.Names() {
		mark, written := marks[name]
		if !written {
			mark = watermark.New(name)
		}
		r := of(mark, cfg.Resources[name], now)
		r.SweepLate, r.Unreadable = sweepLate(&mark, cfg.Sweep.Interval, now), unreadable[name]
		if !written && r.Unreadable == nil && !r.Enabled {
			continue
		}
		r.ownedBy(owners[name])
		r.Between = r.Owner == "" && (sharing || len(members) > 0) && r.LagSeconds != nil &&
			r.Lag() <= ownership.HandoverPatience
		switch {
		case r.Unreadable != nil:
			r.NotUpToDate = r.Unreadable.Error()
		case r.Enabled:
			r.NotUpToDate = r.Late()
		}
		all = append(all, r)
	}
	return all, nil
}

// of returns the state of a resource by its watermark.
func of(mark watermark.Watermark, cfg config.Resource, now schemas.Instant) Resource {
	r := Resource{Resource: mark.Resource, Settled: known(mark.Settled), AsOf: known(mark.AsOf), Rows: mark.Rows,
		Instance: mark.Instance, Group: mark.Group, Written: known(mark.Written), Trouble: mark.Trouble,
		Policies: mark.Policies,
		Replay:   mark.Replay, Replayed: mark.Replayed, Sweep: mark.Sweep, Erase: mark.Erase,
		LastSweep: known(mark.LastSweep), Swept: mark.Swept,
		Pending: []watermark.Request{}, DeadLetters: []DeadLetters{},
		Mark: mark, Now: now, Enabled: cfg.Enabled, source: cfg.Source, interval: cfg.Interval,
		ahead: max(0, mark.AsOf.Sub(now))}
	if r.AsOf != nil {
		lag := max(0, now.Sub(mark.AsOf).Seconds())
		r.LagSeconds = &lag
	}
	return r
}

// sweepsMissed is for how many sweep.interval no sweep may have ended before sweeps are late, as in the alert
// StorestreamSweepOverdue. Up to one and a half lie between two sweeps, and a sweep takes time.
const sweepsMissed = 3

func sweepLate(mark *watermark.Watermark, interval time.Duration, now schemas.Instant) string {
	since := mark.SweptSince()
	if interval == 0 || since == schemas.MinInstant || now.Sub(since) <= sweepsMissed*interval {
		return ""
	}
	text := fmt.Sprintf("no sweep has ended for %s, and sweep.interval is %s", terminal.Duration(now.Sub(since)),
		terminal.Duration(interval))
	switch s := mark.Sweep; {
	case mark.Replay != nil:
		return text + ": sweeps wait until the replay is over"
	case s != nil && s.Attempts > 1:
		text += fmt.Sprintf(" (this one was begun %d times in a row)", s.Attempts)
	}
	return text + ": the log and the status page of its owner say why"
}

// ownedBy adds the owner according to the consumer group, or "".
func (r *Resource) ownedBy(owner string) {
	r.Owner = owner
	r.Stalled = owner != "" && r.Written != nil && r.Now.Sub(*r.Written) > ownership.StalledAfter(r.interval)
}

// known returns i, or nil if it is MinInstant.
func known(i schemas.Instant) *schemas.Instant {
	if i == schemas.MinInstant {
		return nil
	}
	return &i
}

// Unattended reports whether maybe no instance of group works on the resource: it is late, another group
// wrote its watermark, or the watermark was not written for twice as long as by an idle owner.
func (r Resource) Unattended(group string) bool {
	return r.Enabled && r.Unreadable == nil && (r.NotUpToDate != "" || r.Group != group || r.Written == nil ||
		r.Now.Sub(*r.Written) > max(20*time.Second, 2*r.interval))
}

// Lag returns how long ago the last complete pass began, or zero if there is none.
func (r Resource) Lag() time.Duration {
	if r.LagSeconds == nil {
		return 0
	}
	return time.Duration(*r.LagSeconds * float64(time.Second))
}

// aheadAtMost is how far the clock of the owner may be ahead of this machine's before the lag says nothing.
const aheadAtMost = time.Minute

// Late says why the resource is not up to date, "" if it is.
func (r Resource) Late() string {
	why := r.late()
	if !r.Stalled {
		return why
	}
	reads := "service"
	if r.source == config.Postgres {
		reads = "database"
	}
	stalled := fmt.Sprintf("%s has it, according to the consumer group, and has not written for %s: it is "+
		"dead, hangs or fails: what `storestream check` says of kafka, registry and %s, or its log, is why",
		r.Owner, terminal.Duration(r.Now.Sub(*r.Written)), reads)
	if why == "" {
		return stalled
	}
	return why + "; " + stalled
}

func (r Resource) late() string {
	switch {
	case r.Written == nil && r.Owner == "":
		return "nothing is published yet, and no instance polls it"
	case r.Trouble != nil && r.Trouble.Failing:
		return fmt.Sprintf("failing for %s: %s", terminal.Duration(r.Now.Sub(r.Trouble.Since)),
			status.FirstLine(errors.New(r.Trouble.Why)))
	case r.Trouble.Blocked():
		what := "nothing is published"
		if r.Trouble.Publishes {
			what = "other rows go on"
		}
		return fmt.Sprintf("blocked for %s, %s: %s", terminal.Duration(r.Now.Sub(r.Trouble.Since)), what,
			r.Trouble.Why)
	case r.ahead > aheadAtMost:
		return "the last complete pass began " + terminal.Duration(r.ahead) + " from now: this machine's clock " +
			"is behind, or the owner's ahead, and nobody can say how late it is"
	case r.LagSeconds == nil:
		return "the first load is not finished"
	case r.Owner == "" && !r.Between:
		return "no instance polls it, since " + terminal.Duration(r.Lag())
	case r.Lag() > status.BehindAfter(r.interval.Seconds()):
		return "the last complete pass began " + terminal.Duration(r.Lag()) + " ago"
	}
	return ""
}
