package producer

import (
	"context"
	"testing"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
)

// Each look would wait for it again, within the group's own calls, and other resources would begin later.
func TestAnOwnerThatDoesNotStopIsWaitedForOnce(t *testing.T) {
	core, logs := observer.New(zap.WarnLevel)
	c, err := Open(Config{Brokers: []string{"127.0.0.1:1"}, Partitions: 3, Group: "storestream", Instance: "a",
		Log: zap.New(core)})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	g := NewGroup(c, []string{"orders"}, revokeTimeout, nil)
	g.owners["orders"] = &owner{cancel: func(error) {}, done: make(chan struct{})}
	ctx, cancel := context.WithCancel(context.Background())
	cancel() // there is no broker to ask
	for range 2 {
		g.look(ctx)
	}
	if said := logs.FilterMessageSnippet("did not stop in time").Len(); said != 1 {
		t.Errorf("%d reports of one owner that does not stop", said)
	}
}
