package main

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/storestream/storestream/cmd/storestream/internal/stage"
	"github.com/storestream/storestream/internal/standins/servers"
)

func TestSchemasAreShown(t *testing.T) {
	for _, args := range [][]string{{"schema", "show", "orders"}, {"schema", "show", "orders", "--key"}} {
		if c := do(t, args...).expect(t, exitDone); !json.Valid([]byte(c.stdout.String())) {
			t.Errorf("%q is not JSON:\n%s", args, c.stdout)
		}
	}
}

func TestSchemasAreCheckedWithoutBeingRegistered(t *testing.T) {
	s := newScene(t)
	s.do("schema", "check").expect(t, exitDone, "store.orders-value", "not registered; compatible")
	s.do("schema", "check").expect(t, exitDone, "not registered; compatible") // still
	s.do("schema", "register").expect(t, exitDone, "store.orders-key", "store.shipments-value")
	if c := s.do("schema", "check").expect(t, exitDone, "registered"); strings.Contains(c.stdout.String(),
		"not registered") {
		t.Errorf("after registering:\n%s", c.stdout)
	}
}

func TestARegistryThatRefusesIsNamedWithItsReason(t *testing.T) {
	s := newScene(t)
	s.Registry.Fake.Intercept(func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method != http.MethodPost || !strings.HasSuffix(r.URL.Path, "/versions") {
			return false
		}
		w.WriteHeader(http.StatusConflict)
		_, _ = w.Write([]byte(`{"error_code":409,"message":"Schema is incompatible with an earlier schema"}`))
		return true
	})
	s.do("schema", "register").expect(t, exitFailed, "store.orders-key", s.Registry.URL,
		"incompatible")
}

func TestARegistryThatIsNotThereIsNamed(t *testing.T) {
	do(t, "schema", "register", "--set", "registry.url=http://"+stage.Nowhere(t),
		"--set", "kafka.brokers="+stage.Nowhere(t)).expect(t, exitFailed,
		"cannot serve this now: `run` tries it again")
}

// The ids of what is registered now may stand in any topic, whichever schema comes first.
func TestNothingIsRegisteredWhereTheRegistryLostWhatATopicWasWrittenUnder(t *testing.T) {
	s := newScene(t)
	s.Publish("users", nil, []int64{1}, nil) // a tombstone has the id of its key alone
	s.Publish("shipments", nil, []int64{1}, nil)
	s.do("schema", "register").expect(t, exitDone, "store.shipments-value")
	empty := servers.RegistryForTest(t)
	s.Settings = append(s.Settings, "registry.url="+empty.URL)
	s.do("schema", "register").expect(t, exitFailed, "nothing was registered: topic store.users",
		"the schema id of its keys", "which this registry does not have", "put its schemas back under their ids")
	for _, r := range s.Schemas.All() {
		for _, part := range []string{"-key", "-value"} {
			if subject := "store." + r.Name + part; empty.Fake.SubjectExists(subject) {
				t.Errorf("%s was registered: its id may be one that stands in another topic", subject)
			}
		}
	}
	s.Settings = append(s.Settings, "kafka.brokers="+stage.Nowhere(t))
	s.do("schema", "register").expect(t, exitDone, "not compared with the ids in the topics: kafka",
		"store.users-key")
}
