// Package preflight tries everything that `run` needs, and reports defects with their remedies: the
// configuration, the service, the database, Kafka, the last report of each resource's owner, the schema
// registry, the protection of each connection, and the port of the status page. It makes no topic, registers
// no schema and disturbs no running instance.
//
// Each part is tried by a type of its own, whole in one file. All parts run side by side, for one that does
// not answer must not keep the others waiting.
package preflight

import (
	"cmp"
	"context"
	"iter"
	"slices"
	"sync"
	"time"

	"github.com/storestream/storestream/config"
	"github.com/storestream/storestream/internal/watermark"
	"github.com/storestream/storestream/producer"
	"github.com/storestream/storestream/schemas"
	"github.com/storestream/storestream/schemas/registry"
)

// Config is the input of the checks. Only File and Dead may be empty.
type Config struct {
	File     string // where the settings come from; "": from no file
	Settings *config.Config
	Schemas  *schemas.Set
	Cluster  *producer.Cluster // without those of Dead
	Dead     map[string]error  // DeadBrokers
	Registry *registry.Client

	patience time.Duration // 0: patience; for a test that does not want to wait for it
	// marks returns the readable watermarks by resource.
	marks func() map[string]watermark.Watermark
}

// patience limits one part. A server that has not answered by then counts as down.
const patience = 30 * time.Second

// parts are tried side by side, and yielded in this order.
var parts = []struct {
	name string
	try  func(context.Context, Config, *findings)
}{
	{"configuration", tryConfiguration}, {"service", tryService}, {"database", tryDatabase},
	{"kafka", tryKafka}, {"resources", tryResources}, {"registry", tryRegistry}, {"security", trySecurity},
	{"status", tryStatusPort},
}

// Try yields what each part finds, or each of those that only names, as soon as the parts before it are done.
func Try(ctx context.Context, c Config, only ...string) iter.Seq[Finding] {
	return func(yield func(Finding) bool) {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		within := cmp.Or(c.patience, patience)
		c.marks = sync.OnceValue(func() map[string]watermark.Watermark { return readMarks(ctx, c, within) })
		var results []chan []Finding
		for _, part := range parts {
			if len(only) > 0 && !slices.Contains(only, part.name) {
				continue
			}
			result := make(chan []Finding, 1)
			results = append(results, result)
			go func() {
				ctx, cancel := context.WithTimeout(ctx, within)
				defer cancel()
				found := &findings{part: part.name}
				part.try(ctx, c, found)
				result <- found.all
			}()
		}
		for _, result := range results {
			for _, f := range <-result {
				if !yield(f) {
					return
				}
			}
		}
	}
}

// over is the enabled resources that are read from a source.
func (c Config) over(source string) []*schemas.Resource {
	var found []*schemas.Resource
	for _, name := range c.Settings.Enabled() {
		if c.Settings.Resources[name].Source == source {
			found = append(found, c.Schemas.Get(name))
		}
	}
	return found
}
