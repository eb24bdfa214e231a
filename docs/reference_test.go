package docs

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"go/ast"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/storestream/storestream/config"
	"github.com/storestream/storestream/internal/health"
	"github.com/storestream/storestream/internal/metrics"
	"github.com/storestream/storestream/internal/standins/servers"
	"github.com/storestream/storestream/internal/standins/storefake"
	"github.com/storestream/storestream/internal/status"
	"github.com/storestream/storestream/internal/watermark"
	"github.com/storestream/storestream/schemas"
)

// reference.md is the contract with users, so it says what the program says of itself. Tables between
// <!-- generated NAME --> and <!-- end --> are written by `go test ./docs -update`; the others are written by
// hand and held against the code.

var update = flag.Bool("update", false, "write the generated tables of reference.md")

const referenceFile = "reference.md"

func readReference(t *testing.T) string {
	t.Helper()
	return readPage(t, referenceFile)
}

func readPage(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// generated compares what stands between the marks of a generated table of reference.md with want, or writes
// it there.
func generated(t *testing.T, name, want string) {
	t.Helper()
	generatedIn(t, referenceFile, name, want)
}

func generatedIn(t *testing.T, file, name, want string) {
	t.Helper()
	text := readPage(t, file)
	begin := fmt.Sprintf("<!-- generated %s -->\n", name)
	before, rest, found := strings.Cut(text, begin)
	have, after, closed := strings.Cut(rest, "<!-- end -->")
	switch {
	case !found || !closed:
		t.Fatalf("%s has no table %q", file, name)
	case have == want:
	case *update:
		if err := os.WriteFile(file, []byte(before+begin+want+"<!-- end -->"+after), 0o644); err != nil {
			t.Fatal(err)
		}
	default:
		t.Errorf("%s: table %q is not what the program says. go test ./docs -update writes it; and is it in "+
			"CHANGELOG.md?\nit should be:\n%s", file, name, want)
	}
}

// table is a table of Markdown.
type table struct{ strings.Builder }

func newTable(columns ...string) *table {
	t := &table{}
	t.row(columns...)
	t.WriteString(strings.Repeat("|---", len(columns)) + "|\n")
	return t
}

func (t *table) row(cells ...string) {
	for i, cell := range cells {
		cells[i] = strings.ReplaceAll(strings.Join(strings.Fields(cell), " "), "|", "\\|")
	}
	t.WriteString("| " + strings.Join(cells, " | ") + " |\n")
}

func code(text string) string { return "`" + text + "`" }

// program is a storestream built from this tree.
type program struct {
	t    *testing.T
	path string
}

// folder holds the program while the tests run.
var folder string

// build makes the program, once for all tests. Where they have the race detector it has too: go test has
// compiled all its parts like that, and would have to compile them again.
var build = sync.OnceValue(func() error {
	args := []string{"build", "-o", folder}
	info, _ := debug.ReadBuildInfo()
	if slices.Contains(info.Settings, debug.BuildSetting{Key: "-race", Value: "true"}) {
		args = append(args, "-race")
	}
	out, err := exec.Command("go", append(args, "../cmd/storestream")...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("go build: %w\n%s", err, out)
	}
	return nil
})

func TestMain(m *testing.M) {
	var err error
	if folder, err = os.MkdirTemp("", "storestream-docs-"); err != nil {
		panic(err)
	}
	status := m.Run()
	os.RemoveAll(folder)
	os.Exit(status)
}

func buildProgram(t *testing.T) *program {
	t.Helper()
	if err := build(); err != nil {
		t.Fatal(err)
	}
	return &program{t, filepath.Join(folder, "storestream")}
}

func (p *program) run(args ...string) string {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.t.Context(), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, p.path, args...)
	cmd.Env = []string{"GORACE=atexit_sleep_ms=0"} // and nothing of whoever runs the test
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil && cmd.ProcessState.ExitCode() != 4 { // 4: not up to date, because of rows that are garbled
		p.t.Fatalf("storestream %s: %v\n%s", strings.Join(args, " "), err, stderr.Bytes())
	}
	return string(out)
}

