//go:build consumers

package consumers

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/storestream/storestream/internal/standins/storefake"
)

// example is a folder of examples/, and how it is run.
type example struct {
	name string
	// embedded: it is tried with the demo's broker and registry too.
	embedded bool
	// prepare installs what it needs, and returns what is run in a copy of its folder. Where it does not take
	// the commands of docs/consuming.md, that page says what differs.
	prepare func(r *running) *exec.Cmd
	// rows are what its tables hold now.
	rows func(r *running) (tables, error)
	// more is what differs from the service in what else it keeps; nil: it keeps no more.
	more func(r *running) ([]string, error)
}

var examples = []example{
	{name: "python", embedded: true, prepare: prepareVenv, rows: sqliteRows},
	{name: "go", embedded: true, prepare: preparePage, rows: postgresRows},
	{name: "connect", prepare: prepareConnect, rows: postgresRows},
	{name: "node", prepare: preparePage, rows: postgresRows},
	{name: "quix", prepare: prepareVenv, rows: sqliteRows},
	{name: "streams", prepare: prepareStreams, rows: jsonRows, more: detailDifferences},
	{name: "flink", prepare: prepareFlink, rows: postgresRows},
	{name: "iceberg", prepare: prepareIceberg, rows: icebergRows, more: resumed},
}

// running is an example that reads a stack's topics.
type running struct {
	example
	s       *stack
	dir     string // a copy of its folder, with the stack's addresses
	command *exec.Cmd
	child   *child
}

// source is the example's folder in the clone.
func (e *example) source() string { return filepath.Join(root, "examples", e.name) }

// addresses puts the stack's addresses in place of the demo's, and what else is to be replaced.
func (s *stack) addresses(replace ...string) *strings.Replacer {
	native := strings.Replace(s.registry, "/apis/ccompat/v7", "/apis/registry/v2", 1)
	return strings.NewReplacer(append(replace, "127.0.0.1:9092", s.brokers,
		"http://127.0.0.1:8081/apis/registry/v2", native, "http://127.0.0.1:8081/apis/ccompat/v7", s.registry,
		"http://127.0.0.1:8081", s.registry, "127.0.0.1:5432", fmt.Sprintf("127.0.0.1:%d", s.postgres.Port))...)
}

// prepared copies an example, with the stack's addresses, and installs what it needs.
func (s *stack) prepared(e example, replace ...string) *running {
	s.t.Helper()
	r := &running{example: e, s: s, dir: filepath.Join(s.t.TempDir(), e.name)}
	if err := os.CopyFS(r.dir, os.DirFS(e.source())); err != nil {
		s.t.Fatal(err)
	}
	files, err := os.ReadDir(r.dir)
	if err != nil {
		s.t.Fatal(err)
	}
	for _, file := range files {
		if path := filepath.Join(r.dir, file.Name()); !file.IsDir() {
			copyFile(s.t, path, path, s.addresses(replace...))
		}
	}
	r.command = e.prepare(r)
	return r
}

// replace puts other texts into a file of the example's copy.
func (r *running) replace(file string, texts ...string) {
	r.s.t.Helper()
	path := filepath.Join(r.dir, file)
	copyFile(r.s.t, path, path, strings.NewReplacer(texts...))
}

// start starts the example, once more after it was killed.
func (r *running) start() {
	r.s.t.Helper()
	cmd := exec.Command(r.command.Path, r.command.Args[1:]...)
	cmd.Dir, cmd.Env = r.dir, append(os.Environ(), r.command.Env...)
	r.child = launch(r.s.t, r.name, cmd)
}

// alive fails t if the example has ended.
func (r *running) alive(t *testing.T) {
	t.Helper()
	if r.child.ended() {
		t.Fatalf("the example %s has ended: %s\n%s", r.name, r.child.cmd.ProcessState,
			tail(r.child.output(t), 40))
	}
}

// hasBegun waits until the example has rows of every resource.
func (r *running) hasBegun() {
	r.s.t.Helper()
	eventually(r.s.t, r.name+" has begun", func() (bool, string) {
		r.alive(r.s.t)
		got, err := r.rows(r)
		return err == nil && len(got) == len(storefake.Names()), fmt.Sprintf("%d tables, %v", len(got), err)
	})
}

