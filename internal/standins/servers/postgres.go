package servers

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

const (
	// AdminUser is the superuser of every PostgreSQL that is started here, and may use PgBouncer's console.
	AdminUser = "postgres"
	// AdminPassword is the password of AdminUser.
	AdminPassword = "postgres"

	postgresPatience = 60 * time.Second // to become ready; it takes about a second, more on a busy machine
)

// PostgresConfig says how to start a PostgreSQL. The zero value is good.
type PostgresConfig struct {
	// Dir keeps the data of an earlier run. "" is a temporary folder, which Stop removes.
	Dir string
	// InMemory puts the temporary folder into memory, if the machine has room. A cluster has a thousand files
	// and a database three hundred. To create and remove them on a disk is half of a test's work.
	InMemory bool
	Port     int               // 0 stands for a free one
	Settings map[string]string // postgresql.conf, on top of postgresSettings
	// Certificate is shown to clients. Nil means no TLS.
	Certificate *Certificate
	// Clients, with a Certificate, replaces passwords over TLS: a certificate of this authority is the login of
	// the role that it names. If it is nil, logins over TLS are as without.
	Clients *Authority
}

// postgresSettings are for speed and a small footprint: the data of these servers is never worth a disk sync.
// Commits stay synchronous all the same: otherwise Kill would take back rows that a reader has seen, and that
// looks like a fault of the reader.
var postgresSettings = map[string]string{
	"fsync":            "off",
	"full_page_writes": "off",
	"listen_addresses": host,
	"max_connections":  "200",
	"max_wal_size":     "512MB",
	"timezone":         "UTC",
	"log_timezone":     "UTC",
}

// Postgres is a running PostgreSQL. Its methods may be called from several goroutines, but Stop ends them
// all.
type Postgres struct {
	Port int

	bin string
	dir *folder
	as  *account
	run *daemon
}

// StartPostgres starts a PostgreSQL and returns once it answers queries. The superuser is AdminUser. All
// roles log in with a password (SCRAM). Errors: ErrNoPostgres if no PostgreSQL can be found or fetched, or
// the server's output.
func StartPostgres(ctx context.Context, c PostgresConfig) (*Postgres, error) {
	bin, err := postgresBinaries()
	if err != nil {
		return nil, err
	}
	as, err := unprivileged()
	if err != nil {
		return nil, err
	}
	parent := os.TempDir()
	if c.InMemory {
		parent = memoryDir()
	}
	dir, err := openFolderIn(parent, c.Dir, "postgres", as)
	if err != nil {
		return nil, err
	}
	return newPostgres(ctx, bin, dir, as, c.Port, func(p *Postgres) error {
		settings := maps.Clone(c.Settings)
		if c.Certificate != nil {
			cert, key, err := as.install(dir, *c.Certificate)
			if err != nil {
				return fmt.Errorf("install the certificate: %w", err)
			}
			settings = map[string]string{"ssl": "on", "ssl_cert_file": cert, "ssl_key_file": key}
			maps.Copy(settings, c.Settings)
		}
		if err := p.initialize(settings); err != nil || c.Clients == nil {
			return err
		}
		return p.askForCertificates(c.Clients)
	})
}

// newPostgres starts a PostgreSQL in dir once fill has put a cluster there. If that fails, it closes the
// folder.
func newPostgres(
	ctx context.Context, bin string, dir *folder, as *account, port int, fill func(*Postgres) error,
) (*Postgres, error) {
	p := &Postgres{bin: bin, dir: dir, as: as}
	p.run = &daemon{launch: p.launch}
	err := fill(p)
	if err == nil {
		err = onFreePorts(1, port, func(ports []int) error {
			p.Port = ports[0]
			return p.run.start(ctx)
		})
	}
	if err != nil {
		dir.close()
		return nil, err
	}
	return p, nil
}

// Standby starts a streaming standby of p, a PostgreSQL of its own with the same users and passwords. It
// answers (read-only) when Standby returns, but need not have caught up: compare pg_last_wal_replay_lsn()
// with the primary's pg_current_wal_lsn(). Stop it before p.
func (p *Postgres) Standby(ctx context.Context) (*Postgres, error) {
	parent := os.TempDir()
	if p.dir.temporary {
		parent = filepath.Dir(p.dir.path)
	}
	dir, err := openFolderIn(parent, "", "postgres", p.as)
	if err != nil {
		return nil, err
	}
	return newPostgres(ctx, p.bin, dir, p.as, 0, func(standby *Postgres) error {
		if err := backup(ctx, p, standby); err != nil {
			return fmt.Errorf("copy the primary for a standby: %w", err)
		}
		return nil
	})
}

// initialize makes the cluster, unless there is one in the folder already.
func (p *Postgres) initialize(settings map[string]string) error {
	if _, err := os.Stat(filepath.Join(p.data(), "PG_VERSION")); err == nil {
		return nil
	}
	password := p.dir.join("password")
	if err := p.as.writeFile(password, AdminPassword+"\n", os.O_CREATE); err != nil {
		return fmt.Errorf("initdb: %w", err)
	}
	defer os.Remove(password)
	err := run(context.Background(), command{
		name: "initdb", path: filepath.Join(p.bin, "initdb"), dir: p.dir.path, log: p.logFile(), as: p.as,
		lastWish: syscall.SIGKILL,
		args: []string{"-D", p.data(), "-U", AdminUser, "--pwfile", password, "-A", "scram-sha-256", "-E", "UTF8",
			"--locale", "C", "--no-sync"},
	})
	if err != nil {
		return err
	}
	return p.configure(settings)
}

