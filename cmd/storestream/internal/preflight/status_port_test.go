package preflight

import (
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/storestream/storestream/config"
	"github.com/storestream/storestream/internal/rotation"
	"github.com/storestream/storestream/internal/status"
)

func TestWhatIsWrongWithARunningInstanceIsSaidBesideIt(t *testing.T) {
	const token = "0123456789abcdef"
	board := status.New("shop-1", "v1")
	board.Provide(func() status.Snapshot {
		now := time.Now()
		following := status.Resource{Owned: true, Passes: 1, Settled: now, AsOf: now}
		delayed, failing := following, following
		delayed.Name, delayed.Delayed = "users", "a day cannot be closed"
		failing.Name, failing.Error = "orders", "poll.memory is full"
		return status.Snapshot{Resources: []status.Resource{failing, delayed,
			{Name: "products", Owner: "shop-2", Stalled: true}, {Name: "shipments", Abandoned: true}}}
	})
	server, err := status.Listen(status.Config{Addr: "127.0.0.1:0", Token: rotation.Literal(token)}, board,
		prometheus.NewRegistry())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Close() })
	f := &findings{part: "status"}
	settings := &config.Config{HTTP: config.HTTP{Listen: server.Addr(), Token: rotation.Literal(token)}}
	tryStatusPort(t.Context(), Config{Settings: settings}, f)
	says(t, f.all, OK, "status", "", "is a running storestream's")
	says(t, f.all, Warning, "status", "orders", "it fails there: poll.memory is full")
	says(t, f.all, Note, "status", "users", "settled stands still there: a day cannot be closed")
	says(t, f.all, Warning, "status", "products",
		"shop-2 has it, according to the consumer group, and does not write")
	says(t, f.all, Warning, "status", "shipments", "no instance has it")
}