// isEqual waits until the example's tables equal the service.
func (r *running) isEqual(t *testing.T) {
	t.Helper()
	rows := 0
	eventually(t, "what "+r.name+" holds equals the service", func() (bool, string) {
		r.alive(t)
		got, err := r.rows(r)
		if err != nil {
			return false, err.Error()
		}
		rows = 0
		for _, table := range got {
			rows += len(table)
		}
		found := r.s.differences(got)
		if len(found) == 0 && r.more != nil {
			if found, err = r.more(r); err != nil {
				return false, err.Error()
			}
		}
		return len(found) == 0, summary(found)
	})
	t.Logf("%s: %d rows are equal", r.name, rows)
}

// page is what docs/consuming.md has people paste for the example, with the stack's addresses: the lines that
// install what it needs, and the last one, which runs it by what the others have exported.
func (r *running) page() (install []string, run *exec.Cmd) {
	r.s.t.Helper()
	text, err := os.ReadFile(filepath.Join(root, "docs", "consuming.md"))
	if err != nil {
		r.s.t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), "```\ncd examples/"+r.name+"\n")
	block, _, found := strings.Cut(rest, "\n```\n")
	if !found {
		r.s.t.Fatalf("consuming.md has no commands that begin with cd examples/%s", r.name)
	}
	lines := strings.Split(r.s.addresses().Replace(block), "\n")
	last := len(lines) - 1
	script := lines[last]
	for _, line := range lines[:last] {
		if strings.HasPrefix(line, "export ") {
			script = line + "\n" + script
		}
	}
	return lines[:last], exec.Command("bash", "-c", script)
}

// preparePage is for an example that is installed and run just as the page says.
func preparePage(r *running) *exec.Cmd {
	r.s.t.Helper()
	copyFile(r.s.t, filepath.Join(root, "examples", "tables.sql"), filepath.Join(r.dir, "..", "tables.sql"), nil)
	install, run := r.page()
	do(r.s.t, r.dir, "bash", "-ec", strings.Join(install, "\n"))
	return run
}

// prepareVenv is for a Python program with a requirements.txt. What the page has installed is there for the
// next run of the test, too.
func prepareVenv(r *running) *exec.Cmd {
	r.s.t.Helper()
	install, run := r.page()
	dir := installed(r.s.t, r.source(), []string{"requirements.txt"}, []string{"bash", "-ec",
		strings.Join(install, "\n")})
	if err := os.Symlink(filepath.Join(dir, "venv"), filepath.Join(r.dir, "venv")); err != nil {
		r.s.t.Fatal(err)
	}
	return run
}

// sqliteDump prints the tables of store.db: for each row its table, a tab, and the row as JSON.
const sqliteDump = `
import json, sqlite3
db = sqlite3.connect("file:store.db?mode=ro", uri=True)
db.row_factory = sqlite3.Row
for (table,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall():
    for row in db.execute(f"SELECT * FROM {table}"):
        print(table, json.dumps(dict(row)), sep="\t")
`

func sqliteRows(r *running) (tables, error) {
	cmd := exec.CommandContext(r.s.t.Context(), "python3", "-c", sqliteDump)
	cmd.Dir = r.dir
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("read store.db: %w", err)
	}
	return tabbed(out)
}

// tabbed reads lines of a table, a tab, and a row as JSON.
func tabbed(lines []byte) (tables, error) {
	got := tables{}
	for line := range strings.Lines(string(lines)) {
		table, row, _ := strings.Cut(line, "\t")
		if err := got.add(table, []byte(row)); err != nil {
			return nil, err
		}
	}
	return got, nil
}