// help is what a command says of itself.
type help struct {
	path     []string
	short    string
	usage    string
	flags    []helpFlag
	global   []helpFlag // of every command
	commands []help
}

type helpFlag struct{ name, about string }

var (
	helpCommand = regexp.MustCompile(`^  ([a-z-]+) +(\S.*)$`)
	helpOption  = regexp.MustCompile(`^ +((?:-\w, )?--[a-z-]+(?: \S+)?) {2,}(\S.*)$`)
)

func (p *program) help(path []string, short string) help {
	h := help{path: path, short: short}
	part := ""
	for line := range strings.Lines(p.run(append(slices.Clone(path), "--help")...)) {
		line = strings.TrimRight(line, "\n")
		if strings.HasSuffix(line, ":") && !strings.HasPrefix(line, " ") {
			part = line
			continue
		}
		command, option := helpCommand.FindStringSubmatch(line), helpOption.FindStringSubmatch(line)
		switch {
		case part == "Usage:" && h.usage == "":
			h.usage = strings.TrimSuffix(strings.TrimSpace(line), " [flags]")
		case part == "Available Commands:" && command != nil && command[1] != "help":
			h.commands = append(h.commands, p.help(append(slices.Clone(path), command[1]), command[2]))
		case part == "Flags:" && option != nil && !strings.Contains(option[1], "--help"):
			h.flags = append(h.flags, helpFlag{option[1], option[2]})
		case part == "Global Flags:" && option != nil:
			h.global = append(h.global, helpFlag{option[1], option[2]})
		}
	}
	return h
}

// each calls f for h and every command below it.
func (h help) each(f func(help)) {
	f(h)
	for _, c := range h.commands {
		c.each(f)
	}
}

func TestTheReferenceNamesEveryCommandFlagAndKey(t *testing.T) {
	p := buildProgram(t)
	root := p.help(nil, "")
	commands, flags := newTable("command", "does"), newTable("flag", "of", "")
	root.each(func(h help) {
		if len(h.commands) == 0 {
			commands.row(code(h.usage), h.short)
		}
		for _, f := range h.flags {
			of := code(strings.TrimSpace("storestream " + strings.Join(h.path, " ")))
			if slices.Contains(root.commands[0].global, f) {
				of = "every command"
			}
			flags.row(code(f.name), of, f.about)
		}
	})
	generated(t, "commands", commands.String())
	generated(t, "flags", flags.String())

	keys, resources := configuration(t, p)
	generated(t, "keys", keys)
	generated(t, "resource keys", resources)

	_, statuses, _ := strings.Cut(p.run("--help"), "Exit status: ")
	statuses, _, _ = strings.Cut(statuses, ".")
	list := newTable("status", "")
	for _, s := range strings.Split(statuses, ", ") {
		number, meaning, _ := strings.Cut(s, " ")
		list.row(number, meaning)
	}
	generated(t, "exit statuses", list.String())
}

// shown is what `config show` prints: a key and its value a line.
func (p *program) shown(flags ...string) (keys [][2]string) {
	for line := range strings.Lines(p.run(append([]string{"config", "show"}, flags...)...)) {
		cells := regexp.MustCompile(` {2,}`).Split(strings.TrimSpace(line), -1)
		if len(cells) == 3 && cells[0] != "KEY" {
			keys = append(keys, [2]string{cells[0], cells[1]})
		}
	}
	return keys
}

// configuration is the keys with their defaults, and what config/schema.json says of them.
func configuration(t *testing.T, p *program) (keys, resources string) {
	t.Helper()
	about := keyWords(t)
	general := newTable("key", "default", "")
	for _, k := range p.shown() {
		if strings.HasPrefix(k[0], "resources.") {
			continue
		}
		general.row(code(k[0]), code(k[1]), about[k[0]])
	}
	return general.String(), resourceKeys(p)
}

