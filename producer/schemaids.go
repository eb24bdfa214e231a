package producer

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/storestream/storestream/schemas"
	"github.com/storestream/storestream/schemas/registry"
)

// A registry that lost its schemas (it kept them in memory, or an old backup was put back) gives ids anew, in
// the order in which somebody asks. What stands in a topic then has ids that name nothing, and later other
// schemas: consumers fail, or decode one row as another. storestream itself needs the registry only for what
// it does not write under today's schema, so it would go on for weeks.
//
//	the registry comes back empty
//	a session asks for its subjects, within a minute: they are gone, or have other ids. It ends (otherIDs)
//	the takeover finds that no id in the topic names its record. It registers nothing, and holds (SameSchemas)
//
// To register then would be worse than to wait: the ids would be taken, and the old schemas could not be put
// back under theirs.

// SameSchemas asks the registry, anew, whether the schema ids under which r's topic was written still name
// the record of its keys, and of its values. A topic that is empty, or not there, has none. The error is a
// *RefusedError where they do not, else what could not be asked.
func SameSchemas(ctx context.Context, c *Cluster, r *schemas.Resource) error {
	oldest, err := oldestKeys(ctx, c, c.Topic(r.Name))
	if errors.Is(err, kerr.UnknownTopicOrPartition) {
		return nil
	}
	if err != nil {
		return err
	}
	return sameSchemas(ctx, c, r, oldest)
}

// sameSchemas goes by the oldest record of each partition. One whose ids are right is enough: anybody may
// write to the topic, and a stray record must not hold the resource.
func sameSchemas(ctx context.Context, c *Cluster, r *schemas.Resource, oldest []*kgo.Record) error {
	var keys, values []int
	for _, record := range oldest {
		if id, _, err := schemas.ReadKey(record.Key); err == nil {
			keys = append(keys, id)
		}
		if id, err := schemas.SchemaID(record.Value); err == nil {
			values = append(values, id)
		}
	}
	for _, part := range []struct {
		of, record string
		ids        []int
	}{
		{"keys", r.RecordName + "Key", keys}, {"values", r.RecordName, values},
	} {
		slices.Sort(part.ids)
		if err := oneNames(ctx, c, r, part.of, part.record, slices.Compact(part.ids)); err != nil {
			return err
		}
	}
	return nil
}

// oneNames returns nil where one of the ids names the record, or there are none.
func oneNames(ctx context.Context, c *Cluster, r *schemas.Resource, of, record string, ids []int) error {
	var found []string
	for _, id := range ids {
		name, err := c.cfg.Registry.Record(ctx, id)
		var fault *registry.Error
		switch {
		case name == record:
			return nil
		case err == nil:
			found = append(found, fmt.Sprintf("%d, which names %.80s in this registry", id, name))
		case errors.As(err, &fault) && fault.Fault == registry.NotAvro:
			found = append(found, fmt.Sprintf("%d, which names no record in this registry", id))
		case errors.As(err, &fault) && fault.Fault == registry.NotRegistered:
			found = append(found, fmt.Sprintf("%d, which this registry does not have", id))
		default:
			return err
		}
	}
	if len(found) == 0 {
		return nil
	}
	return &RefusedError{Topic: c.Topic(r.Name), Setting: "the schema id of its " + of,
		Found: strings.Join(found, "; "), Expected: "the id of record " + record + " (no consumer can decode them)",
		Do: "point registry.url at the registry that the topic was written with, or put its schemas back under " +
			"their ids (a backup; Confluent's mode IMPORT), and it goes on by itself; where they are lost, delete " +
			"the topic: it is created anew and filled from the start"}
}

// otherIDs says how the registry's answers for the subjects of a topic that is being written differ from the
// ids that it is written under; "" where they do not, or cannot be asked for now.
func otherIDs(ctx context.Context, c *registry.Client, t target) string {
	keyID, valueID, err := c.Ensure(ctx, t.topic.name, t.resource, false)
	var fault *registry.Error
	switch {
	case errors.As(err, &fault) && (fault.Fault == registry.NotRegistered || fault.Fault == registry.KeyChanged):
		return err.Error()
	case err == nil && (keyID != t.keyID || valueID != t.valueID):
		return fmt.Sprintf("the registry has schema ids %d (key) and %d (value) for it now, it is written under "+
			"%d and %d", keyID, valueID, t.keyID, t.valueID)
	}
	return ""
}
