package servers

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// folder holds the data, socket and log of one server.
type folder struct {
	path      string
	temporary bool
	lock      *os.File // held while this process uses a temporary folder
}

// lockName is the file whose lock says that a temporary folder is in use. The kernel lets go of it when its
// holder dies, however it dies.
const lockName = "in-use"

// openFolder returns dir, which it makes if need be. If dir is "", it makes a new temporary folder. The
// account may write to the folder.
func openFolder(dir, kind string, as *account) (*folder, error) {
	return openFolderIn(os.TempDir(), dir, kind, as)
}

// openFolderIn is openFolder, with its temporary folder in parent.
func openFolderIn(parent, dir, kind string, as *account) (*folder, error) {
	f := &folder{path: dir}
	if dir == "" {
		sweep(parent, kind)
		path, err := os.MkdirTemp(parent, prefix(kind)+"*")
		if err != nil {
			return nil, fmt.Errorf("make a folder for %s (TMPDIR says where): %w", kind, err)
		}
		f.path, f.temporary = path, true
		if f.lock, err = lockFile(filepath.Join(path, lockName)); err != nil {
			_ = os.RemoveAll(path)
			return nil, fmt.Errorf("lock the folder of %s: %w", kind, err)
		}
	} else if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("make the folder of %s: %w", kind, err)
	}
	if err := as.own(f.path); err != nil {
		f.close()
		return nil, fmt.Errorf("hand the folder of %s to %s: %w", kind, as.name, err)
	}
	return f, nil
}

// TemporaryFolder makes a private folder storestream-<kind>-* for files that belong to no single server.
// remove removes it. Where something kills this process before that, the next TemporaryFolder of the kind
// does.
func TemporaryFolder(kind string) (path string, remove func(), err error) {
	f, err := openFolder("", kind, nil)
	if err != nil {
		return "", nil, err
	}
	return f.path, f.close, nil
}

func (f *folder) join(name string) string { return filepath.Join(f.path, name) }

// close removes the folder if it is a temporary one.
func (f *folder) close() {
	if !f.temporary {
		return
	}
	_ = os.RemoveAll(f.path) // files that remain are swept later
	if f.lock != nil {
		_ = f.lock.Close()
	}
}

func prefix(kind string) string { return "storestream-" + kind + "-" }

// sweep removes the temporary folders of a kind in parent whose processes are gone. It leaves folders alone
// that are younger than a minute: before its owner locks it, a new folder looks abandoned.
func sweep(parent, kind string) {
	paths, _ := filepath.Glob(filepath.Join(parent, prefix(kind)+"*"))
	for _, path := range paths {
		info, err := os.Lstat(path)
		if err != nil || !info.IsDir() || time.Since(info.ModTime()) < time.Minute {
			continue
		}
		lock, err := os.OpenFile(filepath.Join(path, lockName), os.O_RDWR, 0)
		if err != nil {
			continue
		}
		if syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == nil {
			_ = os.RemoveAll(path)
		}
		_ = lock.Close()
	}
}

// lockFile creates a file if it is absent, and waits for its exclusive lock. Closing the file releases the
// lock.
func lockFile(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	for {
		if err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX); !errors.Is(err, syscall.EINTR) {
			break
		}
	}
	if err != nil {
		_ = f.Close()
		return nil, err
	}
	return f, nil
}
