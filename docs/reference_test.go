package docs

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
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

// helpIndent begins a line that continues the text of a flag.
const helpIndent = "          "

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
		case part == "Flags:" && strings.HasPrefix(line, helpIndent) && len(h.flags) > 0:
			h.flags[len(h.flags)-1].about += " " + strings.TrimSpace(line)
		case part == "Global Flags:" && strings.HasPrefix(line, helpIndent):
			h.global[len(h.global)-1].about += " " + strings.TrimSpace(line)
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
	commands := newTable("command", "does")
	var flags []helpFlag
	of := map[helpFlag][]string{} // commands
	root.each(func(h help) {
		if (len(h.commands) == 0 || len(h.flags) > 0) && h.path != nil && h.path[0] != "completion" {
			commands.row(code(strings.TrimPrefix(h.usage, "storestream ")), h.short)
		}
		for _, f := range h.flags {
			if of[f] == nil {
				flags = append(flags, f)
			}
			if path := strings.Join(h.path, " "); h.path == nil || h.path[0] != "completion" {
				of[f] = append(of[f], path)
			} else {
				of[f] = []string{"completion"}
			}
		}
		if len(h.commands) > 0 && h.path != nil && h.path[0] == "completion" {
			commands.row("`completion bash`, `fish`, `powershell` or `zsh`", h.short)
		}
	})
	generated(t, "commands", commands.String())
	list := newTable("flag", "commands", "meaning")
	slices.SortStableFunc(flags, func(a, b helpFlag) int {
		return strings.Compare(strings.TrimLeft(a.name, "-"), strings.TrimLeft(b.name, "-"))
	})
	for _, f := range flags {
		if of[f][0] == "completion" || f.name == "-v, --version" {
			continue // of every program that has the library
		}
		checkMeaning(t, f.name, f.about)
		if slices.Contains(root.commands[0].global, f) {
			list.row(code(f.name), "all", firstSentence(f.about))
		} else {
			list.row(code(f.name), code(strings.Join(of[f], ", ")), firstSentence(f.about))
		}
	}
	generated(t, "flags", list.String())

	keys, resources := configuration(t, p)
	generated(t, "keys", keys)
	generated(t, "resource keys", resources)

	_, statuses, _ := strings.Cut(p.run("--help"), "Exit status: ")
	statuses, _, _ = strings.Cut(statuses, ".")
	exits := newTable("status", "meaning")
	for _, s := range strings.Split(statuses, ", ") {
		number, meaning, _ := strings.Cut(s, " ")
		exits.row(number, meaning)
	}
	generated(t, "exit statuses", exits.String())
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
	general := newTable("key: default", "meaning")
	for _, k := range p.shown() {
		if strings.HasPrefix(k[0], "resources.") {
			continue
		}
		meaning := firstSentence(about[k[0]])
		checkMeaning(t, k[0], meaning)
		general.row(code(k[0]+": "+k[1]), meaning)
	}
	return general.String(), resourceKeys(t, p, about)
}