// configure appends to postgresql.conf. The last line for a setting counts.
func (p *Postgres) configure(settings map[string]string) error {
	var text strings.Builder
	text.WriteString("\n")
	for _, layer := range []map[string]string{postgresSettings, settings} {
		for name, value := range layer {
			fmt.Fprintf(&text, "%s = '%s'\n", name, strings.ReplaceAll(value, "'", "''"))
		}
	}
	if err := p.as.writeFile(filepath.Join(p.data(), "postgresql.conf"), text.String(),
		os.O_APPEND); err != nil {
		return fmt.Errorf("configure PostgreSQL: %w", err)
	}
	return nil
}

// certificateRule is for every database, role and address.
const certificateRule = "hostssl all all all cert\n" //nolint:dupword // as PostgreSQL wants it

// askForCertificates makes the server ask TLS clients for a certificate of a, and log them in by it.
func (p *Postgres) askForCertificates(a *Authority) error {
	text, err := os.ReadFile(a.File)
	if err != nil {
		return err
	}
	file := p.dir.join("clients.crt")
	if err := p.as.writeFile(file, string(text), os.O_CREATE|os.O_TRUNC); err != nil {
		return err
	}
	rules := filepath.Join(p.data(), "pg_hba.conf") // of which the first that fits counts
	others, err := os.ReadFile(rules)
	if err != nil {
		return err
	}
	err = p.as.writeFile(rules, certificateRule+string(others), os.O_TRUNC)
	return errors.Join(err, p.configure(map[string]string{"ssl_ca_file": file}))
}

// launch starts the process on p.Port and waits until it answers.
func (p *Postgres) launch(ctx context.Context) (*process, error) {
	return startReady(ctx, command{
		name: "postgres", path: filepath.Join(p.bin, "postgres"), dir: p.dir.path, log: p.logFile(), as: p.as,
		args: []string{"-D", p.data(), "-p", strconv.Itoa(p.Port), "-k", p.socketDir()},
		// An immediate shutdown: the backends go too, and nothing in shared memory is left behind.
		lastWish: syscall.SIGQUIT,
	}, postgresPatience, p.answers)
}

// socketDir is the private folder, unless its path is longer than a socket's may be (107 bytes): then there
// is no socket.
func (p *Postgres) socketDir() string {
	if len(p.dir.path) > 80 {
		return ""
	}
	return p.dir.path
}

// answers succeeds if the server on the port is ours. If another program's server has taken the port, ours is
// about to end.
func (p *Postgres) answers(ctx context.Context) error {
	conn, err := pgconn.Connect(ctx, p.AdminDSN("postgres"))
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	results, err := conn.Exec(ctx, "SHOW data_directory").ReadAll()
	if err != nil {
		return err
	}
	if data := string(results[0].Rows[0][0]); data != p.data() {
		return fmt.Errorf("port %d is another server's, with its data in %s", p.Port, data)
	}
	return nil
}

// AdminDSN connects to a database as the superuser.
func (p *Postgres) AdminDSN(database string) string { return p.DSN(AdminUser, AdminPassword, database) }

// DSN connects to a database as any user.
func (p *Postgres) DSN(user, password, database string) string {
	return dsn(p.Port, user, password, database)
}

func dsn(port int, user, password, database string) string {
	u := url.URL{
		Scheme: "postgres", User: url.UserPassword(user, password), Host: address(port), Path: "/" + database,
		RawQuery: "sslmode=disable",
	}
	return u.String()
}

// Stop ends the server at once, clients or not, and removes its temporary folder. A second Stop does nothing.
func (p *Postgres) Stop() error {
	defer p.dir.close()
	return p.run.stop(stopPatience, syscall.SIGQUIT)
}

// Shutdown ends the server but keeps its data and port, for Start. It cuts clients off and keeps their
// commits.
func (p *Postgres) Shutdown() error { return p.run.stop(stopPatience, syscall.SIGINT, syscall.SIGQUIT) }

// Kill ends the server as a crash would: it cuts clients off in the middle of their work. It keeps data and
// port, for Start.
func (p *Postgres) Kill() error { return p.run.stop(stopPatience, syscall.SIGQUIT) }

// Start starts a server that was shut down or killed, on the same port and data, and returns once it answers.
func (p *Postgres) Start(ctx context.Context) error { return p.run.start(ctx) }

// Restart is Shutdown, then Start.
func (p *Postgres) Restart(ctx context.Context) error {
	if err := p.Shutdown(); err != nil {
		return err
	}
	return p.Start(ctx)
}

// data is the cluster's folder, without symbolic links as the server itself reports it.
func (p *Postgres) data() string {
	dir, err := filepath.EvalSymlinks(p.dir.path)
	if err != nil {
		dir = p.dir.path
	}
	return filepath.Join(dir, "data")
}

func (p *Postgres) logFile() string { return p.dir.join("log") }
