package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/storestream/storestream/internal/standins/servers"
	"github.com/storestream/storestream/internal/standins/storefake"
	"github.com/storestream/storestream/lab/product"
)

// The names of the programs, which head their columns.
const (
	nameBefore = "before"
	nameNow    = "now"
)

// program is one build of storestream. Two of them can be measured beside each other in one run.
type program struct {
	name     string // before or now
	path     string
	revision string   // git's description of its commit
	tree     string   // folder of its sources, "" if it has none
	profiled bool     // it writes profiles if a setting asks for them
	settings []string // the keys that it can be configured by
	stage    *stage
}

// newPrograms returns the version to measure against, if there is one, and the program to measure: the one
// that an option names, or a fresh build of this clone, made as a release is made.
func newPrograms(ctx context.Context, s *stage) (all []*program, err error) {
	root, err := product.Root()
	if err != nil {
		return nil, err
	}
	if s.against != "" {
		tree := filepath.Join(s.dir, nameBefore)
		if err := sources(ctx, s.against, tree); err != nil {
			return nil, err
		}
		all = append(all, &program{name: nameBefore, tree: tree, revision: revisionOf(ctx, s.against)})
	}
	p := &program{name: nameNow, tree: root, revision: revisionOf(ctx, ""), profiled: s.profile != ""}
	if s.measured != "" {
		p = &program{name: nameNow, path: s.measured, revision: "at " + s.measured}
	}
	for _, p := range append(all, p) {
		if p.path == "" {
			s.say("building storestream %s", p.revision)
			p.path = filepath.Join(s.dir, "storestream-"+p.name)
			if err := p.build(ctx); err != nil {
				return nil, err
			}
		}
		if err := p.learnSettings(ctx); err != nil {
			return nil, err
		}
		p.stage = s
	}
	return append(all, p), nil
}

// sources puts the sources of a commit into a new folder.
func sources(ctx context.Context, rev, dir string) error {
	if err := os.Mkdir(dir, 0o700); err != nil {
		return err
	}
	line := fmt.Sprintf("git -C \"$(git rev-parse --show-toplevel)\" archive %q | tar -x -C %q", rev, dir)
	if err := shell(ctx, ".", line); err != nil {
		return fmt.Errorf("take the sources of %s: %w", rev, err)
	}
	return nil
}

func (p *program) build(ctx context.Context) error {
	flags := []string{"-trimpath", "-ldflags", "-s -w"}
	if p.profiled {
		source, overlay := p.path+".go", p.path+".json"
		place := filepath.Join(p.tree, "cmd/storestream/benchprofiler.go")
		list := fmt.Sprintf(`{"Replace": {%q: %q}}`, place, source)
		err := errors.Join(os.WriteFile(source, []byte(profiler), 0o600),
			os.WriteFile(overlay, []byte(list), 0o600))
		if err != nil {
			return err
		}
		flags = []string{"-overlay", overlay}
	}
	return product.BuildIn(ctx, p.tree, p.path, []string{"CGO_ENABLED=0"}, flags...)
}

// learnSettings asks the program for its keys: an older version may lack some that we would set.
func (p *program) learnSettings(ctx context.Context) error {
	cmd := exec.CommandContext(ctx, p.path, "config", "show")
	cmd.Env = environment()
	text, err := cmd.Output()
	for l := range strings.Lines(string(text)) {
		key, _, _ := strings.Cut(l, " ")
		p.settings = append(p.settings, key)
	}
	return err
}

// environment is this process's, without storestream's variables.
func environment() []string {
	return slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "STORESTREAM_") })
}

// profiler is added to the program to write profiles.
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

// setting is how one storestream runs.
type setting struct {
	broker *broker
	dsn    string // of the database, "" if the program uses none
	base   string // of the service, "" if the program uses none
	// resources maps those that are enabled to further settings in YAML's flow style, such as "interval: 100ms".
	resources map[string]string
	settings  map[string]string // further ones, as --set has them, which goes over them
	hashed    []string          // fields, such as users.email
	once      bool
	profile   string // file name, without its ending, that a profiled program writes to
}

// configure writes the configuration to path, with the status page on port.
func (set *setting) configure(path string, port int) error {
	base := set.base
	if base == "" {
		base = "http://127.0.0.1:9/v1" // an address that the program never asks
	}
	var text strings.Builder
	fmt.Fprintf(&text, "store: {base_url: %q, max_requests_per_second: 10000}\n", base)
	fmt.Fprintf(&text, "postgres: {dsn: %q}\n", set.dsn)
	fmt.Fprintf(&text, "kafka: {brokers: [%q]}\n", set.broker.addr)
	fmt.Fprintf(&text, "registry: {url: %q}\n", set.broker.registry)
	fmt.Fprintf(&text, "http: {listen: \"127.0.0.1:%d\"}\n", port)
	fmt.Fprintf(&text, "sweep: {interval: 0s}\n") // one that falls due would be measured too
	if len(set.hashed) > 0 {
		const key = "f3a9c1d27e5b48608d14b7e20c6f93a5185bd0472fe69c3be8417a05d62c9f30"
		fmt.Fprintf(&text, "privacy: {key: %q, fields: {%s: hash}}\n", key, strings.Join(set.hashed, ": hash, "))
	}
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
	ports, err := servers.FreePorts(1)
	if err != nil {
		return nil, err
	}
	name := p.stage.name("storestream-" + p.name)
	config := filepath.Join(p.stage.dir, name+".yaml")
	if err := set.configure(config, ports[0]); err != nil {
		return nil, err
	}
	args := []string{"run", "--config", config}
	if set.once {
		args = append(args, "--once")
	}
	environ := environment()
	further := map[string]string{}
	maps.Copy(further, set.settings)
	maps.Copy(further, p.stage.set)
	for key, value := range further {
		if slices.Contains(p.settings, key) {
			name := strings.ToUpper(strings.ReplaceAll(key, ".", "__"))
			environ = append(environ, "STORESTREAM_"+name+"="+value)
		}
	}
	if set.profile != "" {
		environ = append(environ, "BENCH_PROFILE="+set.profile)
	}
	c, err := spawn(p.stage.dir, name, p.path, environ, args...)
	if err != nil {
		return nil, err
	}
	return &stream{child: c, status: fmt.Sprintf("http://127.0.0.1:%d", ports[0]), profile: set.profile,
		config: config}, nil
}
