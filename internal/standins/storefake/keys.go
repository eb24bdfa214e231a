package storefake

import (
	"crypto/rand"
	"encoding/hex"
	"net/http"
	"strings"
	"sync"
	"time"
)

// keyring holds the one key that is good now.
type keyring struct {
	mu      sync.Mutex
	key     string
	expires time.Time // by the machine's clock, or the zero time for never
	left    int       // data requests, if they are limited
	limited bool
}

// current returns the valid key: the one given out before, or a new one if that is used up.
func (k *keyring) current(rules Keys) string {
	k.mu.Lock()
	defer k.mu.Unlock()
	if !k.good() {
		random := make([]byte, 16)
		_, _ = rand.Read(random) // never fails
		k.key, k.expires = "sk_"+hex.EncodeToString(random), time.Time{}
		if rules.Lifetime > 0 {
			k.expires = time.Now().Add(rules.Lifetime)
		}
		k.left, k.limited = rules.Requests, rules.Requests > 0
	}
	return k.key
}

func (k *keyring) good() bool {
	return k.key != "" && (k.expires.IsZero() || time.Now().Before(k.expires)) && (!k.limited || k.left > 0)
}

// admit says whether the request carries the good key, and takes one request off it.
func (k *keyring) admit(r *http.Request) bool {
	scheme, key, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	k.mu.Lock()
	defer k.mu.Unlock()
	if !k.good() || !strings.EqualFold(scheme, "Bearer") || key != k.key {
		return false
	}
	k.left--
	return true
}

// revoke makes the key bad at once.
func (k *keyring) revoke() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.key = ""
}
