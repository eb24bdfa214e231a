// Package overview reads the state of every resource from Kafka: its watermark, its owner, its waiting
// requests and its dead letters. Package health judges it. `watermark list` prints it.
package overview

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/storestream/storestream/cmd/storestream/internal/connect"
	"github.com/storestream/storestream/cmd/storestream/internal/ownership"
	"github.com/storestream/storestream/config"
	"github.com/storestream/storestream/internal/health"
	"github.com/storestream/storestream/internal/watermark"
	"github.com/storestream/storestream/producer"
	"github.com/storestream/storestream/schemas"
)

// Read asks Kafka. It returns every resource that is enabled or has a watermark.
func Read(ctx context.Context, cfg *config.Config, cluster *producer.Cluster) ([]health.Resource, error) {
	ctx, cancel := context.WithTimeout(ctx, connect.BrokerPatience)
	defer cancel()
	all, err := Glance(ctx, cfg, cluster)
	if err != nil {
		return nil, err
	}
	watch := producer.NewWatch(cluster)
	if err := watch.Look(ctx); err != nil && !errors.Is(err, kerr.UnknownTopicOrPartition) {
		return nil, err
	}
	requests := cluster.Requests()
	if err := requests.CatchUp(ctx); err != nil && !errors.Is(err, kerr.UnknownTopicOrPartition) {
		return nil, err
	}
	for i := range all {
		r := &all[i]
		if r.Unreadable == nil { // else it is unknown which are accepted
			r.Pending = requests.After(r.Name, r.Mark.Request, r.Mark.RequestUID)
		}
		r.DeadLetters = append(r.DeadLetters, watch.DeadLetters()[r.Name]...)
		r.Judge()
	}
	return all, nil
}

// Glance is Read without dead letters and requests. It is quick enough for each second, because there may be
// many letters.
func Glance(ctx context.Context, cfg *config.Config, cluster *producer.Cluster) ([]health.Resource, error) {
	ctx, cancel := context.WithTimeout(ctx, connect.BrokerPatience)
	defer cancel()
	marks, unreadable, err := producer.ReadWatermarks(ctx, cluster)
	if err != nil && !errors.Is(err, kerr.UnknownTopicOrPartition) { // no such topic: nothing has ever run
		return nil, err
	}
	members, err := producer.Members(ctx, cluster)
	sharing := errors.Is(err, producer.ErrSharing)
	if err != nil && !sharing {
		return nil, err
	}
	owners, now := ownership.ByResource(members), schemas.InstantOf(time.Now())
	all := []health.Resource{}
	for _, name := range schemas.Names() {
		mark, written := marks[name]
		if !written {
			mark = watermark.New(name)
		}
		r := New(mark, cfg.Resources[name], now)
		r.Unreadable = unreadable[name]
		if !written && r.Unreadable == nil && !r.Enabled {
			continue
		}
		r.Owner = owners[name]
		if r.Owner != "" && written {
			r.Silent = now.Sub(mark.Written)
		}
		r.Between = r.Owner == "" && (sharing || len(members) > 0) && mark.AsOf != schemas.MinInstant &&
			r.Lag() <= health.HandoverPatience
		r.Abandoned = r.Owner == "" && !r.Between
		r.Judge()
		all = append(all, r)
	}
	return all, nil
}

// AddRefusals rehearses the takeover of each resource that maybe has no working owner, and adds the reason
// why it would be refused. The owner cannot write that reason into the watermark, because an instance that
// may not take over may not write.
func AddRefusals(ctx context.Context, cfg *config.Config, set *schemas.Set, cluster *producer.Cluster,
	resources []health.Resource) {
	ctx, cancel := context.WithTimeout(ctx, connect.BrokerPatience)
	defer cancel()
	for i := range resources {
		r := &resources[i]
		if !r.Unattended(cfg.Kafka.Group()) {
			continue
		}
		if _, err := producer.Rehearse(ctx, cluster, set.Get(r.Name)); err != nil {
			r.Refuse(strings.ReplaceAll(err.Error(), "\n", "; "), !producer.Refused(err))
		}
	}
}

// New returns a resource by its watermark and settings.
func New(mark watermark.Watermark, settings config.Resource, now schemas.Instant) health.Resource {
	r := health.New(mark, now)
	r.Source, r.IntervalSeconds, r.Enabled = settings.Source, settings.Interval.Seconds(), settings.Enabled
	return r
}
