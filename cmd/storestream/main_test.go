package main

import (
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"github.com/storestream/storestream/cmd/storestream/internal/stage"
	"github.com/storestream/storestream/schemas"
)

// call is one call of the program and what came of it.
type call struct {
	args    []string
	environ []string
	// terminal says that somebody is there, who types answer.
	terminal bool
	answer   string

	code           int
	stdout, stderr *buffer
}

// buffer is a bytes.Buffer that a test may read while the program writes.
type buffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

// asProgram is set in the environment of a test binary that is to be the program.
const asProgram = "TEST_BINARY_AS_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		main()
	}
	os.Exit(m.Run())
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

// run interrupts a program that should long have ended.
func (c *call) run(ctx context.Context) *call {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	return c.runInto(ctx, &buffer{}, &buffer{})
}

func (c *call) runInto(ctx context.Context, stdout, stderr *buffer) *call {
	c.stdout, c.stderr = stdout, stderr
	c.code = execute(ctx, c.args, &environment{environ: c.environ, stdin: strings.NewReader(c.answer),
		stdout: c.stdout,
		stderr: c.stderr, terminal: c.terminal})
	return c
}

// do runs the program with args.
func do(t *testing.T, args ...string) *call {
	t.Helper()
	return (&call{args: args}).run(t.Context())
}

// expect fails the test unless the exit status is code and all of the texts are in stdout or stderr.
func (c *call) expect(t *testing.T, code int, texts ...string) *call {
	t.Helper()
	all := c.stdout.String() + c.stderr.String()
	if c.code != code {
		t.Errorf("%q exits %d, expected %d:\n%s", c.args, c.code, code, all)
	}
	for _, text := range texts {
		if !strings.Contains(all, text) {
			t.Errorf("%q does not say %q:\n%s", c.args, text, all)
		}
	}
	return c
}

// scene is a stage on which the program runs.
type scene struct {
	*stage.Stage
	t *testing.T
}

func newScene(t *testing.T) *scene {
	t.Helper()
	return &scene{stage.New(t), t}
}

// call prepares a call with the configuration of the stage, and no file.
func (s *scene) call(args ...string) *call {
	return &call{args: args, environ: append(stage.Environ(s.Settings...), "STORESTREAM_CONFIG=")}
}

func (s *scene) do(args ...string) *call { return s.call(args...).run(s.t.Context()) }

// answer runs the program on a terminal, where somebody types.
func (s *scene) answer(answer string, args ...string) *call {
	c := s.call(args...)
	c.terminal, c.answer = true, answer
	return c.run(s.t.Context())
}

// start runs the program until the test ends or the returned function interrupts it.
func (s *scene) start(args ...string) (out *call, interrupt func() *call) {
	out, cancel, wait := s.run(args...)
	return out, func() *call { cancel(); return wait() }
}

// run runs the program. The returned functions interrupt it, and wait until it has ended.
func (s *scene) run(args ...string) (out *call, interrupt func(), wait func() *call) {
	ctx, cancel := context.WithCancel(s.t.Context())
	c, ended := s.call(args...), make(chan struct{})
	out = &call{stdout: &buffer{}, stderr: &buffer{}}
	go func() { defer close(ended); c.runInto(ctx, out.stdout, out.stderr) }()
	wait = func() *call {
		select {
		case <-ended:
		case <-time.After(30 * time.Second):
			s.t.Fatalf("%q does not end:\n%s", args, out.stderr)
		}
		return c
	}
	s.t.Cleanup(func() { cancel(); wait() })
	return out, cancel, wait
}

