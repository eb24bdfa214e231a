package servers

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

// ErrNoPgBouncer says that PgBouncer is not installed. Nothing fetches it: there is no binary of it outside
// distributions.
var ErrNoPgBouncer = errors.New("no PgBouncer: install it (Debian: apt-get install pgbouncer)")

const pgBouncerPatience = 30 * time.Second

// PgBouncerConfig says how to start a PgBouncer. Postgres is required.
type PgBouncerConfig struct {
	Postgres *Postgres // every database name leads there
	// Users maps user names to passwords. These users may log in besides AdminUser, and PgBouncer logs in as
	// them.
	Users    map[string]string
	PoolMode string            // transaction if empty
	PoolSize int               // server connections per user and database; 20 if 0
	Settings map[string]string // [pgbouncer], on top of the above
	Dir      string            // a temporary folder if empty, removed by Stop
	Port     int               // 0 stands for a free one
	// Certificate is shown to clients. If it is nil, PgBouncer has no TLS.
	Certificate *Certificate
	// Verifies, if set, is the authority whose certificates PgBouncer accepts from Postgres, and only for its
	// address (server_tls_sslmode = verify-full).
	Verifies *Authority
}

// PgBouncer is a running PgBouncer.
type PgBouncer struct {
	Port int

	path   string
	config PgBouncerConfig
	dir    *folder
	as     *account
	run    *daemon
}

// StartPgBouncer starts a PgBouncer in front of c.Postgres and returns once it takes clients. Users need not
// exist in the database yet. It fails with ErrNoPgBouncer, or PgBouncer's own last words.
func StartPgBouncer(ctx context.Context, c PgBouncerConfig) (*PgBouncer, error) {
	path, err := pgBouncerBinary()
	if err != nil {
		return nil, err
	}
	as, err := unprivileged()
	if err != nil {
		return nil, err
	}
	dir, err := openFolder(c.Dir, "pgbouncer", as)
	if err != nil {
		return nil, err
	}
	b := &PgBouncer{path: path, config: c, dir: dir, as: as}
	b.run = &daemon{launch: b.launch}
	err = onFreePorts(1, c.Port, func(ports []int) error {
		b.Port = ports[0]
		return b.run.start(ctx)
	})
	if err != nil {
		dir.close()
		return nil, err
	}
	return b, nil
}

func pgBouncerBinary() (string, error) {
	for _, name := range []string{"pgbouncer", "/usr/sbin/pgbouncer", "/opt/homebrew/bin/pgbouncer"} {
		if path, err := exec.LookPath(name); err == nil {
			return path, nil
		}
	}
	return "", ErrNoPgBouncer
}

// launch writes the configuration, starts the process and waits until its console answers.
func (b *PgBouncer) launch(ctx context.Context) (*process, error) {
	tls, err := b.tls()
	if err != nil {
		return nil, fmt.Errorf("install the certificates: %w", err)
	}
	for name, text := range map[string]string{"userlist.txt": b.userList(), "pgbouncer.ini": b.ini() + tls} {
		if err := b.as.writeFile(b.dir.join(name), text, os.O_CREATE|os.O_TRUNC); err != nil {
			return nil, fmt.Errorf("configure PgBouncer: %w", err)
		}
	}
	return startReady(ctx, command{
		name: "pgbouncer", path: b.path, args: []string{b.dir.join("pgbouncer.ini")},
		dir: b.dir.path, log: b.dir.join("log"), as: b.as, lastWish: syscall.SIGKILL, // it keeps nothing
	}, pgBouncerPatience, b.answers)
}

