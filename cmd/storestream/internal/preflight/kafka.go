package preflight

import (
	"context"
	"errors"
	"strings"

	"github.com/storestream/storestream/cmd/storestream/internal/connect"
	"github.com/storestream/storestream/config"
	"github.com/storestream/storestream/internal/terminal"
	"github.com/storestream/storestream/producer"
	"github.com/storestream/storestream/schemas"
	"github.com/storestream/storestream/schemas/registry"
)

// tryKafka tries each broker, and rehearses the takeover of each resource.
func tryKafka(ctx context.Context, c Config, f *findings) {
	ping, cancel := context.WithTimeout(ctx, connect.BrokerPatience)
	defer cancel()
	defer func() {
		f.expiry("kafka.sasl.token_url", c.Settings.TLS(config.TokenEndpoint).Shown())
	}()
	if err := c.Cluster.Ping(ping); err != nil {
		f.fail("", err)
		return
	}
	for _, broker := range c.Settings.Kafka.Brokers {
		if err := producer.Reach(ctx, c.Cluster, broker); err != nil {
			f.add(Warning, "", "start it, or take it out of kafka.brokers: an instance that starts asks the others, "+
				"and waits for this one now and then", "%s of kafka.brokers does not answer: %s", broker, err)
			continue
		}
		f.ok("", "broker %s answers", broker)
		f.expiry("", c.Settings.TLS("kafka").Shown())
	}
	for _, name := range c.Settings.Enabled() {
		rehearse(ctx, c, f, name)
	}
	members, err := producer.Members(ctx, c.Cluster)
	switch {
	case errors.Is(err, producer.ErrSharing): // its members are not told then
		f.ok("group", "%s", err)
	case err != nil:
		f.fail("group", err)
	default:
		f.ok("group", "has %s", terminal.Plural(len(members), "instance"))
	}
}

// rehearse rehearses the takeover of a resource.
func rehearse(ctx context.Context, c Config, f *findings, name string) {
	r, topic := c.Schemas.Get(name), c.Cluster.Topic(name)
	found, err := producer.Rehearse(ctx, c.Cluster, r)
	for _, concern := range found.Concerns {
		level := Warning
		if concern.Unknown {
			level = Note
		}
		f.add(level, concern.Topic, concern.Do, "%s is %s, expected %s", concern.Setting, concern.Found,
			concern.Expected)
	}
	switch {
	case registry.AsAWhole(err): // the part "registry" reports it
	case err != nil:
		f.fail(topic, err)
	case found.Partitions == 0:
		f.ok(topic, "is not there yet, and `run` can create it")
	default:
		f.ok(topic, "can be taken over: %s, %s", terminal.Plural(found.Partitions, "partition"),
			terminal.Plural(found.Replicas, "replica"))
	}
	if found.Afresh != "" {
		f.add(Warning, topic, "storestream run: an instance that runs fills it from the start within a minute",
			"it does not hold all that was published: %s", found.Afresh)
	}
	if mark := found.Mark; mark != nil && mark.Rows > 0 && mark.Policies.Older(r.PolicyFingerprint()) {
		f.add(Warning, topic, "restart the instances with this configuration, then storestream sweep "+name,
			"it holds rows published under other policies for fields than privacy.fields says here")
	}
	if id := r.KeyID(); id != "" {
		f.ok(topic, "hashes are made with the privacy.key with the id %s (header %s)", id, schemas.HeaderKeyID)
	}
	if fields := r.PersonalInClear(); len(fields) > 0 {
		f.add(Note, topic, "see that only those read it who need to ("+
			c.Cluster.Tool("kafka-acls.sh", "--list", "--topic", topic)+"), and "+c.Cluster.DeadLetters()+
			" too; privacy.fields masks, hashes or drops fields",
			"its rows have personal data in clear: %s", strings.Join(fields, ", "))
	}
}

// tryRegistry reports the first error about the registry as a whole. The rehearsals report the others.
func tryRegistry(ctx context.Context, c Config, f *findings) {
	defer func() { f.expiry("", c.Settings.TLS("registry").Shown()) }()
	for _, name := range c.Settings.Enabled() {
		_, _, err := c.Registry.Ensure(ctx, c.Cluster.Topic(name), c.Schemas.Get(name), true, true)
		if registry.AsAWhole(err) {
			f.fail("", err)
			return
		}
	}
	f.ok("", "%s answers", c.Settings.Registry.URL)
}
