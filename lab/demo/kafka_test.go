//go:build kafka && linux

package main

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/storestream/storestream/config"
)

// The consumer has what a user has: the lines that the demo prints.
func TestOnApacheKafkaAConsumerReadsByWhatTheDemoPrints(t *testing.T) {
	program, folder := program(t), isolated(t)
	r := start(t, "--kafka", "--storestream", program)
	r.until("Apache Kafka")
	r.until("Apicurio")
	r.until("For a consumer of your own")
	c := &config.Config{}
	c.Kafka.Brokers = []string{lastWord(r.until("bootstrap.servers"))}
	c.Registry.URL = lastWord(r.until("schema.registry.url"))
	c.Kafka.TopicPrefix = "store."
	if level := lastWord(r.until("isolation.level")); level != "read_committed" {
		t.Errorf("isolation.level %s", level)
	}
	topics := r.until("store.orders") + r.until("store.users") // two lines
	for _, name := range []string{"order_items", "products", "users", "shipments"} {
		if !strings.Contains(topics, " store."+name) {
			t.Errorf("%s is not among the topics: %s", name, topics)
		}
	}
	consume(t, c, map[string]int{"orders": 200, "order_items": 200, "products": 80, "users": 150,
		"shipments": 200})
	r.until("by Kafka's own tool")
	tool := r.until("ConsumerGroupCommand")
	out, err := exec.CommandContext(t.Context(), "bash", "-c", tool).CombinedOutput()
	if err != nil || !strings.Contains(string(out), "store.watermarks") {
		t.Errorf("%s: %v\n%s", tool, err, out)
	}
	r.interrupt()
	if status, stdout, stderr := r.end(); status != exitDone ||
		!strings.Contains(stdout, "nothing is left behind") {
		t.Errorf("exit status %d, stderr %q, stdout:\n%s", status, stderr, stdout)
	}
	nothingLeft(t, folder)
}
