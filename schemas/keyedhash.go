package schemas

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding"
	"encoding/binary"
	"hash"
)

// keyedHash is HMAC-SHA-256 under one key, of one text after another. It belongs to one goroutine.
//
// Of a text that fits into one block with SHA-256's padding, as most values do, the HMAC takes two blocks:
// one after that of the key and ipad, one after that of the key and opad (RFC 2104, 4). crypto/hmac keeps the
// states after the key's blocks too, but spends more on copying digests and buffering than the blocks take.
// Here the block is padded in place, and the sum is read where the digest's marshaled state has it: two
// thirds of the time. What Go marshals is stable and not documented, so newKeyedHash tries it out.
type keyedHash struct {
	mac hash.Hash // of crypto/hmac
	sum [sha256.Size]byte

	digest       resumable // nil: mac does it all
	inner, outer []byte    // states of digest, as secret as the key
	block        [sha256.BlockSize]byte
	state        [128]byte // has room for a state of 108
}

type resumable interface {
	hash.Hash
	encoding.BinaryAppender
	encoding.BinaryUnmarshaler
}

const (
	// lengthAt is where in a last block the number of bits is, of which two bytes are enough here.
	lengthAt = sha256.BlockSize - 2
	// longestInBlock is how long a text is that leaves room for a 1 and a number of bits of 8 bytes.
	longestInBlock = sha256.BlockSize - 1 - 8
	// sumAt is where in a marshaled state the sum is: behind the name of the hash.
	sumAt = 4
)

func newKeyedHash(key []byte) *keyedHash {
	h := &keyedHash{mac: hmac.New(sha256.New, key)}
	digest, ok := sha256.New().(resumable)
	if !ok {
		return h
	}
	if len(key) > sha256.BlockSize {
		sum := sha256.Sum256(key)
		key = sum[:]
	}
	after := func(pad byte) []byte {
		block := [sha256.BlockSize]byte{}
		copy(block[:], key)
		for i := range block {
			block[i] ^= pad
		}
		digest.Reset()
		_, _ = digest.Write(block[:])
		state, _ := digest.AppendBinary(nil)
		return state
	}
	h.inner, h.outer = after(0x36), after(0x5c)
	probe := []byte("does this Go marshal as we think?")
	want := bytes.Clone(h.of(probe))
	if h.digest = digest; !bytes.Equal(h.of(probe), want) {
		h.digest = nil
	}
	return h
}

// of is the HMAC of text, good until the next call.
func (h *keyedHash) of(text []byte) []byte {
	if h.digest == nil || len(text) > longestInBlock {
		h.mac.Reset()
		_, _ = h.mac.Write(text) // never fails
		return h.mac.Sum(h.sum[:0])
	}
	return h.finish(h.outer, h.finish(h.inner, text))
}

// finish is the sum of the block that led to state, and text. text may be the sum before.
func (h *keyedHash) finish(state, text []byte) []byte {
	n := copy(h.block[:], text)
	h.block[n] = 0x80
	clear(h.block[n+1:])
	binary.BigEndian.PutUint16(h.block[lengthAt:], uint16(8*(sha256.BlockSize+n)))
	_ = h.digest.UnmarshalBinary(state) // it is its own
	_, _ = h.digest.Write(h.block[:])
	reached, _ := h.digest.AppendBinary(h.state[:0])
	return reached[sumAt : sumAt+sha256.Size]
}