func TestWrongUsageExitsWithTwoAndSaysWhatWasExpected(t *testing.T) {
	every := strings.Join(schemas.Names(), ", ")
	for _, test := range []struct {
		args string
		says string
	}{
		{"", "expected a command (see `storestream --help`)"},
		{"rnu", "unknown command \"rnu\" for \"storestream\"\n\nDid you mean this?\n\trun\n"},
		{"config check", "unknown command \"check\" for \"storestream config\""},
		{"watermark", "expected a command (see `storestream watermark --help`)"},
		{"watermark lst", "unknown command \"lst\""},
		{"run --onse", "unknown flag: --onse"},
		{"run now", `unknown command "now" for "storestream run"`},
		{"run --once --patience soon", `invalid argument "soon" for "--patience" flag`},
		{"run --once --patience 0s", "expected more than 0s"},
		{"run --patience 5m", "without --once"},
		{"check -x", "unknown shorthand flag"},
		{"watermark list -o yaml", "-o yaml: expected json"},
		{"watermark reset --to 2026-11-20", "expected one or more resources, or --all"},
		{"watermark reset order --to 2026-11-20",
			`unknown resource "order": expected one of ` + every},
		{"watermark reset orders --all --to 2026-11-20", "expected one or more resources, or --all"},
		{"watermark reset orders", `--to "": expected a time`},
		{"watermark reset orders --to yesterday", `--to "yesterday": expected a time`},
		{"watermark reset orders --to 2026-11-20T09:30:00", "in RFC 3339 with a zone"},
		{"watermark reset orders --to 2999-01-01", "expected a time that is over"},
		{"watermark reset orders --to 2026-11-20", "there is no terminal to ask on: add --yes"},
		{"sweep orders", "there is no terminal to ask on: add --yes"},
		{"sweep --all --confirm-deletes 9 --wait", "there is no terminal to ask on: add --yes"},
		{"erase users 123", "there is no terminal to ask on: add --yes"},
		{"tail", "expected `storestream tail RESOURCE [flags]`, with RESOURCE one of " + every},
		{"tail item", `unknown resource "item"`},
		{"tail orders -n -1", "expected 1 or more"},
		{"tail orders -n 0", "expected 1 or more"},
		{"tail orders -n 10001", "expected 10000 at most, or --from-beginning"},
		{"tail orders -n 5 --from-beginning", "[from-beginning lines]"},
		{"tail orders -n few", `invalid argument "few" for "-n, --lines" flag`},
		{"schema show", "expected `storestream schema show RESOURCE [flags]`"},
		{"config show --config /no/such/file.yaml",
			"/no/such/file.yaml: the configuration file cannot be read: open "},
		{"config show --set log.levle=debug", "the nearest known one is log.level"},
		{"config show --set log=debug", "log (flag --set): a section takes no value: expected one of its keys: " +
			"level, format"},
	} {
		c := do(t, strings.Fields(test.args)...).expect(t, exitUsage, test.says)
		if c.stdout.String() != "" {
			t.Errorf("%q writes its error to stdout", test.args)
		}
	}
}

func TestEveryCommandHasHelpWithAWorkedExample(t *testing.T) {
	var visit func(*cobra.Command)
	visit = func(cmd *cobra.Command) {
		args := append(strings.Fields(cmd.CommandPath())[1:], "--help")
		c := do(t, args...).expect(t, exitDone, "Examples:\n  ", "storestream ")
		for line := range strings.Lines(c.stdout.String()) {
			if len(line) > 80+len("\n") {
				t.Errorf("%v: more than 80 columns: %s", args, line)
			}
		}
		for _, sub := range cmd.Commands() {
			visit(sub)
		}
	}
	visit(rootCommand(&environment{}))
}

func TestAnAnswerThatCannotBeWrittenIsAFailure(t *testing.T) {
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Skip(err) // Linux has it
	}
	defer full.Close()
	for _, args := range [][]string{{"--version"}, {"--help"}, {"schema", "show", "orders"}} {
		var said strings.Builder
		if got := run(t.Context(), args, nil, strings.NewReader(""), full, &said); got != exitFailed ||
			!strings.Contains(said.String(), "no space left on device") {
			t.Errorf("%v: exit status %d, %s", args, got, &said)
		}
	}
}

func TestVersionIsPrinted(t *testing.T) {
	do(t, "--version").expect(t, exitDone, "storestream ", "linux/")
}