func prepareConnect(r *running) *exec.Cmd {
	r.s.t.Helper()
	plugins := installed(r.s.t, r.source(), []string{"pom.xml"}, []string{"mvn", "-q", "-B", "package"})
	worker := installed(r.s.t, filepath.Join(root, "lab", "consumers", "connect"), []string{"pom.xml"},
		[]string{"mvn", "-q", "-B", "dependency:copy-dependencies", "-DoutputDirectory=jars"})
	r.s.makeDatabase(r.name) // the connector makes the tables
	r.replace("worker.properties", "plugin.path=plugins", "plugin.path="+filepath.Join(plugins, "plugins"),
		"127.0.0.1:8083", "127.0.0.1:0")
	return exec.Command("java", "-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1",
		"-Dorg.slf4j.simpleLogger.defaultLogLevel=warn", "-cp", filepath.Join(worker, "jars", "*"),
		"org.apache.kafka.connect.cli.ConnectStandalone", "worker.properties", "store-to-postgres.properties")
}

func prepareStreams(r *running) *exec.Cmd {
	r.s.t.Helper()
	do(r.s.t, r.dir, "mvn", "-q", "-B", "compile") // the page's command does it too: by then all is fetched
	_, run := r.page()
	run.Env = []string{"BROKERS=" + r.s.brokers, "REGISTRY=" + r.s.registry,
		"MAVEN_OPTS=-Xmx512m -XX:+UseSerialGC -XX:TieredStopAtLevel=1"}
	return run
}

func prepareFlink(r *running) *exec.Cmd {
	r.s.t.Helper()
	r.s.database(r.name)
	return prepareSQL(r, "-Duser.timezone=UTC") // see docs/consuming.md
}

func prepareIceberg(r *running) *exec.Cmd {
	r.s.t.Helper()
	r.replace("store.sql", "/tmp/store-iceberg", filepath.Join(r.dir, "lake"))
	return prepareSQL(r, "--add-opens=java.base/java.nio=ALL-UNNAMED",
		"--add-opens=java.base/java.util=ALL-UNNAMED")
}

// prepareSQL is for an example that is a store.sql for Flink.
func prepareSQL(r *running, options ...string) *exec.Cmd {
	r.s.t.Helper()
	jars := flinkJars(r)
	source := filepath.Join(root, "lab", "consumers", "flink", "RunSql.java")
	do(r.s.t, r.dir, "javac", "-d", "classes", "-cp", jars, source)
	args := append([]string{"-Xmx1g", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Djava.io.tmpdir=" + r.dir,
		"-Dorg.slf4j.simpleLogger.defaultLogLevel=warn", "-cp", "classes:" + jars}, options...)
	cmd := exec.Command("java", append(args, "RunSql", "store.sql")...)
	cmd.Env = []string{"TZ=America/New_York"} // so that what the page says is what makes the times right
	return cmd
}

// flinkVersion is what a pom.xml says of Flink's version.
var flinkVersion = regexp.MustCompile(`<flink.version>(.*)</flink.version>`)

// flinkJars is the class path of what the example's pom.xml names, and of a Flink of the version there.
func flinkJars(r *running) string {
	r.s.t.Helper()
	pom, err := os.ReadFile(filepath.Join(r.source(), "pom.xml"))
	if err != nil {
		r.s.t.Fatal(err)
	}
	version := flinkVersion.FindStringSubmatch(string(pom))
	if version == nil {
		r.s.t.Fatalf("the pom.xml of examples/%s has no flink.version", r.name)
	}
	fetch := []string{"mvn", "-q", "-B", "dependency:copy-dependencies", "-DincludeScope=runtime",
		"-Dflink.version=" + version[1], "-DoutputDirectory=jars"}
	flink := installed(r.s.t, filepath.Join(root, "lab", "consumers", "flink"), []string{"pom.xml"}, fetch)
	connectors := installed(r.s.t, r.source(), []string{"pom.xml"}, fetch)
	return filepath.Join(flink, "jars", "*") + ":" + filepath.Join(connectors, "jars", "*")
}

