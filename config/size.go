package config

// Size is a number of bytes.
type Size int64
