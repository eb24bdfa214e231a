package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/storestream/storestream/internal/rotation"
)

// keyPath is the path at which the service hands out keys, to anyone.
const keyPath = "/store-api-keys"

// keyring holds the key that all requests send.
type keyring struct {
	fetch func(ctx context.Context) (string, error)
	// configured is the key that the operator chose, if any. It is never replaced by one that the service hands
	// out to anyone: that would be another account with other rights, and would hide that the chosen key is
	// refused.
	configured rotation.Secret

	turn chan struct{} // holds one token: its holder may look at key and replace it
	key  string        // that was fetched
}

func newKeyring(configured rotation.Secret, fetch func(ctx context.Context) (string, error)) *keyring {
	k := &keyring{fetch: fetch, configured: configured, turn: make(chan struct{}, 1)}
	k.turn <- struct{}{}
	return k
}

// get returns the key, and fetches the first one. refused is the key that the service has just answered 401
// to, or "". If that is still the current key, get fetches a new one. When five resources are refused at
// once, the first to come fetches, and the others find another key than the one they were refused with. If
// each fetched its own, and a new key revoked the one before, four of them would stay refused.
func (k *keyring) get(ctx context.Context, refused string) (string, error) {
	if k.configured.IsSet() {
		return k.configured.Get(), nil
	}
	select {
	case <-k.turn:
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
	defer func() { k.turn <- struct{}{} }()
	if k.key != refused {
		return k.key, nil
	}
	key, err := k.fetch(ctx)
	if err != nil {
		return "", fmt.Errorf("fetching an API key: %w", err)
	}
	k.key = key
	return key, nil
}

// readKey takes the key out of the key endpoint's answer. Its errors never quote the body.
func readKey(body []byte) (string, error) {
	var answer struct {
		Key string `json:"api_key"`
	}
	if err := json.Unmarshal(body, &answer); err != nil || answer.Key == "" {
		return "", errors.New(`the answer has no string "api_key"`)
	}
	for _, c := range []byte(answer.Key) {
		if c <= ' ' || c >= 0x7f {
			return "", errors.New(`"api_key" holds characters that cannot stand in a header`)
		}
	}
	return answer.Key, nil
}
