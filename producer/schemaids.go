package producer

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/storestream/storestream/schemas"
	"github.com/storestream/storestream/schemas/registry"
)

// A registry that lost its schemas (it kept them in memory, or an old backup was restored) gives ids again
// from 1, in the order of the requests. The ids in a topic then name no schema, and later other schemas:
// consumers fail, or decode one row as another. storestream itself needs the registry only for records that
// are not under today's schema, so it would go on for weeks.
//
//	the registry comes back empty
//	a session asks for its subjects, within a minute: they are gone, or have other ids. It ends (otherIDs)
//	the takeover finds that no id in the topic names its record. It registers nothing, and holds (SameSchemas)
//
// To register schemas then would be worse than to wait: the ids would be taken, and the old schemas could
// not be restored under them.

// SameSchemas asks the registry whether the schema ids under which r's topic was written still name the
// record of its keys, and of its values. A topic that is empty or missing has none. The error is a
// *RefusedError if they do not, else that of the request.
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

// sameSchemas checks the oldest record of each partition. One whose ids are right is enough: any program
// may write to the topic, and a stray record must not block the resource.
func sameSchemas(ctx context.Context, c *Cluster, r *schemas.Resource, oldest []*kgo.Record) error {
	for _, part := range []struct {
		of, record string
		id         func(*kgo.Record) (int, error)
	}{
		{"keys", r.RecordName + "Key", func(record *kgo.Record) (int, error) {
			id, _, err := schemas.ReadKey(record.Key)
			return id, err
		}},
		{"values", r.RecordName, func(record *kgo.Record) (int, error) { return schemas.SchemaID(record.Value) }},
	} {
		var others []string
		for _, record := range oldest {
			id, err := part.id(record)
			if err != nil {
				continue
			}
			name, err := c.cfg.Registry.Record(ctx, id)
			if err == nil && name == part.record {
				others = nil
				break
			}
			why := fmt.Sprintf("%d, which names %.80s in this registry", id, name)
			if registry.HasFault(err, registry.NotRegistered) {
				why = fmt.Sprintf("%d, which this registry does not have", id)
			} else if err != nil {
				return err
			}
			others = append(others, why)
		}
		if len(others) > 0 {
			return &RefusedError{Topic: c.Topic(r.Name), Setting: "the schema id of its " + part.of,
				Found:    strings.Join(slices.Compact(others), "; "),
				Expected: "the id of record " + part.record + " (no consumer can decode them)",
				Do: "point registry.url at the registry that the topic was written with, or put its schemas back " +
					"under their ids (a backup; Confluent's mode IMPORT), and it goes on by itself; if they are lost " +
					"for good, docs/operations.md says what to do, \"Not taken over\""}
		}
	}
	return nil
}

// otherIDs returns an error if the registry's schema ids for a topic are others than a session writes. An
// owner at work needs no answer to go on, so a registry that does not answer holds up no commit for longer
// than registryPatience, once a minute.
func otherIDs(ctx context.Context, c *Cluster, t *target) error {
	ctx, cancel := context.WithTimeout(ctx, registryPatience)
	defer cancel()
	keyID, valueID, err := c.cfg.Registry.Ensure(ctx, t.topic, t.resource, false, false)
	if err == nil && (keyID != t.keyID || valueID != t.valueID) {
		err = fmt.Errorf("they are %d and %d", keyID, valueID)
	} else if !registry.HasFault(err, registry.NotRegistered, registry.KeyChanged) {
		return nil // well, or not known now
	}
	return fmt.Errorf("its schema ids for topic %s are not %d (key) and %d (value) any more, under which it is "+
		"written: %w: put the schemas back under these ids (a backup; Confluent's mode IMPORT), and register "+
		"nothing before", t.topic, t.keyID, t.valueID, err)
}

// registryPatience is how long otherIDs waits for an answer.
const registryPatience = time.Second
