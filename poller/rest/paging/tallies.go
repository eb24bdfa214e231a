package paging

import (
	"cmp"
	"encoding/binary"
)

// tally is a row and the counts that the passes over a set keep for it. Of a single pass, only changed is
// used.
type tally struct {
	id uint64
	// misses is how many passes did not meet it, and ago how many of them came after the last one that did.
	// There are at most maxPasses+1.
	misses, ago uint8
	// changed: when it was last met, it had changed since the beginning (ledger).
	changed bool
}

// usual reports whether every pass met the row, and it did not change. That holds for almost all rows.
func (t tally) usual() bool { return t.misses == 0 && t.ago == 0 && !t.changed }

// tallies is a list of rows in the order of their ids, no id twice. A row takes the gap to the id before as a
// varint, a byte more, and two more again if the row is not usual: 2 bytes if ids are given out in turn, 8 or
// 9 if a million of them are spread over 64 bits.
type tallies struct {
	n      int
	last   uint64   // the greatest id
	blocks [][]byte // of about blockSize, so that no list is copied as a whole when it grows
	free   [][]byte // blocks to be used again
}

const (
	blockSize  = 32 << 10
	firstBlock = 1 << 10 // most lists are of a page or two
)

// append adds a row whose id is greater than the others.
func (l *tallies) append(t tally) {
	const room = binary.MaxVarintLen64 + 3
	k := len(l.blocks) - 1
	if k < 0 || len(l.blocks[k]) > blockSize-room {
		l.blocks = append(l.blocks, l.newBlock())
		k++
	}
	b := binary.AppendUvarint(l.blocks[k], t.id-l.last)
	switch {
	case t.usual():
		b = append(b, 0)
	case t.changed:
		b = append(b, 2, t.misses, t.ago)
	default:
		b = append(b, 1, t.misses, t.ago)
	}
	l.blocks[k], l.last = b, t.id
	l.n++
}

func (l *tallies) newBlock() []byte {
	if k := len(l.free) - 1; k >= 0 {
		b := l.free[k]
		l.free = l.free[:k]
		return b
	}
	if len(l.blocks) == 0 {
		return make([]byte, 0, firstBlock)
	}
	return make([]byte, 0, blockSize)
}

// all goes through the rows in order.
func (l *tallies) all(yield func(tally) bool) {
	for c := (cursor{blocks: l.blocks}); c.next(); {
		if !yield(c.tally) {
			return
		}
	}
}

// merge takes a and b apart and puts the result of join for each row into one list. join gets nil for the
// list that does not have the row. The blocks that were read are written again, so a merge takes little room.
func merge(a, b *tallies, join func(a, b *tally) tally) tallies {
	out := tallies{free: a.free}
	reuse := func(block []byte) {
		if cap(block) >= blockSize {
			out.free = append(out.free, block[:0])
		}
	}
	ca, cb := cursor{blocks: a.blocks, done: reuse}, cursor{blocks: b.blocks, done: reuse}
	moreA, moreB := ca.next(), cb.next()
	for moreA || moreB {
		order := cmp.Compare(ca.id, cb.id)
		switch {
		case !moreB:
			order = -1
		case !moreA:
			order = 1
		}
		var t tally
		switch {
		case order < 0:
			t = join(&ca.tally, nil)
		case order > 0:
			t = join(nil, &cb.tally)
		default:
			t = join(&ca.tally, &cb.tally)
		}
		out.append(t)
		if order <= 0 {
			moreA = ca.next()
		}
		if order >= 0 {
			moreB = cb.next()
		}
	}
	*a, *b = tallies{}, tallies{}
	return out
}

// cursor goes through a list. It stands on a row once next has returned true.
type cursor struct {
	tally
	blocks [][]byte // those behind the one in hand
	block  []byte
	at     int
	done   func(block []byte) // if set, gets each block that was read
}

func (c *cursor) next() bool {
	if c.at == len(c.block) {
		if c.done != nil && c.block != nil {
			c.done(c.block)
		}
		c.block, c.at = nil, 0
		if len(c.blocks) == 0 {
			return false
		}
		c.block, c.blocks = c.blocks[0], c.blocks[1:]
	}
	if gap := c.block[c.at]; gap < 0x80 {
		c.id += uint64(gap)
		c.at++
	} else {
		gap, n := binary.Uvarint(c.block[c.at:])
		c.id += gap
		c.at += n
	}
	kind := c.block[c.at]
	c.at++
	c.misses, c.ago, c.changed = 0, 0, kind == 2
	if kind > 0 {
		c.misses, c.ago = c.block[c.at], c.block[c.at+1]
		c.at += 2
	}
	return true
}
