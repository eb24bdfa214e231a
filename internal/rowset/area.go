package rowset

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// An area of so many bytes lies outside the heap. A set of some 100,000 rows has such tables.
const mappedBytes = 8 << 10

// area is room for elements, which are zero at first. If it is large it lies outside the heap, and has to be
// freed.
type area[T any] struct {
	elements []T
	mapped   []byte // nil if it is on the heap
}

func newArea[T any](n int) area[T] {
	if bytes := n * int(unsafe.Sizeof(*new(T))); bytes >= mappedBytes {
		const prot, flags = unix.PROT_READ | unix.PROT_WRITE, unix.MAP_ANON | unix.MAP_PRIVATE
		if memory, err := unix.Mmap(-1, 0, bytes, prot, flags); err == nil {
			return area[T]{unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(memory))), n), memory}
		}
	}
	return area[T]{elements: make([]T, n)}
}

// free gives the room back.
func (a *area[T]) free() {
	if a.mapped != nil {
		_ = unix.Munmap(a.mapped) // of a mapping of ours it cannot fail
	}
	*a = area[T]{}
}
