package preflight

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/storestream/storestream/producer"
	"github.com/storestream/storestream/schemas/registry"
)

// subjects asks the registry about the subjects of each enabled resource, and holds the keys in the topics
// against them.
type subjects struct {
	c        Config
	found    *findings
	readOnly bool // the registry registers nothing
}

func tryRegistry(ctx context.Context, c Config, f *findings) {
	s := subjects{c: c, found: f}
	var err error
	s.readOnly, err = c.Registry.ReadOnly(ctx)
	if err != nil && registry.Retryable(err) {
		s.found.fail("", err, "start it, or check registry.url; `run` waits for it")
		return
	}
	for i, name := range c.Settings.Enabled() {
		topic := c.Cluster.Topic(name)
		if s.found.refused(topic, producer.SameSchemas(ctx, c.Cluster, c.Schemas.Get(name))) {
			continue // of other errors Kafka's part tells
		}
		both, err := c.Registry.Check(ctx, topic, c.Schemas.Get(name))
		if registry.HasFault(err, registry.NotARegistry, registry.Moved, registry.Unauthorized) {
			// The error is about the registry as a whole, not about this subject.
			s.found.fail("", err, "")
			return
		}
		if i == 0 {
			s.found.ok("", "%s answers", c.Settings.Registry.URL)
		}
		if err != nil {
			s.found.fail(topic, err, "")
			continue
		}
		if s.usable(topic, both) {
			s.keys(ctx, name, both[0].ID)
		}
	}
}

// usable says whether both subjects of a topic can be used, and returns that they can.
func (s *subjects) usable(topic string, both []registry.Subject) bool {
	var ids, absent []string
	for _, subject := range both {
		switch {
		case subject.ID != 0:
			ids = append(ids, fmt.Sprint(subject.ID))
		case !subject.Compatible:
			s.found.add(Failure, topic, "change the schema file, or the subject's compatibility",
				"the registry refuses %s: %s", subject.Name, strings.Join(subject.Messages, "; "))
			return false
		default:
			absent = append(absent, subject.Name)
		}
	}
	lacks := strings.Join(absent, ", ")
	switch {
	case len(absent) == 0:
		s.found.ok(topic, "key and value are registered (ids %s)", strings.Join(ids, ", "))
	case s.readOnly:
		s.found.add(Failure, topic, "register the schemas where the registry can be written, or end its read-only "+
			"mode", "the registry is read-only and lacks %s", lacks)
		return false
	case !s.c.Settings.Registry.AutoRegister:
		s.found.add(Failure, topic, "register them (`storestream schema register`), or set registry.auto_register",
			"the registry lacks %s", lacks)
		return false
	default:
		s.found.ok(topic, "%s not registered yet; compatible, and `run` registers", lacks)
	}
	return true
}

// keys holds the schema id of the keys in the topic against the registry's: under two ids one row would have
// two keys.
func (s *subjects) keys(ctx context.Context, resource string, want int) {
	topic := s.c.Cluster.Topic(resource)
	ids, err := producer.Inspect(s.c.Cluster).KeyIDs(ctx, resource)
	if err != nil || len(ids) == 0 || slices.Equal(ids, []int{want}) {
		return // the part about Kafka reports a bad topic
	}
	is := fmt.Sprintf("schema id %d", want)
	if want == 0 {
		is = "no id yet"
	}
	s.found.add(Failure, topic, "point registry.url at the registry that the topic was written with; or delete "+
		"the topic: storestream creates it again and fills it from the start",
		"its keys have schema id %s, and %s-key has %s in this registry: the same row would have two keys, and "+
			"compaction would keep both", strings.Trim(fmt.Sprint(ids), "[]"), topic, is)
}
