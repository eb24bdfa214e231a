package servers

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"syscall"
)

// ErrNoResetWAL says that the PostgreSQL of this machine comes without pg_resetwal, as the one that is
// fetched does.
var ErrNoResetWAL = errors.New("no pg_resetwal beside the programs of PostgreSQL")

// ResetWAL runs pg_resetwal with these arguments on the cluster of a server that was shut down.
func (p *Postgres) ResetWAL(args ...string) error {
	path := filepath.Join(p.bin, "pg_resetwal")
	if _, err := os.Stat(path); err != nil {
		return ErrNoResetWAL
	}
	return run(context.Background(), command{
		name: "pg_resetwal", path: path, dir: p.dir.path, log: p.logFile(), as: p.as, lastWish: syscall.SIGKILL,
		args: append(args, "-D", p.data()),
	})
}

// Copy copies the cluster of a server that was shut down, and returns a function that puts the copy back.
// Call it once, on a server that is shut down too. With recovery the server then goes through its log and
// begins a new timeline, as after a restore from an archive. Without recovery it cannot know that it is a
// copy.
func (p *Postgres) Copy() (putBack func(recovery bool) error, err error) {
	kept := p.dir.join("copy")
	if err := copyCluster(p.data(), kept, p.as, []string{"postmaster.pid"}); err != nil {
		return nil, err
	}
	return func(recovery bool) error {
		data := p.data()
		if err := errors.Join(os.RemoveAll(data), os.Rename(kept, data)); err != nil || !recovery {
			return err
		}
		const settings = "\nrestore_command = 'false'\n" // an archive that has nothing
		return errors.Join(p.as.writeFile(filepath.Join(data, "recovery.signal"), "", os.O_CREATE),
			p.as.writeFile(filepath.Join(data, "postgresql.conf"), settings, os.O_APPEND))
	}, nil
}