// icebergRows reads the tables by Iceberg's own reader: files of rows, less those that files of deletes name.
func icebergRows(r *running) (tables, error) {
	source := filepath.Join(root, "lab", "consumers", "iceberg", "ReadIceberg.java")
	cmd := exec.CommandContext(r.s.t.Context(), "java", "-Xmx1g", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1",
		"-Dorg.slf4j.simpleLogger.defaultLogLevel=error", "-cp", flinkJars(r), source,
		"file://"+filepath.Join(r.dir, "lake", "warehouse"))
	var said strings.Builder
	cmd.Stderr = &said
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("read the Iceberg tables: %w\n%s", err, said.String())
	}
	return tabbed(out)
}

// resumed says so if the example was started again and did not begin with a checkpoint.
func resumed(r *running) ([]string, error) {
	if !strings.Contains(r.child.output(r.s.t), "begins with the checkpoint ") {
		return []string{"it began with the first record, and not with a checkpoint"}, nil
	}
	return nil, nil
}

// jsonRows reads the topics json.orders and so on.
func jsonRows(r *running) (tables, error) {
	got := tables{}
	for _, resource := range storefake.Names() {
		newest, err := r.s.newest("json." + resource)
		if err != nil {
			return nil, err
		}
		for _, text := range newest {
			if err := got.add(resource, text); err != nil {
				return nil, err
			}
		}
	}
	return got, nil
}

// detailDifferences compares json.item_details with the service: every item with its order, the order's user,
// and the product.
func detailDifferences(r *running) ([]string, error) {
	newest, err := r.s.newest("json.item_details")
	if err != nil {
		return nil, err
	}
	orders, users := r.s.fake.Rows(storefake.Orders), r.s.fake.Rows(storefake.Users)
	products := r.s.fake.Rows(storefake.Products)
	var found []string
	joined := func(row map[string]any, name, resource string, id any, of map[int64]storefake.Row) {
		got, _ := row[name].(map[string]any)
		want, there := of[idOf(id)]
		delete(row, name)
		switch {
		case there && got == nil, !there && got != nil:
			found = append(found, fmt.Sprintf("an item's %s %v: %v, the service has %v", name, id, got, want))
		case there:
			found = append(found, rowDifferences(resource, idOf(id), got, want)...)
		}
	}
	items := tables{}
	for _, text := range newest {
		if err := items.add(storefake.OrderItems, text); err != nil {
			return nil, err
		}
	}
	for id, item := range items[storefake.OrderItems] {
		want := r.s.fake.Rows(storefake.OrderItems)[id]
		if want == nil {
			found = append(found, fmt.Sprintf("item %d is not in the service", id))
			continue
		}
		if order, ok := item["order"].(map[string]any); ok {
			joined(order, "user", storefake.Users, order["user_id"], users)
		}
		joined(item, "order", storefake.Orders, item["order_id"], orders)
		joined(item, "product", storefake.Products, item["product_id"], products)
		found = append(found, rowDifferences(storefake.OrderItems, id, item, want)...)
	}
	if n := r.s.fake.Count(storefake.OrderItems); n != len(newest) {
		found = append(found, fmt.Sprintf("%d items, the service has %d", len(newest), n))
	}
	return found, nil
}

// idOf is the id that a row refers to; 0, which no row has, where it refers to none.
func idOf(value any) int64 {
	number, _ := value.(json.Number)
	id, _ := number.Int64()
	return id
}

// postgresRows reads the tables of a database that has the example's name.
func postgresRows(r *running) (tables, error) {
	ctx, cancel := context.WithTimeout(r.s.t.Context(), patience)
	defer cancel()
	conn, err := pgx.Connect(ctx, r.s.postgres.AdminDSN(r.name))
	if err != nil {
		return nil, err
	}
	defer conn.Close(ctx)
	got := tables{}
	for _, resource := range storefake.Names() {
		rows, err := conn.Query(ctx, "SELECT to_jsonb(t) FROM "+pgx.Identifier{resource}.Sanitize()+" t")
		if err != nil {
			return nil, err
		}
		texts, err := pgx.CollectRows(rows, pgx.RowTo[json.RawMessage])
		if err != nil {
			return nil, err
		}
		for _, text := range texts {
			if err := got.add(resource, text); err != nil {
				return nil, err
			}
		}
	}
	return got, nil
}
