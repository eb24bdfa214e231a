//go:build unix

package compare

import "golang.org/x/sys/unix"

// allocate returns n zero bytes outside the heap.
func allocate(n int) ([]byte, error) {
	return unix.Mmap(-1, 0, n, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
}

// release gives back what allocate returned.
func release(memory []byte) { _ = unix.Munmap(memory) } // of a mapping of ours it cannot fail
