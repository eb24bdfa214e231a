package verify

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"github.com/storestream/storestream/cmd/storestream/internal/connect"
	"github.com/storestream/storestream/config"
	"github.com/storestream/storestream/internal/metrics"
	"github.com/storestream/storestream/internal/reconcile"
	"github.com/storestream/storestream/internal/watermark"
	"github.com/storestream/storestream/poller"
	"github.com/storestream/storestream/producer"
	"github.com/storestream/storestream/schemas"
)

// OpenService opens the sources of rows, which then know what owners have proven of the service. compare
// returns the comparison of a resource's topic with its source. read receives the number of rows of each
// answer. end closes the sources.
func OpenService(ctx context.Context, cfg *config.Config, cluster *producer.Cluster) (
	compare func(r *schemas.Resource, read func(rows int)) reconcile.Config, end func(), err error) {
	sources, err := connect.OpenSources(cfg, zap.NewNop())
	if err != nil {
		return nil, nil, err
	}
	marks, _, _ := producer.ReadWatermarks(ctx, cluster) // without them rows are still compared
	for _, mark := range marks {
		sources.Dialect().Load(mark.Dialect)
	}
	counts := metrics.New(prometheus.NewRegistry())
	compare = func(r *schemas.Resource, read func(rows int)) reconcile.Config {
		settings := cfg.Resources[r.Name]
		start := settings.Start
		source := sources.New(r, counts.Resource(r.Name), zap.NewNop(), connect.Audience{})
		return reconcile.Config{Start: start, ByID: settings.Source == config.Postgres,
			CreatedAt: poller.CreatedAtIn(r), Now: time.Now, Overlap: settings.Overlap,
			Topic: func(ctx context.Context, from []int64, wanted func(int64) bool,
				fold func(watermark.Published) error) ([]int64, error) {
				return producer.ReadTopic(ctx, cluster, r, from, wanted, fold)
			},
			Source: poller.CompareSource(source, poller.Request{From: start, Identity: marks[r.Name].Identity,
				Everywhere: true}, func() schemas.Instant { return schemas.InstantOf(time.Now()) }, read)}
	}
	return compare, sources.Close, nil
}