// resourceKeys are those below resources, with the defaults of both sources.
func resourceKeys(t *testing.T, p *program, about map[string]string) string {
	t.Helper()
	defaults := map[string]map[string]string{config.Postgres: {}, config.REST: {}}
	var keys []string
	shown := p.shown("--set", "postgres.dsn=postgres://student_ro@127.0.0.1/store")
	for _, k := range shown {
		path := strings.Split(k[0], ".")
		if path[0] != "resources" {
			continue
		}
		source := config.REST
		if slices.Contains(shown, [2]string{"resources." + path[1] + ".source", config.Postgres}) {
			source = config.Postgres
		}
		if have, found := defaults[source][path[2]]; found && have != k[1] {
			t.Errorf("%s has another default than other resources of %s: %s", k[0], source, k[1])
		}
		defaults[source][path[2]] = k[1]
		if !slices.Contains(keys, path[2]) {
			keys = append(keys, path[2])
		}
	}
	list := newTable("key: PostgreSQL, REST", "meaning")
	for _, key := range keys {
		meaning := firstSentence(about["resources.orders."+key])
		checkMeaning(t, key, meaning)
		list.row(code(key+": "+defaults[config.Postgres][key]+", "+defaults[config.REST][key]), meaning)
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
	// every are the fields of all rows. These may not be null, and all others may.
	every := map[string]string{"id": "long", "created_at": "timestamp-millis", "updated_at": "timestamp-millis"}
	fields := newTable("field: Avro type", "meaning")
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
		for _, f := range schema.Fields {
			name, null := avroType(f.Type)
			if null == (every[f.Name] != "") || !null && every[f.Name] != name {
				t.Errorf("%s does not say that field %s of %s is %s, and whether it may be null", referenceFile, f.Name,
					resource, name)
			}
			if !null {
				continue
			}
			about := firstSentence(f.Doc)
			if slices.Contains(f.Tags, "PII") {
				name += " PII"
			}
			fields.row(code(resource+"."+f.Name+": "+name), about)
		}
	}
	generated(t, "fields", fields.String())
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
			rows = append(rows, []string{m[1], kind, labels(m[3], m[4]), m[2]})
		}
	}
	slices.SortFunc(rows, func(a, b []string) int { return strings.Compare(a[0], b[0]) })
	rows = slices.CompactFunc(rows, slices.Equal) // one for each value of a label
	list := newTable("metric", "meaning")
	for _, r := range rows {
		checkMeaning(t, r[0], r[3])
		usual := "gauge"
		switch {
		case strings.HasSuffix(r[0], "_total"):
			usual = "counter"
		case strings.HasSuffix(r[0], "_duration_seconds"):
			usual = "histogram"
		}
		if r[1] != usual {
			t.Errorf("%s is a %s, and %s says that it is a %s", r[0], r[1], referenceFile, usual)
		}
		list.row(code(r[0]+"{"+r[2]+"}"), r[3])
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
	var columns []map[string]string // the data topics have one
	names := []string{"setting"}
	for _, topic := range topics.Sorted() {
		if topic.IsInternal {
			continue
		}
		found, err := admin.DescribeTopicConfigs(t.Context(), topic.Topic)
		if err != nil {
			t.Fatal(err)
		}
		column := map[string]string{"partitions": fmt.Sprint(len(topic.Partitions))}
		for _, s := range found[0].Configs {
			if s.Source == kmsg.ConfigSourceDynamicTopicConfig {
				column[s.Key] = s.MaybeValue()
			}
		}
		name := strings.TrimPrefix(topic.Topic, "store.")
		if slices.Contains(schemas.Names(), name) {
			name = "RESOURCE"
		}
		if i := slices.Index(names, code("store."+name)); i < 0 {
			names, columns = append(names, code("store."+name)), append(columns, column)
		} else if !maps.Equal(columns[i-1], column) {
			t.Errorf("%s has other settings than the data topics before it: %v", topic.Topic, column)
		}
	}
	keys := map[string]bool{}
	for _, column := range columns {
		for key := range column {
			keys[key] = true
		}
	}
	list := newTable(names...)
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		row := []string{code(key)}
		for _, column := range columns {
			row = append(row, column[key])
		}
		list.row(row...)
	}
	return list.String()
}

// The constants of package health are the states, and their comments what each means.
func TestTheReferenceHasEveryState(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), "../internal/health/state.go", nil, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	list := newTable("state", "meaning")
	ast.Inspect(file, func(n ast.Node) bool {
		if spec, ok := n.(*ast.ValueSpec); ok {
			state := strings.Trim(spec.Values[0].(*ast.BasicLit).Value, `"`)
			meaning := strings.TrimSpace(spec.Comment.Text())
			checkMeaning(t, state, meaning)
			list.row(code(state), meaning)
		}
		return true
	})
	generated(t, "states", list.String())
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

func TestTheReferenceHasEveryReason(t *testing.T) {
	list := newTable("code: state", "the text has")
	for _, r := range health.Reasons {
		list.row(code(r.Code+": "+string(r.State)), "`"+strings.Join(r.Texts(), "`, `")+"`")
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