// resourceKeys are those below resources, where there is a database to read from.
func resourceKeys(p *program) string {
	columns, rows := []string{"resource"}, [][]string{}
	for _, k := range p.shown("--set", "postgres.dsn=postgres://student_ro@127.0.0.1/store") {
		path := strings.Split(k[0], ".")
		if path[0] != "resources" {
			continue
		}
		if len(rows) == 0 || rows[len(rows)-1][0] != code(path[1]) {
			rows = append(rows, []string{code(path[1])})
		}
		if column := code(path[2]); !slices.Contains(columns, column) {
			columns = append(columns, column)
		}
		rows[len(rows)-1] = append(rows[len(rows)-1], code(k[1]))
	}
	list := newTable(columns...)
	for _, row := range rows {
		list.row(row...)
	}
	return list.String()
}

// keyWords is what the schema of the configuration says of each key.
func keyWords(t *testing.T) map[string]string {
	t.Helper()
	type section struct {
		Description string
		Properties  map[string]section
	}
	var whole section
	if err := json.Unmarshal([]byte(config.JSONSchema), &whole); err != nil {
		t.Fatal(err)
	}
	words := map[string]string{}
	var add func(path string, s section)
	add = func(path string, s section) {
		words[strings.TrimPrefix(path, ".")] = s.Description
		for name, child := range s.Properties {
			add(path+"."+name, child)
		}
	}
	add("", whole)
	return words
}

func TestTheReferenceHasEveryFieldOfTheSchemas(t *testing.T) {
	p := buildProgram(t)
	var all strings.Builder
	for _, resource := range schemas.Names() {
		var schema struct {
			Name   string
			Fields []struct {
				Name, Doc string
				Type      any
				Tags      []string `json:"confluent:tags"`
			}
		}
		if err := json.Unmarshal([]byte(p.run("schema", "show", resource)), &schema); err != nil {
			t.Fatal(err)
		}
		fields := newTable(code(resource), "Avro", "null", "")
		for _, f := range schema.Fields {
			name, null := avroType(f.Type)
			about := f.Doc
			if slices.Contains(f.Tags, "PII") {
				about += " Personal."
			}
			fields.row(code(f.Name), name, map[bool]string{true: "yes", false: "no"}[null], about)
		}
		fmt.Fprintf(&all, "Record `%s`:\n\n%s\n", schema.Name, fields)
	}
	generated(t, "fields", all.String())
}

func avroType(of any) (name string, null bool) {
	switch x := of.(type) {
	case []any:
		name, _ = avroType(x[1])
		return name, true
	case map[string]any:
		if x["logicalType"] == "decimal" {
			return fmt.Sprintf("decimal(%v, %v)", x["precision"], x["scale"]), false
		}
		return fmt.Sprint(x["logicalType"]), false
	}
	return fmt.Sprint(of), false
}

// declared is the collectors that metrics declares.
type declared struct {
	prometheus.Registerer
	all []prometheus.Collector
}

func (d *declared) MustRegister(collectors ...prometheus.Collector) {
	d.all = append(d.all, collectors...)
}

var description = regexp.MustCompile(`fqName: "(\w+)", help: "([^"]*)", ` +
	`.*constLabels: \{([^}]*)\}, variableLabels: \{([^}]*)\}`)

func TestTheReferenceHasEveryMetric(t *testing.T) {
	reg := &declared{}
	set := metrics.New(reg)
	set.Resource("orders")
	set.Render(func() []health.Resource {
		return []health.Resource{{Name: "orders", LagSince: new(schemas.Instant)}}
	})
	var rows [][]string
	for _, c := range reg.all {
		kind := "gauge"
		switch c.(type) {
		case prometheus.Gauge: // which has the methods of a Counter too
		case *prometheus.CounterVec, prometheus.Counter:
			kind = "counter"
		case *prometheus.HistogramVec, prometheus.Histogram:
			kind = "histogram"
		}
		found := make(chan *prometheus.Desc)
		go func() { defer close(found); c.Describe(found) }()
		for desc := range found {
			m := description.FindStringSubmatch(desc.String())
			if m == nil {
				t.Fatalf("a description that cannot be read: %s", desc)
			}
			rows = append(rows, []string{code(m[1]), kind, labels(m[3], m[4]), m[2]})
		}
	}
	slices.SortFunc(rows, func(a, b []string) int { return strings.Compare(a[0], b[0]) })
	rows = slices.CompactFunc(rows, slices.Equal) // one for each value of a label
	list := newTable("metric", "kind", "labels", "")
	for _, r := range rows {
		list.row(r...)
	}
	generated(t, "metrics", list.String())
}

