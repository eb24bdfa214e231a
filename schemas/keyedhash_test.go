package schemas

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"sync"
	"testing"
)

// The vectors of RFC 4231 (4.2 to 4.8, without the one that is cut short): keys shorter than a block, as long
// and longer, texts that fit into a block and longer ones.
func TestAKeyedHashIsTheHMACOfTheStandard(t *testing.T) {
	for _, c := range []struct{ key, text, want string }{
		{strings.Repeat("\x0b", 20), "Hi There",
			"b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7"},
		{"Jefe", "what do ya want for nothing?",
			"5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"},
		{strings.Repeat("\xaa", 20), strings.Repeat("\xdd", 50),
			"773ea91e36800e46854db8ebd09181a72959098b3ef8c122d9635514ced565fe"},
		{"\x01\x02\x03\x04\x05\x06\x07\x08\x09\x0a\x0b\x0c\x0d\x0e\x0f\x10\x11\x12\x13\x14\x15\x16\x17\x18\x19",
			strings.Repeat("\xcd", 50), "82558a389a443c0ea4cc819899f2083a85f0faa3e578f8077a2e3ff46729665b"},
		{strings.Repeat("\xaa", 131), "Test Using Larger Than Block-Size Key - Hash Key First",
			"60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54"},
		{strings.Repeat("\xaa", 131), "This is a test using a larger than block-size key and a larger than " +
			"block-size data. The key needs to be hashed before being used by the HMAC algorithm.",
			"9b09ffa71b942fcb27635fbcd5b0e944bfdc63644f0713938a7f51535c3a35e2"},
	} {
		if got := hex.EncodeToString(newKeyedHash([]byte(c.key)).of([]byte(c.text))); got != c.want {
			t.Errorf("%q under a key of %d bytes: got %s, want %s", c.text, len(c.key), got, c.want)
		}
	}
}

// Each parser has a keyed hash of its own, so that they work at once under one key.
func TestAKeyedHashIsThatOfCryptoHMACForEveryLength(t *testing.T) {
	text := bytes.Repeat([]byte("Ana-Lúcia \x00\xff"), 20)
	var parsers sync.WaitGroup
	for _, size := range []int{0, 1, 31, 32, 33, 63, 64, 65, 200} {
		key := text[:size]
		parsers.Go(func() {
			fast, slow := newKeyedHash(key), newKeyedHash(key)
			if fast.digest == nil {
				t.Error("this Go marshals otherwise: hashes take half as long again")
			}
			slow.digest = nil
			for n := range len(text) {
				mac := hmac.New(sha256.New, key)
				_, _ = mac.Write(text[n:])
				want := mac.Sum(nil)
				if !bytes.Equal(fast.of(text[n:]), want) || !bytes.Equal(slow.of(text[n:]), want) {
					t.Errorf("a text of %d bytes under a key of %d has another HMAC", len(text)-n, size)
				}
			}
		})
	}
	parsers.Wait()
}
