package schemas

import (
	"encoding/binary"
	"errors"
	"math"
)

var (
	errShort  = errors.New("the value ends in the middle of a field")
	errDeep   = errors.New("the value is nested too deeply, or its arrays claim more items than it can hold")
	errBranch = errors.New("the value names a branch that its union does not have")
	errYears  = errors.New("a timestamp lies outside the years 1 to 9999")
)

// cursor reads an Avro value front to back. It keeps the first fault, and reads zeros after it. It does not
// allocate by the lengths that the bytes claim (hamba/avro's decoder does: GO-2026-5048).
type cursor struct {
	b      []byte
	err    error
	budget int // steps that skip may still take; an array may claim 2^62 items of no bytes
}

func (c *cursor) fail(err error) {
	if c.err == nil {
		c.err = err
	}
	c.b = nil
}

func (c *cursor) long() int64 {
	v, n := binary.Varint(c.b)
	if n <= 0 {
		c.fail(errShort)
		return 0
	}
	c.b = c.b[n:]
	return v
}

// take returns the next n bytes of the value itself.
func (c *cursor) take(n int64) []byte {
	if n < 0 || n > int64(len(c.b)) {
		c.fail(errShort)
		return nil
	}
	v := c.b[:n:n]
	c.b = c.b[n:]
	return v
}

func (c *cursor) bytes() []byte { return c.take(c.long()) }

func (c *cursor) double() float64 {
	if v := c.take(8); v != nil {
		return math.Float64frombits(binary.LittleEndian.Uint64(v))
	}
	return 0
}

func (c *cursor) float() float32 {
	if v := c.take(4); v != nil {
		return math.Float32frombits(binary.LittleEndian.Uint32(v))
	}
	return 0
}

// decimal returns the two's complement of a decimal of type t, bytes or fixed.
func (c *cursor) decimal(t *avroType) []byte {
	if t.kind == "fixed" {
		return c.take(int64(t.size))
	}
	return c.bytes()
}

// isNull reads the branch of ["null", T], and returns whether it is null.
func (c *cursor) isNull() bool {
	i := c.long()
	if i < 0 || i > 1 {
		c.fail(errBranch)
	}
	return i == 0
}

// instant reads a timestamp-millis.
func (c *cursor) instant() Instant {
	ms := c.long()
	if ms < MinInstant.Millis() || ms > MaxInstant.Millis() {
		c.fail(errYears)
		return 0
	}
	return InstantOfMillis(ms)
}

// branch reads the branch of the union t and returns its type. If t is no union, it returns t.
func (c *cursor) branch(t *avroType) *avroType {
	if t.kind != "union" {
		return t
	}
	i := c.long()
	if c.err == nil && (i < 0 || i >= int64(len(t.elements))) {
		c.fail(errBranch)
	}
	if c.err != nil {
		return nullType
	}
	return t.elements[i]
}

// skip moves c behind a value of type t.
func (c *cursor) skip(t *avroType, depth int) {
	c.budget--
	if c.budget < 0 || depth > 32 {
		c.fail(errDeep)
	}
	if c.err != nil {
		return
	}
	switch t.kind {
	case "null":
	case "boolean":
		c.take(1)
	case "int", "long", "enum":
		c.long()
	case "float":
		c.take(4)
	case "double":
		c.take(8)
	case "string", "bytes":
		c.bytes()
	case "fixed":
		c.take(int64(t.size))
	case "union":
		c.skip(c.branch(t), depth+1)
	case "record":
		for _, e := range t.elements {
			c.skip(e, depth+1)
		}
	default:
		c.skipBlocks(t, depth)
	}
}

// skipBlocks moves c behind an array or a map.
func (c *cursor) skipBlocks(t *avroType, depth int) {
	for n := c.long(); n != 0 && c.err == nil; n = c.long() {
		if n < 0 { // -n items; the next long is their size in bytes
			c.bytes()
			continue
		}
		for ; n > 0 && c.err == nil; n-- {
			if t.kind == "map" {
				c.bytes()
			}
			c.skip(t.elements[0], depth+1)
		}
	}
}