// labels is the names of the labels, those of constant value first.
func labels(constant, variable string) string {
	var names []string
	if name, _, found := strings.Cut(constant, "="); found {
		names = append(names, name)
	}
	if variable != "" {
		names = append(names, strings.Split(variable, ",")...)
	}
	return strings.Join(names, ", ")
}

// What storestream makes of an empty cluster: the settings of its topics, the headers of its dead letters.
func TestTheReferenceHasTheTopicsThatStorestreamMakes(t *testing.T) {
	broker, registry := servers.BrokerForTest(t, servers.BrokerConfig{}), servers.RegistryForTest(t)
	fake, err := storefake.Start(t.Context(), storefake.Config{Faults: storefake.Faults{GarbledRows: .05},
		Size: storefake.Size{Users: 50, Orders: 50, Products: 50, Days: 5}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(fake.Close)
	once := []string{"run", "--once"}
	for _, key := range []string{"store.base_url=" + fake.BaseURL(), "store.max_requests_per_second=1000",
		"kafka.brokers=" + broker.Brokers()[0], "registry.url=" + registry.URL, "http.listen=127.0.0.1:0"} {
		once = append(once, "--set", key)
	}
	for _, name := range schemas.Names() {
		if !slices.Contains(storefake.Names(), name) { // a new one, which storefake does not have yet
			once = append(once, "--set", "resources."+name+".enabled=false")
		}
	}
	buildProgram(t).run(once...)

	client, err := kgo.NewClient(kgo.SeedBrokers(broker.Brokers()...), kgo.ConsumeTopics("store.dead_letters"),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	generated(t, "topics", topicsOf(t, kadm.NewClient(client)))

	text := readReference(t)
	fetched := client.PollFetches(t.Context())
	if err := fetched.Err(); err != nil || fetched.NumRecords() == 0 {
		t.Fatalf("%d dead letters, error %v", fetched.NumRecords(), err)
	}
	fetched.EachRecord(func(r *kgo.Record) {
		for _, h := range r.Headers {
			if !strings.Contains(text, "| "+code(h.Key)+" |") {
				t.Errorf("%s does not name the header %s of a dead letter", referenceFile, h.Key)
			}
		}
	})
}

func topicsOf(t *testing.T, admin *kadm.Client) string {
	t.Helper()
	topics, err := admin.ListTopics(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	list := newTable("topic", "partitions", "settings")
	for _, topic := range topics.Sorted() {
		if topic.IsInternal {
			continue
		}
		found, err := admin.DescribeTopicConfigs(t.Context(), topic.Topic)
		if err != nil {
			t.Fatal(err)
		}
		var settings []string
		for _, s := range found[0].Configs {
			if s.Source == kmsg.ConfigSourceDynamicTopicConfig {
				settings = append(settings, code(s.Key+"="+s.MaybeValue()))
			}
		}
		slices.Sort(settings)
		list.row(code(topic.Topic), fmt.Sprint(len(topic.Partitions)), strings.Join(settings, ", "))
	}
	return list.String()
}

// Each JSON object of the contract is a table after <!-- members of NAME -->, with one or more members a row.
func TestTheReferenceHasEveryMemberOfEveryObject(t *testing.T) {
	text := readReference(t)
	for name, of := range map[string]any{"watermark": watermark.Watermark{}, "request": watermark.Request{},
		"status": status.Snapshot{}} {
		objects := map[string][]string{}
		members(name, reflect.TypeOf(of), objects)
		for path, want := range objects {
			_, rest, found := strings.Cut(text, "<!-- members of "+path+" -->\n")
			if !found {
				t.Errorf("%s has no table of the members of %s: %s", referenceFile, path, strings.Join(want, ", "))
				continue
			}
			have := firstColumn(rest)
			for _, member := range want {
				if !slices.Contains(have, member) {
					t.Errorf("%s does not name the member %s of %s", referenceFile, member, path)
				}
			}
			for _, member := range have {
				if !slices.Contains(want, member) {
					t.Errorf("%s names a member %s of %s, which there is not", referenceFile, member, path)
				}
			}
		}
	}
}

// members finds the members of the object that of becomes, and of those within it.
func members(path string, of reflect.Type, into map[string][]string) {
	switch of.Kind() {
	case reflect.Pointer:
		members(path, of.Elem(), into)
		return
	case reflect.Slice, reflect.Array:
		members(path+"[]", of.Elem(), into)
		return
	case reflect.Map:
		members(path+"{}", of.Elem(), into)
		return
	case reflect.Struct:
	default:
		return
	}
	if of == reflect.TypeFor[time.Time]() || strings.HasPrefix(path, "status.") &&
		strings.HasSuffix(of.PkgPath(), "/watermark") { // which has its own tables
		return
	}
	for i := range of.NumField() {
		f := of.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "" || name == "-" {
			continue
		}
		into[path] = append(into[path], name)
		members(path+"."+name, f.Type, into)
	}
}

var quoted = regexp.MustCompile("`([^`]+)`")

// firstColumn is what stands in backticks in the first column of the table at the start of text.
func firstColumn(text string) (names []string) {
	n := 0
	for line := range strings.Lines(text) {
		if !strings.HasPrefix(line, "|") {
			return names
		}
		if n++; n <= 2 {
			continue
		}
		first, _, _ := strings.Cut(line[1:], "|")
		for _, m := range quoted.FindAllStringSubmatch(first, -1) {
			names = append(names, m[1])
		}
	}
	return names
}

// What commands print with -o json is built from structs of theirs: each member stands in the reference.
func TestTheReferenceHasWhatCommandsPrintAsJSON(t *testing.T) {
	_, part, _ := strings.Cut(readReference(t), "## What commands print")
	part, _, _ = strings.Cut(part, "\n## ")
	named := map[string]bool{}
	for _, m := range quoted.FindAllStringSubmatch(part, -1) {
		named[m[1]] = true
	}
	for _, member := range literals(t, "../cmd/storestream", regexp.MustCompile(`json:"([a-z_]+)`)) {
		if !named[member] {
			t.Errorf("%s does not name the member %s of what a command prints", referenceFile, member)
		}
	}
}

func TestTheReferenceHasEveryReason(t *testing.T) {
	list := newTable("code", "state", "the text has")
	for _, r := range health.Reasons {
		list.row(code(r.Code), code(string(r.State)), "`"+strings.Join(r.Texts(), "`, `")+"`")
	}
	generated(t, "reasons", list.String())
}

func TestTheReferenceHasEveryPathOfTheStatusServer(t *testing.T) {
	text := readReference(t)
	paths := literals(t, "../internal/status", regexp.MustCompile(`^"(/[a-z.]*)"$`))
	if len(paths) == 0 {
		t.Fatal("no path found in internal/status")
	}
	for _, path := range paths {
		if !strings.Contains(text, "| "+code(path)+" |") {
			t.Errorf("%s does not name the path %s", referenceFile, path)
		}
	}
}

// literals is what pattern finds in the literals of the Go files in and below folder, tests apart.
func literals(t *testing.T, folder string, pattern *regexp.Regexp) (found []string) {
	t.Helper()
	inspect(t, folder, func(_ string, n ast.Node) {
		if lit, ok := n.(*ast.BasicLit); ok {
			for _, m := range pattern.FindAllStringSubmatch(lit.Value, -1) {
				found = append(found, m[1])
			}
		}
	})
	return found
}
