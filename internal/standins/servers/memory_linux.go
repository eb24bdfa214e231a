package servers

import (
	"os"
	"syscall"
)

// memoryDir is a folder in memory with room for a dozen clusters. If there is none, or if TMPDIR is set, it
// is the usual folder for temporary files.
func memoryDir() string {
	const dir, room = "/dev/shm", 4 << 30
	var fs syscall.Statfs_t
	if os.Getenv("TMPDIR") != "" || syscall.Statfs(dir, &fs) != nil || fs.Bavail*uint64(fs.Bsize) < room {
		return os.TempDir()
	}
	return dir
}
