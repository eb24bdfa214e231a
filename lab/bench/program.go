package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/storestream/storestream/internal/storefake"
	"github.com/storestream/storestream/lab/product"
)

// program is one build of storestream. Two of them can be measured beside each other in one run.
type program struct {
	path  string
	stage *stage
}

// newProgram is the build at path, or a fresh one of this clone, made as a release is made, where path is
// empty.
func newProgram(ctx context.Context, s *stage, path string) (*program, error) {
	if path != "" {
		return &program{path: path, stage: s}, nil
	}
	s.say("building")
	path = filepath.Join(s.dir, "storestream")
	err := product.Build(ctx, path, []string{"CGO_ENABLED=0"}, "-trimpath", "-ldflags", "-s -w")
	return &program{path: path, stage: s}, err
}

// profiler is added to the program where profiles are asked for.
const profiler = `package main

import (
	"os"
	"os/signal"
	"runtime"
	"runtime/pprof"
	"syscall"
	"time"
)

func init() {
	base := os.Getenv("BENCH_PROFILE")
	if base == "" {
		return
	}
	runtime.MemProfileRate = 64 << 10
	cpu, err := os.Create(base + ".cpu")
	if err != nil {
		panic(err)
	}
	_ = pprof.StartCPUProfile(cpu)
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGUSR1)
	go func() {
		<-stop
		pprof.StopCPUProfile()
		_ = cpu.Close()
		heap, _ := os.Create(base + ".mem")
		_ = pprof.Lookup("allocs").WriteTo(heap, 0)
		_ = heap.Close()
		_ = os.WriteFile(base+".done", []byte(time.Now().String()), 0o600)
	}()
}
`

// newProfiled builds the same sources with the profiler in them.
func newProfiled(ctx context.Context, s *stage) (*program, error) {
	root, err := product.Root()
	if err != nil {
		return nil, err
	}
	source, overlay := filepath.Join(s.dir, "profiler.go"), filepath.Join(s.dir, "overlay.json")
	place := filepath.Join(root, "cmd/storestream/benchprofiler.go")
	list := fmt.Sprintf(`{"Replace": {%q: %q}}`, place, source)
	err = errors.Join(os.WriteFile(source, []byte(profiler), 0o600), os.WriteFile(overlay, []byte(list), 0o600))
	if err != nil {
		return nil, err
	}
	path := filepath.Join(s.dir, "storestream-profiled")
	err = product.Build(ctx, path, []string{"CGO_ENABLED=0"}, "-overlay", overlay)
	return &program{path: path, stage: s}, err
}

// setting is how one storestream runs.
type setting struct {
	broker *broker
	dsn    string // of the database; empty: none
	base   string // of the service; empty: none
	// resources maps those that are enabled to further settings in YAML's flow style, such as "interval: 100ms".
	resources map[string]string
	once      bool
	profile   string // file name, without its ending, that a profiled program writes to
}

// configure writes the configuration to path, with the status page on port.
func (set *setting) configure(path string, port int) error {
	base := set.base
	if base == "" {
		base = "http://127.0.0.1:9/v1" // nobody asks it
	}
	var text strings.Builder
	fmt.Fprintf(&text, "store: {base_url: %q, max_requests_per_second: 10000}\n", base)
	fmt.Fprintf(&text, "postgres: {dsn: %q}\n", set.dsn)
	fmt.Fprintf(&text, "kafka: {brokers: [%q]}\n", set.broker.addr)
	fmt.Fprintf(&text, "registry: {url: %q}\n", set.broker.registry)
	fmt.Fprintf(&text, "http: {listen: \"127.0.0.1:%d\"}\n", port)
	fmt.Fprintf(&text, "resources:\n")
	for _, name := range storefake.Names() {
		more, enabled := set.resources[name]
		if more != "" {
			more = ", " + more
		}
		fmt.Fprintf(&text, "  %s: {enabled: %v%s}\n", name, enabled, more)
	}
	return os.WriteFile(path, []byte(text.String()), 0o600)
}

// start starts the program.
func (p *program) start(set setting) (*stream, error) {
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	name := p.stage.name("storestream")
	config := filepath.Join(p.stage.dir, name+".yaml")
	if err := set.configure(config, port); err != nil {
		return nil, err
	}
	args := []string{"run", "--config", config}
	if set.once {
		args = append(args, "--once")
	}
	environ := slices.DeleteFunc(os.Environ(), func(v string) bool {
		return strings.HasPrefix(v,
			"STORESTREAM_")
	})
	if set.profile != "" {
		environ = append(environ, "BENCH_PROFILE="+set.profile)
	}
	c, err := spawn(p.stage.dir, name, p.path, environ, args...)
	if err != nil {
		return nil, err
	}
	return &stream{child: c, status: fmt.Sprintf("http://127.0.0.1:%d", port), profile: set.profile}, nil
}
