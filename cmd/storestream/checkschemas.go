package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/storestream/storestream/producer"
	"github.com/storestream/storestream/schemas/registry"
)

// schemas asks the registry about the subjects of each enabled resource, and holds the keys in the topics against them.
func (c *checker) schemas(ctx context.Context) []finding {
	f := &findings{part: "registry"}
	readOnly, err := c.registry.ReadOnly(ctx)
	if err != nil && registry.Retryable(err) {
		f.fail("", err, "start it, or check registry.url; `run` waits for it")
		return f.all
	}
	f.ok("", "%s answers", c.cfg.Registry.URL)
	for _, name := range c.cfg.Enabled() {
		topic := c.cluster.Topic(name)
		subjects, err := c.registry.Check(ctx, topic, c.set.Get(name))
		if err != nil {
			f.fail(topic, err, "")
			continue
		}
		if f.subjects(topic, subjects, c.cfg.Registry.AutoRegister, readOnly) {
			c.keys(ctx, f, name, subjects[0].ID)
		}
	}
	return f.all
}

// subjects says whether both of a topic's can be used, and returns that they can.
func (f *findings) subjects(topic string, subjects []registry.Subject, auto, readOnly bool) bool {
	var ids, absent []string
	for _, s := range subjects {
		switch {
		case s.ID != 0:
			ids = append(ids, fmt.Sprint(s.ID))
		case !s.Compatible:
			f.add(failing, topic, "change the schema file, or the subject's compatibility", "the registry refuses %s: %s", s.Name, strings.Join(s.Messages, "; "))
			return false
		default:
			absent = append(absent, s.Name)
		}
	}
	switch {
	case len(absent) == 0:
		f.ok(topic, "key and value are registered (ids %s)", strings.Join(ids, ", "))
	case readOnly:
		f.add(failing, topic, "register the schemas where the registry can be written, or end its read-only mode", "the registry is read-only and lacks %s", strings.Join(absent, ", "))
		return false
	case !auto:
		f.add(failing, topic, "register them (`storestream schema register`), or set registry.auto_register", "the registry lacks %s", strings.Join(absent, ", "))
		return false
	default:
		f.ok(topic, "%s not registered yet; compatible, and `run` registers", strings.Join(absent, ", "))
	}
	return true
}

// keys holds the schema id of the keys that the topic has against the registry's: under two ids one row would have two keys.
func (c *checker) keys(ctx context.Context, f *findings, resource string, want int) {
	topic := c.cluster.Topic(resource)
	ids, err := producer.Inspect(c.cluster).KeyIDs(ctx, resource)
	if err != nil || len(ids) == 0 || slices.Equal(ids, []int{want}) {
		return // what is wrong with the topic is Kafka's part to say
	}
	is := fmt.Sprintf("schema id %d", want)
	if want == 0 {
		is = "no id yet"
	}
	f.add(failing, topic, "point registry.url at the registry that the topic was written with; or delete the topic: it is created anew and filled from the start",
		"its keys have schema id %s, and %s-key has %s in this registry: the same row would have two keys, and compaction would keep both",
		strings.Trim(fmt.Sprint(ids), "[]"), topic, is)
}
