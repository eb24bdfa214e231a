//go:build unix

// Package offheap gives out memory that the garbage collector does not know, for large tables without
// pointers. On the heap, garbage as large as they are would be let to gather beside them.
package offheap

import "golang.org/x/sys/unix"

// Allocate returns n zero bytes. Release gives them back.
func Allocate(n int) ([]byte, error) {
	return unix.Mmap(-1, 0, n, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
}

// Release gives back what Allocate returned. Nobody may use it any more.
func Release(memory []byte) { _ = unix.Munmap(memory) } // of a mapping of ours it cannot fail
