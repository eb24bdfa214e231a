package client

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/storestream/storestream/internal/rotation"
	"github.com/storestream/storestream/internal/standins/servers"
	"github.com/storestream/storestream/poller"
)

func TestAKeyThatIsRotatedGoesWithTheNextTry(t *testing.T) {
	mount := servers.MountForTest(t, t.TempDir(), map[string]string{"key": "first"})
	good, before := "first", func() {}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		before()
		if r.Header.Get("Authorization") != "Bearer "+good {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		fmt.Fprint(w, `{"data":[],"meta":{"has_more":false}}`)
	}))
	defer server.Close()
	key, err := rotation.Follow(nil, "store.api_key", mount.Path("key"), nil)
	if err != nil {
		t.Fatal(err)
	}
	c, err := New(Config{BaseURL: server.URL, APIKey: key, MaxRequestsPerSecond: 1000})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	page := func(ctx context.Context) error {
		_, err := c.Endpoint("/orders", uncounted, unwaited).Page(ctx, "page=1", 0)
		return err
	}
	if err := page(t.Context()); err != nil {
		t.Fatal(err)
	}

	// The service has another key before the file has it: the resource is blocked until it has.
	good = "second"
	if err := page(t.Context()); !errors.As(err, new(*poller.BlockedError)) {
		t.Errorf("a refused key gives %v, expected a BlockedError", err)
	}
	mount.Swap(map[string]string{"key": "second\n"})
	if err := page(t.Context()); err != nil {
		t.Error(err)
	}

	// The file has it while the refusal is on its way: the same request goes on.
	good = "third"
	before = func() {
		before = func() {}
		mount.Swap(map[string]string{"key": "third"})
	}
	if err := page(t.Context()); err != nil {
		t.Error(err)
	}
}
