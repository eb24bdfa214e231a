package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/storestream/storestream/internal/servers"
	"github.com/storestream/storestream/internal/storefake"
	"github.com/storestream/storestream/lab/product"
)

// stage is what storestream runs between, each part a process of its own.
type stage struct {
	options
	dir      string
	self     string // this program
	out      io.Writer
	stops    []func() error
	postgres *servers.Postgres
	pgPid    int
	pooler   *servers.PgBouncer
	service  *service
	n        int // runs so far: names of files
}

// service is a stand-in service.
type service struct {
	*child
	base, control string
	orders, items int
}

// broker is a broker and a registry.
type broker struct {
	addr, registry string
	pid            int
	data           string // folder of its logs; empty: it has none
	stop           func() error
}

const readerPassword = "student"

func open(ctx context.Context, o options, out io.Writer) (_ *stage, err error) {
	s := &stage{options: o, out: out}
	if s.self, err = os.Executable(); err != nil {
		return nil, err
	}
	var remove func()
	if s.dir, remove, err = servers.TemporaryFolder("bench"); err != nil {
		return nil, err
	}
	if o.keep {
		remove = func() { fmt.Fprintln(out, "kept:", s.dir) }
	}
	s.stops = append(s.stops, func() error { remove(); return nil })
	if s.program == "" {
		s.say("building")
		if s.program, err = s.build(ctx, false); err != nil {
			return s, err
		}
	}
	return s, nil
}

func (s *stage) close() error {
	var errs []error
	for i := len(s.stops) - 1; i >= 0; i-- {
		errs = append(errs, s.stops[i]())
	}
	return errors.Join(errs...)
}

func (s *stage) say(format string, args ...any) { fmt.Fprintf(s.out, "# "+format+"\n", args...) }

// profiler is added to the program where profiles are asked for: a build of the same sources that can write them.
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

// build makes the program as a release is made (see the Makefile), or one that writes profiles.
func (s *stage) build(ctx context.Context, profiles bool) (string, error) {
	flags, path := []string{"-trimpath", "-ldflags", "-s -w"}, filepath.Join(s.dir, "storestream")
	if profiles {
		root, err := product.Root()
		if err != nil {
			return "", err
		}
		source, overlay := filepath.Join(s.dir, "profiler.go"), filepath.Join(s.dir, "overlay.json")
		list := fmt.Sprintf(`{"Replace": {%q: %q}}`, filepath.Join(root, "cmd/storestream/benchprofiler.go"), source)
		if err := errors.Join(os.WriteFile(source, []byte(profiler), 0o600), os.WriteFile(overlay, []byte(list), 0o600)); err != nil {
			return "", err
		}
		flags, path = []string{"-overlay", overlay}, filepath.Join(s.dir, "storestream-profiled")
	}
	return path, product.Build(ctx, path, []string{"CGO_ENABLED=0"}, flags...)
}

// shop starts PostgreSQL and the service with the tables of the options, once.
func (s *stage) shop(ctx context.Context) (err error) {
	if s.service != nil {
		return nil
	}
	s.say("starting PostgreSQL, and a shop of %d orders, %d users, %d products", s.orders, s.users, s.products)
	if err := s.database(ctx); err != nil {
		return err
	}
	s.service, err = s.serve(ctx, "--postgres", s.postgres.AdminDSN("postgres"), "--orders", strconv.Itoa(s.orders), "--users", strconv.Itoa(s.users),
		"--products", strconv.Itoa(s.products))
	if err != nil {
		return err
	}
	s.say("the shop has %d orders and %d items", s.service.orders, s.service.items)
	return s.exec(ctx, "VACUUM (FREEZE, ANALYZE)", "CHECKPOINT")
}

// database starts PostgreSQL with the role that may only read, once.
func (s *stage) database(ctx context.Context) (err error) {
	if s.postgres != nil {
		return nil
	}
	if s.postgres, err = servers.StartPostgres(ctx, servers.PostgresConfig{Settings: map[string]string{"shared_buffers": "2GB", "autovacuum": "off"}}); err != nil {
		return err
	}
	s.stops = append(s.stops, s.postgres.Stop)
	var folder string
	if err := s.query(ctx, "SHOW data_directory", &folder); err != nil {
		return err
	}
	text, err := os.ReadFile(filepath.Join(folder, "postmaster.pid"))
	if err != nil {
		return err
	}
	first, _, _ := strings.Cut(string(text), "\n")
	if s.pgPid, err = strconv.Atoi(first); err != nil {
		return err
	}
	// As the service's own is: storefake finds it there and sets the same.
	if err := s.exec(ctx, "CREATE ROLE "+storefake.ReaderRole+" LOGIN PASSWORD '"+readerPassword+"'", "ALTER ROLE "+storefake.ReaderRole+" SET statement_timeout = '60s'",
		"ALTER ROLE "+storefake.ReaderRole+" SET default_transaction_read_only = on"); err != nil {
		return err
	}
	if s.options.pooler {
		s.pooler, err = servers.StartPgBouncer(ctx, servers.PgBouncerConfig{Postgres: s.postgres, Users: map[string]string{storefake.ReaderRole: readerPassword}})
		if err != nil {
			return err
		}
		s.stops = append(s.stops, s.pooler.Stop)
	}
	return nil
}

func (s *stage) readerDSN() string {
	if s.pooler != nil {
		return s.pooler.DSN(storefake.ReaderRole, readerPassword, "postgres")
	}
	return s.postgres.DSN(storefake.ReaderRole, readerPassword, "postgres")
}

// exec runs statements as the administrator.
func (s *stage) exec(ctx context.Context, statements ...string) error {
	conn, err := pgx.Connect(ctx, s.postgres.AdminDSN("postgres"))
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	for _, sql := range statements {
		if _, err := conn.Exec(ctx, sql); err != nil {
			return fmt.Errorf("%s: %w", sql, err)
		}
	}
	return nil
}

func (s *stage) query(ctx context.Context, sql string, into any) error {
	conn, err := pgx.Connect(ctx, s.postgres.AdminDSN("postgres"))
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	return conn.QueryRow(ctx, sql).Scan(into)
}

// serve starts a service.
func (s *stage) serve(ctx context.Context, args ...string) (*service, error) {
	s.n++
	c, err := spawn(s.dir, fmt.Sprintf("service-%d", s.n), s.self, nil, append([]string{"service"}, args...)...)
	if err != nil {
		return nil, err
	}
	v := &service{child: c}
	line, err := c.ready(ctx)
	if err != nil {
		return nil, errors.Join(err, c.Kill())
	}
	v.base, v.control = line[0], line[1]
	v.orders, _ = strconv.Atoi(line[2])
	v.items, _ = strconv.Atoi(line[3])
	s.stops = append(s.stops, c.Kill)
	return v, nil
}

// embedded starts the embedded broker and registry: a new, empty one for each run.
func (s *stage) embedded(ctx context.Context) (*broker, error) {
	s.n++
	c, err := spawn(s.dir, fmt.Sprintf("broker-%d", s.n), s.self, nil, "broker")
	if err != nil {
		return nil, err
	}
	line, err := c.ready(ctx)
	if err != nil {
		return nil, errors.Join(err, c.Kill())
	}
	return &broker{addr: line[0], registry: line[1], pid: c.Pid(), stop: c.Kill}, nil
}

// freePort is a port that nobody listens on now.
func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port, nil
}