func TestConfigShowTellsEachValueWithItsOriginAndMasksSecrets(t *testing.T) {
	path := filepath.Join(t.TempDir(), "storestream.yaml")
	text := "store: {base_url: https://shop/v1}\npostgres:\n  dsn: postgres://student_ro:geheim@db:6432/store\n"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	c := &call{args: []string{"config", "show", "--config", path, "--set", "kafka.topic_prefix=g2"},
		environ: []string{"STORESTREAM_STORE__API_KEY=geheim", "HTTPS_PROXY=http://me:geheim@proxy.example:3128"}}
	c.run(t.Context()).expect(t, exitDone, "host=db port=6432 user=student_ro dbname=store password=******",
		"storestream.yaml:3",
		"environment STORESTREAM_STORE__API_KEY",
		"flag --set", "default", "******", "environment HTTPS_PROXY")
	if strings.Contains(c.stdout.String(), "geheim") {
		t.Errorf("a secret is shown:\n%s", c.stdout)
	}
	fields := map[string][]string{}
	for line := range strings.Lines(c.stdout.String()) {
		f := strings.Fields(line)
		fields[f[0]] = f[1:]
	}
	if got := fields["kafka.topic_prefix"]; !slices.Equal(got, []string{"g2", "flag", "--set"}) {
		t.Errorf("kafka.topic_prefix is shown as %q", got)
	}
	if got := fields["store.api_key"]; got[0] != "******" {
		t.Errorf("store.api_key is shown as %q", got)
	}
}

// A long path on every command is what one types a hundred times in an incident.
func TestTheConfigurationIsFoundWithoutAFlag(t *testing.T) {
	t.Chdir(t.TempDir())
	write := func(name, prefix string) {
		t.Helper()
		if err := os.WriteFile(name, []byte("kafka: {topic_prefix: "+prefix+"}\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	prefixIs := func(prefix string, environ []string, flags ...string) {
		t.Helper()
		c := &call{args: append([]string{"config", "show"}, flags...), environ: environ}
		c.run(t.Context()).expect(t, exitDone)
		for line := range strings.Lines(c.stdout.String()) {
			if f := strings.Fields(line); f[0] == "kafka.topic_prefix" && f[1] != prefix {
				t.Errorf("%q %q: kafka.topic_prefix is %q, expected %q", environ, flags, f[1], prefix)
			}
		}
	}
	variable := []string{"STORESTREAM_CONFIG=other.yaml"}
	(&call{args: []string{"config", "show"}, environ: variable}).run(t.Context()).
		expect(t, exitUsage, "other.yaml: the configuration file cannot be read: open ")
	prefixIs("store.", nil)
	write("storestream.yaml", "here")
	write("other.yaml", "variable")
	write("third.yaml", "flag")
	prefixIs("here", nil)
	prefixIs("variable", variable)
	prefixIs("flag", variable, "--config", "third.yaml")
	prefixIs("store.", variable, "--config=")
}

// In the wrong folder the defaults lead to somebody else's broker.
func TestACommandThatFailsWithoutAConfigurationFileSaysSo(t *testing.T) {
	t.Chdir(t.TempDir())
	const says = "storestream: no storestream.yaml here, and neither --config nor STORESTREAM_CONFIG names "
	watermarks := []string{"watermark", "list", "--set", "kafka.brokers=" + stage.Nowhere(t)}
	do(t, watermarks...).expect(t, exitFailed, "does not answer", says)
	if err := os.WriteFile("storestream.yaml", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if c := do(t, watermarks...).expect(t, exitFailed); strings.Contains(c.stderr.String(), says) {
		t.Error("it is said although there is a file")
	}
}

func TestAllMistakesOfAConfigurationAreSaidAtOnceWithExitStatusTwo(t *testing.T) {
	for _, command := range [][]string{{"run"}, {"run", "--once"}, {"watermark", "list"}, {"tail", "orders"},
		{"config", "show"}, {"schema", "register"}} {
		do(t, append(command, "--set", "postgres.dsn=geheim", "--set", "kafka.brokers=localhost", "--set",
			"log.level=loud")...).
			expect(t, exitUsage, "mistakes in the configuration:",
				`postgres.dsn: "******" (flag --set): not a connection string`, `kafka.brokers: "localhost"`,
				`log.level: "loud"`)
	}
}

func TestASchemaFileThatIsNotOneIsAMistakeOfTheConfiguration(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "Order.avsc"), []byte(`{"type":"record"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	do(t, "schema", "show", "users", "--set", "schemas.dir="+dir).expect(t, exitUsage, "Order.avsc")
}

func TestAnInterruptAtAQuestionIsANo(t *testing.T) {
	typed, silent := io.Pipe() // somebody who types nothing
	defer func() { _ = silent.Close() }()
	e := &environment{stdin: typed, stdout: io.Discard, stderr: io.Discard}
	ctx, interrupt := context.WithCancel(t.Context())
	interrupt()
	if e.confirm(ctx, "Delete it?") {
		t.Error("it is a yes")
	}
}
