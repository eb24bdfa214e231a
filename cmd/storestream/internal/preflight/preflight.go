// Package preflight takes the first steps of `run` that change nothing, and reports each failure. It
// rehearses a takeover of each resource. It reads the first rows of a pass, of a pass of today, of a sweep
// and of a look at one row. The clients and the code are those of an instance, so a failure is the error that
// `run` would meet, with its remedy. It makes no topic, registers no schema and disturbs no running instance.
//
// It also reports weaknesses that stop nothing: a table without an index, a topic that keeps deleted rows, a
// connection in clear, a certificate that ends soon.
package preflight

import (
	"cmp"
	"context"
	"iter"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/storestream/storestream/cmd/storestream/internal/connect"
	"github.com/storestream/storestream/config"
	"github.com/storestream/storestream/internal/rowset"
	"github.com/storestream/storestream/internal/watermark"
	"github.com/storestream/storestream/producer"
	"github.com/storestream/storestream/schemas"
	"github.com/storestream/storestream/schemas/registry"
)

// Config is the input of the checks. Only File may be empty.
type Config struct {
	File     string // the file of the settings, "" without one
	Settings *config.Config
	Schemas  *schemas.Set
	Cluster  *producer.Cluster
	Registry *registry.Client
	Sources  *connect.Sources

	// Names is set if a person wants to see the names of fields that the schema does not know. A name may be a
	// value: the service may key a map by e-mail addresses.
	Names bool

	// Requests has watched the requests of Sources to the service.
	Requests *Requests

	// For tests that do not want to wait. Zero means what within says, and half of store.request_timeout.
	patience, slow time.Duration
	// marks returns the readable watermarks by resource.
	marks func() map[string]watermark.Watermark
}

// within is how long a part may take: two minutes, within which PostgreSQL may cancel a statement and answer
// one for fewer rows; as long again as `run` waits for one answer over REST; and as long as 120 requests for
// each resource take at the service's rate. Resources of a million rows took 50 to 105.
func (c Config) within() time.Duration {
	atRate := 120e9 * float64(len(c.over(config.REST))) / c.Settings.Store.MaxRequestsPerSecond
	return cmp.Or(c.patience, 2*time.Minute+2*c.Settings.Store.RequestTimeout+time.Duration(atRate))
}

// parts are tried side by side, and yielded in this order. One that does not answer must not keep the others
// waiting.
var parts = []struct {
	name string
	try  func(context.Context, Config, *findings)
}{
	{"configuration", tryConfiguration}, {"service", tryService}, {"database", tryDatabase},
	{"kafka", tryKafka}, {"resources", tryResources}, {"registry", tryRegistry}, {"security", trySecurity},
	{"status", tryStatusPort},
}

// Try yields what each part finds, as soon as the parts before it are done.
func Try(ctx context.Context, c Config) iter.Seq[Finding] {
	return func(yield func(Finding) bool) {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		c.marks = sync.OnceValue(func() map[string]watermark.Watermark {
			ctx, cancel := context.WithTimeout(ctx, min(connect.BrokerPatience, c.within()/2))
			defer cancel()
			marks, _, _ := producer.ReadWatermarks(ctx, c.Cluster) // the part "kafka" reports the error
			return marks
		})
		results := make([]chan []Finding, len(parts))
		for i, part := range parts {
			results[i] = make(chan []Finding, 1)
			go func() {
				ctx, cancel := context.WithTimeout(ctx, c.within())
				defer cancel()
				found := &findings{part: part.name}
				part.try(ctx, c, found)
				results[i] <- found.all
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
func (c Config) over(source string) []string {
	return slices.DeleteFunc(c.Settings.Enabled(), func(name string) bool {
		return c.Settings.Resources[name].Source != source
	})
}

// tryConfiguration lists the resources and their sources. The settings themselves were checked when they were
// loaded, and a mistake ended the command.
func tryConfiguration(_ context.Context, c Config, f *findings) {
	names := func(source string) string { return cmp.Or(strings.Join(c.over(source), ", "), "nothing") }
	file := cmp.Or(c.File, "no file (--config), so defaults, environment and flags")
	scratch, err := rowset.ScratchFile()
	if err != nil {
		f.add(Warning, "sweep.scratch", "a sweep or verify that needs more than sweep.memory fails: set TMPDIR to "+
			"a directory with room for a file of sweep.scratch", "%s", err)
	}
	_ = scratch.Close() // it has no name and is lost anyway
	f.ok("", "%s: %s over postgres; %s over rest", file, names(config.Postgres), names(config.REST))
}
