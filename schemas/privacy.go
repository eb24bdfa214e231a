package schemas

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"
)

// Policy is the form in which a field's values leave the source.
type Policy string

// The policies. A text keeps its shape under PolicyMask: each ASCII digit becomes 9, each ASCII letter and
// each character outside ASCII becomes x, and other characters stay. PolicyHash replaces a text by its
// HMAC-SHA-256 in 64 hexadecimal digits. PolicyDrop replaces any value by null. Null stays null under each
// policy.
const (
	PolicyClear Policy = "clear"
	PolicyMask  Policy = "mask"
	PolicyHash  Policy = "hash"
	PolicyDrop  Policy = "drop"
)

// Policies lists every policy.
var Policies = []Policy{PolicyClear, PolicyMask, PolicyHash, PolicyDrop}

// MinPrivacyKey is the least length in bytes of the key of PolicyHash: the length of the hash (RFC 2104, 3).
const MinPrivacyKey = sha256.Size

// hashSize is the size in bytes of a hash in a record: a length of two bytes, and the digits.
const hashSize = 2 + hashDigits

const hashDigits = 2 * sha256.Size // hexadecimal

// Privacy is the policies of fields. They are applied while a row is encoded, so no other part sees clear
// values.
type Privacy struct {
	// Fields are the policies by "resource.field". Other fields are clear.
	Fields map[string]Policy
	// Key is the key of PolicyHash, MinPrivacyKey bytes or more.
	Key []byte
	// FullRejects is set if a Reject shows personal fields as they are. Otherwise it shows them masked.
	FullRejects bool
}

// Hashes returns whether a field has PolicyHash, which needs the key.
func (p Privacy) Hashes() bool {
	return slices.Contains(slices.Collect(maps.Values(p.Fields)), PolicyHash)
}

// Protect applies p to the resources. Call it before you use them. If policies are wrong, it applies none and
// returns the mistakes, each with the field's name first.
func (s *Set) Protect(p Privacy) (mistakes []string) {
	for _, name := range slices.Sorted(maps.Keys(p.Fields)) {
		if rule := s.policyRule(name, p.Fields[name]); rule != "" {
			mistakes = append(mistakes, name+": "+rule)
		}
	}
	if len(mistakes) > 0 {
		return mistakes
	}
	for _, r := range s.resources {
		r.key, r.fullRejects = p.Key, p.FullRejects
		for i := range r.Fields {
			f := &r.Fields[i]
			if f.Policy = p.Fields[r.Name+"."+f.Name]; f.Policy == PolicyClear {
				f.Policy = ""
			}
		}
	}
	return nil
}

// policyRule returns why the field of that name cannot have the policy, "" if it can.
func (s *Set) policyRule(name string, policy Policy) string {
	if !slices.Contains(Policies, policy) {
		return fmt.Sprintf("policy %q: expected clear, mask, hash or drop", policy)
	}
	resource, field, _ := strings.Cut(name, ".")
	r := s.Get(resource)
	if r == nil {
		return "no such resource: expected resource.field with one of " + strings.Join(Names(), ", ")
	}
	i, ok := r.index[field]
	if !ok {
		return "no such field: expected one of " + strings.Join(r.Columns(), ", ")
	}
	f := &r.Fields[i]
	switch {
	case policy == PolicyClear:
	case i == 0 || i == r.updatedAt || i == r.createdAt:
		return "storestream needs it to find new rows: expected clear"
	case policy != PolicyDrop && f.codec != textCodec:
		return fmt.Sprintf("%s is for text, and this is %s: expected drop or clear", policy, f.codec.kind)
	}
	return ""
}

// PolicyFingerprint identifies the policies of r's fields, and the key if a policy needs it. It is "" if
// every field is clear. It does not reveal the key.
func (r *Resource) PolicyFingerprint() string {
	var text strings.Builder
	hashes := false
	for i := range r.Fields {
		if f := &r.Fields[i]; f.Policy != "" {
			fmt.Fprintf(&text, "%s=%s\n", f.Name, f.Policy)
			hashes = hashes || f.Policy == PolicyHash
		}
	}
	if text.Len() == 0 {
		return ""
	}
	if hashes {
		mac := hmac.New(sha256.New, r.key)
		_, _ = mac.Write([]byte("storestream: which key is it"))
		_, _ = fmt.Fprintf(&text, "key=%x\n", mac.Sum(nil))
	}
	sum := sha256.Sum256([]byte(text.String()))
	return hex.EncodeToString(sum[:8])
}

// protect replaces the value of f, which is encoded in b from start on, as its policy says.
func (e *encoder) protect(b []byte, start int, f *Field) []byte {
	switch {
	case f.Policy == PolicyDrop:
		return append(b[:start], 0)
	case f.Nullable && b[start] == 0:
		return b
	case f.Nullable:
		start++
	}
	_, n := binary.Varint(b[start:])
	text := b[start+n:]
	if f.Policy == PolicyHash {
		sum := e.hash(text) // before b is written over
		return appendHex(binary.AppendVarint(b[:start], hashDigits), sum)
	}
	// The masked text has as many characters and no more bytes, so it can overwrite the text. Its length may
	// take fewer bytes.
	size := utf8.RuneCount(text)
	b = binary.AppendVarint(b[:start], int64(size))
	return appendMasked(b, text)
}

// hexDigits holds the two hexadecimal digits of each byte, the first one in the lower eight bits.
var hexDigits = func() (pairs [256]uint16) {
	for i := range pairs {
		pair := fmt.Sprintf("%02x", i)
		pairs[i] = uint16(pair[0]) | uint16(pair[1])<<8
	}
	return pairs
}()

// appendHex appends the hexadecimal digits of a sum in 15 ns. hex.AppendEncode takes 50, and the HMAC 120.
func appendHex(b, sum []byte) []byte {
	for ; len(sum) >= 4; sum = sum[4:] {
		b = binary.LittleEndian.AppendUint64(b, uint64(hexDigits[sum[0]])|uint64(hexDigits[sum[1]])<<16|
			uint64(hexDigits[sum[2]])<<32|uint64(hexDigits[sum[3]])<<48)
	}
	return b
}

// appendMasked appends the shape of a text, a byte for each character. b may end at text's begin, or before
// it.
func appendMasked(b, text []byte) []byte {
	for len(text) > 0 {
		c, size := text[0], 1
		switch {
		case c >= utf8.RuneSelf:
			_, size = utf8.DecodeRune(text)
			c = 'x'
		case c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z':
			c = 'x'
		case c >= '0' && c <= '9':
			c = '9'
		}
		b, text = append(b, c), text[size:]
	}
	return b
}