// tls installs the certificates, and is the settings that name them.
func (b *PgBouncer) tls() (settings string, err error) {
	if c := b.config.Certificate; c != nil {
		cert, key, err := b.as.install(b.dir, *c)
		if err != nil {
			return "", err
		}
		settings = fmt.Sprintf("client_tls_sslmode = allow\nclient_tls_cert_file = %s\nclient_tls_key_file = %s\n",
			cert, key)
	}
	if a := b.config.Verifies; a != nil {
		text, err := os.ReadFile(a.File)
		if err != nil {
			return "", err
		}
		file := b.dir.join("servers.crt")
		if err := b.as.writeFile(file, string(text), os.O_CREATE|os.O_TRUNC); err != nil {
			return "", err
		}
		settings += fmt.Sprintf("server_tls_sslmode = verify-full\nserver_tls_ca_file = %s\n", file)
	}
	return settings, nil
}

// answers succeeds once the console takes a login. The console needs no server.
func (b *PgBouncer) answers(ctx context.Context) error {
	conn, err := pgconn.Connect(ctx, b.DSN(AdminUser, AdminPassword, "pgbouncer"))
	if err != nil {
		return err
	}
	return conn.Close(ctx)
}

func (b *PgBouncer) ini() string {
	var text strings.Builder
	fmt.Fprintf(&text, "[databases]\n* = host=%s port=%d\n\n[pgbouncer]\n", host, b.config.Postgres.Port)
	fmt.Fprintf(&text, "listen_addr = %s\nlisten_port = %d\nunix_socket_dir =\n", host, b.Port)
	fmt.Fprintf(&text, "auth_type = scram-sha-256\nauth_file = %s\nadmin_users = %s\n",
		b.dir.join("userlist.txt"), AdminUser)
	fmt.Fprintf(&text, "pool_mode = %s\ndefault_pool_size = %d\nmax_client_conn = 500\n",
		cmp.Or(b.config.PoolMode, "transaction"), cmp.Or(b.config.PoolSize, 20))
	for name, value := range b.config.Settings {
		fmt.Fprintf(&text, "%s = %s\n", name, value)
	}
	return text.String()
}

// userList holds passwords in clear text: only from those can PgBouncer log in to the server by SCRAM.
func (b *PgBouncer) userList() string {
	var text strings.Builder
	quote := strings.NewReplacer(`"`, `""`)
	write := func(user, password string) {
		fmt.Fprintf(&text, "\"%s\" \"%s\"\n", quote.Replace(user), quote.Replace(password))
	}
	write(AdminUser, AdminPassword)
	for user, password := range b.config.Users {
		write(user, password)
	}
	return text.String()
}

// SetPassword gives a user another password, for clients and to log in to the server. Sessions that are
// logged in stay.
func (b *PgBouncer) SetPassword(ctx context.Context, user, password string) error {
	b.config.Users = maps.Clone(b.config.Users)
	b.config.Users[user] = password
	if err := b.as.writeFile(b.dir.join("userlist.txt"), b.userList(), os.O_CREATE|os.O_TRUNC); err != nil {
		return fmt.Errorf("configure PgBouncer: %w", err)
	}
	conn, err := pgconn.Connect(ctx, b.DSN(AdminUser, AdminPassword, "pgbouncer"))
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	_, err = conn.Exec(ctx, "RELOAD").ReadAll()
	return err
}

// DSN connects to a database through the pooler. The user must be AdminUser or one of the configured ones.
func (b *PgBouncer) DSN(user, password, database string) string {
	return dsn(b.Port, user, password, database)
}

// Stop ends it at once and removes its temporary folder. A second Stop does nothing.
func (b *PgBouncer) Stop() error {
	defer b.dir.close()
	return b.run.stop(stopPatience, syscall.SIGQUIT)
}

// Kill cuts every client and server connection off. Start brings it back.
func (b *PgBouncer) Kill() error { return b.run.stop(0, syscall.SIGKILL) }

// Start starts a PgBouncer that was killed, on the same port.
func (b *PgBouncer) Start(ctx context.Context) error { return b.run.start(ctx) }

// Restart is Kill, then Start.
func (b *PgBouncer) Restart(ctx context.Context) error {
	if err := b.Kill(); err != nil {
		return err
	}
	return b.Start(ctx)
}
