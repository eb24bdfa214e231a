package producer

import (
	"cmp"

	"github.com/storestream/storestream/schemas"
)

// Right allows a user operations on topics, a group or transactional ids.
type Right struct {
	User       string
	On         string   // topic, group or transactional-id
	Names      []string // prefixes if Prefixed is set
	Prefixed   bool
	Operations []string // Read and Write include Describe in Apache Kafka
}

// Rights returns the least rights of storestream, a consumer of the data topics of resources, and two people
// on call. oncall-admin may also ask for sweeps and the like. The topics have to be there. If storestream is
// to create them, it also needs Create on them.
func Rights(c *Cluster, resources ...string) []Right {
	own, group := cmp.Or(c.cfg.SASL.Username, "storestream"), []string{c.cfg.Group}
	topics, prefixed := []string{c.cfg.TopicPrefix}, c.cfg.TopicPrefix != ""
	if !prefixed { // Kafka has no empty prefix
		topics = nil
		for _, spec := range TopicSpecs(c, schemas.Names()...) {
			topics = append(topics, spec.Name)
		}
	}
	var read []string
	for _, resource := range resources {
		read = append(read, c.Topic(resource))
	}
	rights := []Right{
		{own, "topic", topics, prefixed, []string{"Read", "Write", "DescribeConfigs"}},
		{own, "group", group, false, []string{"Read"}},
		{own, "transactional-id", []string{c.transactionalID("")}, true, []string{"Write"}},
		{"analytics", "topic", append(read, c.Watermarks()), false, []string{"Read"}},
		{"analytics", "group", []string{"analytics"}, false, []string{"Read"}},
	}
	for _, user := range []string{"oncall", "oncall-admin"} {
		rights = append(rights, Right{user, "topic", topics, prefixed, []string{"Read", "DescribeConfigs"}},
			Right{user, "group", group, false, []string{"Describe"}})
	}
	return append(rights, Right{"oncall-admin", "topic", []string{c.requestsTopic()}, false, []string{"Write"}})
}
