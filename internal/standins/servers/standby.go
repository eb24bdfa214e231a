package servers

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/jackc/pgx/v5"
)

// backup copies p's cluster into the standby's folder while p goes on writing. Files that the server writes
// between the two calls are torn in the copy. The log makes it whole: the standby streams it from the
// position in the label. pg_basebackup would do all this, but the PostgreSQL that we fetch does not bring it.
func backup(ctx context.Context, p, standby *Postgres) error {
	conn, err := pgx.Connect(ctx, p.AdminDSN("postgres"))
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	begin, end := "SELECT pg_backup_start('standby', true)", "SELECT labelfile FROM pg_backup_stop(false)"
	if conn.PgConn().ParameterStatus("server_version") < "15" { // 13 and 14 are the older ones that we run on
		begin, end = "SELECT pg_start_backup('standby', true, false)",
			"SELECT labelfile FROM pg_stop_backup(false, false)"
	}
	// A slot keeps the log that the standby will ask for, however fast the primary writes meanwhile.
	slot := slotName(filepath.Base(standby.dir.path))
	if _, err := conn.Exec(ctx, "SELECT pg_create_physical_replication_slot($1, true)", slot); err != nil {
		return err
	}
	if _, err := conn.Exec(ctx, begin); err != nil {
		return err
	}
	if err := copyCluster(p.data(), standby.data(), p.as, notCopied); err != nil {
		return err
	}
	var label string
	if err := conn.QueryRow(ctx, end).Scan(&label); err != nil {
		return err
	}
	follow := fmt.Sprintf("\nprimary_conninfo = '%s'\nprimary_slot_name = '%s'\n", p.AdminDSN(""), slot)
	return errors.Join(
		p.as.writeFile(filepath.Join(standby.data(), "backup_label"), label, os.O_CREATE),
		p.as.writeFile(filepath.Join(standby.data(), "standby.signal"), "", os.O_CREATE),
		p.as.writeFile(filepath.Join(standby.data(), "postgresql.conf"), follow, os.O_APPEND),
	)
}

// slotName turns a folder's name into a valid slot name: lower case letters, digits and underscores.
func slotName(folder string) string {
	name := []byte(folder)
	for i, c := range name {
		if (c < 'a' || c > 'z') && (c < '0' || c > '9') {
			name[i] = '_'
		}
	}
	return string(name)
}

// notCopied belongs to the primary alone: its process, and the log and slots. Of a folder only the content is
// left out.
var notCopied = []string{"postmaster.pid", "postmaster.opts", "pg_wal", "pg_replslot", "pg_dynshmem",
	"pg_stat_tmp", "pg_subtrans"}

// copyCluster copies a cluster's files but for some. Those that vanish meanwhile (temporary tables, caches of
// the catalogue) are not missed.
func copyCluster(from, to string, as *account, without []string) error {
	return filepath.WalkDir(from, func(path string, entry fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		name, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		copied := filepath.Join(to, name)
		private := slices.Contains(without, name)
		if entry.IsDir() {
			err := errors.Join(os.Mkdir(copied, 0o700), as.own(copied))
			if err == nil && private {
				err = fs.SkipDir
			}
			return err
		}
		if private {
			return nil
		}
		if err := copyFile(path, copied); errors.Is(err, fs.ErrNotExist) {
			return nil
		} else if err != nil {
			return err
		}
		return as.own(copied)
	})
}

func copyFile(from, to string) error {
	source, err := os.Open(from)
	if err != nil {
		return err
	}
	defer source.Close()
	target, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(target, source)
	return errors.Join(err, target.Close())
}
