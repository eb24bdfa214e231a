//go:build unix

package rowset

import "golang.org/x/sys/unix"

// allocate returns n zero bytes that the garbage collector does not know.
func allocate(n int) ([]byte, error) {
	return unix.Mmap(-1, 0, n, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
}

// release gives back what allocate returned.
func release(memory []byte) { _ = unix.Munmap(memory) } // of a mapping of ours it cannot fail
