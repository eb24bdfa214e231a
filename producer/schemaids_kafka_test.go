//go:build kafka

package producer_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/sr"

	"github.com/storestream/storestream/internal/standins/servers"
	"github.com/storestream/storestream/producer"
	"github.com/storestream/storestream/schemas"
	"github.com/storestream/storestream/schemas/registry"
)

// A real registry counts from 1 again when its storage is gone, and says in its own words what it does not
// have. Once others have the ids, nothing may be published under them, until the topic is made anew.
func TestAnApicurioThatLostItsStorageHoldsWhatWasWrittenUnderItsIDs(t *testing.T) {
	s, dir := plainStage(t), t.TempDir()
	apicurio := servers.ApicurioForTest(t, servers.ApicurioConfig{Dir: dir})
	client, err := sr.NewClient(sr.URLs(apicurio.URL()))
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	c := s.cluster("a", func(c *producer.Config) {
		c.Now = func() time.Time { return now }
		if c.Registry, err = registry.New(registry.Config{URL: apicurio.URL()}); err != nil {
			t.Fatal(err)
		}
	})
	session := s.take(c)
	s.commit(session, next(session, s.order(1, "2026-11-20T09:00:00Z", "Shipped")))

	if err := apicurio.Kill(); err != nil {
		t.Fatal(err)
	}
	stored, err := filepath.Glob(filepath.Join(dir, "schemas*"))
	if err != nil || len(stored) == 0 {
		t.Fatalf("%v: the registry keeps its schemas elsewhere than in %s", err, dir)
	}
	for _, file := range stored {
		if err := os.RemoveAll(file); err != nil {
			t.Fatal(err)
		}
	}
	if err := apicurio.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	now = now.Add(time.Minute)
	if err := session.Commit(s.ctx(), next(session)); !errors.Is(err, producer.ErrLost) {
		t.Fatalf("commit: %v, expected ErrLost because of the registry", err)
	}
	session.Close()
	holds := func(found string) {
		t.Helper()
		_, err := producer.Take(s.ctx(), c, s.orders())
		var refused *producer.RefusedError
		if !errors.As(err, &refused) || refused.MayPass {
			t.Errorf("taking over: %v, expected a RefusedError", err)
		}
		wantText(t, err, "the schema id of its keys", found, "put its schemas back under their ids",
			"docs/operations.md says what to do")
		s.wantIDs(1)
	}
	holds("which this registry does not have")
	if subjects, err := client.Subjects(s.ctx()); err != nil || len(subjects) > 0 {
		t.Errorf("%v, %v: a schema was registered: its id may be one that stands in another topic", subjects, err)
	}
	for _, name := range []string{"Others", "OthersToo"} { // another team is first
		if _, err := client.CreateSchema(s.ctx(), name+"-value", sr.Schema{
			Schema: `{"type":"record","name":"` + name + `","fields":[{"name":"id","type":"long"}]}`}); err != nil {
			t.Fatal(err)
		}
	}
	holds("which names Others in this registry")

	if _, err := s.admin.DeleteTopics(s.ctx(), "store.orders"); err != nil { // as it says
		t.Fatal(err)
	}
	session = s.take(c)
	s.commit(session, next(session, s.order(1, "2026-11-20T09:00:00Z", "Shipped")))
	s.wantIDs(1)
	for _, record := range s.committed("store.orders") {
		keyID, _, _ := schemas.ReadKey(record.Key)
		valueID, _ := schemas.SchemaID(record.Value)
		for id, name := range map[int]string{keyID: "OrderKey", valueID: "Order"} {
			if schema, err := client.SchemaByID(s.ctx(), id); err != nil ||
				!strings.Contains(schema.Schema, `"name":"`+name+`"`) {
				t.Errorf("id %d: %v, %s; expected record %s", id, err, schema.Schema, name)
			}
		}
	}
}
