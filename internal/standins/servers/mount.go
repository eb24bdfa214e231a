package servers

import (
	"fmt"
	"os"
	"path/filepath"
)

// Mount is a folder as Kubernetes mounts secrets: each file is a link through ..data, and that is moved from
// one folder to the next.
type Mount struct {
	t       TB
	dir     string
	version int
}

// MountForTest makes one in dir, with the files that are given by their names.
func MountForTest(t TB, dir string, files map[string]string) *Mount {
	t.Helper()
	m := &Mount{t: t, dir: dir}
	m.Swap(files)
	for name := range files {
		m.must(os.Symlink(filepath.Join("..data", name), m.Path(name)))
	}
	return m
}

// Path returns the path under which programs read a file of the mount.
func (m *Mount) Path(name string) string { return filepath.Join(m.dir, name) }

// Swap puts other files in place of all that are there, at once.
func (m *Mount) Swap(files map[string]string) {
	m.t.Helper()
	m.version++
	next := fmt.Sprintf("..version-%d", m.version)
	m.must(os.Mkdir(m.Path(next), 0o700))
	for name, text := range files {
		m.must(os.WriteFile(filepath.Join(m.dir, next, name), []byte(text), 0o600))
	}
	m.must(os.Symlink(next, m.Path("..next")))
	m.must(os.Rename(m.Path("..next"), m.Path("..data")))
}

func (m *Mount) must(err error) {
	m.t.Helper()
	if err != nil {
		m.t.Fatalf("mount: %v", err)
	}
}
