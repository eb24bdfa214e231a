package preflight

import (
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/storestream/storestream/config"
	"github.com/storestream/storestream/internal/health"
	"github.com/storestream/storestream/internal/rotation"
	"github.com/storestream/storestream/internal/status"
	"github.com/storestream/storestream/internal/watermark"
	"github.com/storestream/storestream/schemas"
)

func TestWhatIsWrongWithARunningInstanceIsSaidBesideIt(t *testing.T) {
	const token = "0123456789abcdef"
	board := status.New("shop-1", "v1")
	board.Provide(func() status.Snapshot {
		now := schemas.InstantOf(time.Now())
		following := health.Resource{Owned: true, Polling: true, Passes: 1, Good: &now}
		delayed, blocked := following, following
		delayed.Name, delayed.Trouble = "users", &watermark.Trouble{Why: "a day cannot be closed", Publishes: true}
		blocked.Name, blocked.Trouble = "orders", &watermark.Trouble{Why: "poll.memory is full"}
		return status.Snapshot{Resources: []health.Resource{blocked, delayed,
			{Name: "products", Owner: "shop-2", Silent: time.Hour}, {Name: "shipments", Abandoned: true}}}
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
	says(t, f.all, Warning, "status", "orders", "its page says blocked: poll.memory is full")
	says(t, f.all, Note, "status", "users", "its page says settling_delayed: a day cannot be closed")
	says(t, f.all, Warning, "status", "products",
		"its page says stalled: shop-2 has it, according to the consumer group, and has written no watermark")
	says(t, f.all, Warning, "status", "shipments", "no instance polls it")
}
