package config

import "github.com/dustin/go-humanize"

// Size is a number of bytes.
type Size int64

// MiB is a unit of a Size.
const MiB Size = 1 << 20

// String is s in its largest unit, such as 128 MiB.
func (s Size) String() string { return humanize.IBytes(uint64(max(0, s))) }
