package producer

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/storestream/storestream/schemas"
	"github.com/storestream/storestream/schemas/registry"
)

// Any program may write to the topic, and a schema may change so that no old record fits it.
func TestTheRegistryIsAskedOnceForASchemaThatDoesNotFit(t *testing.T) {
	asked := 0
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked++
		fmt.Fprint(w, `{"schema":"{\"type\":\"record\",\"name\":\"Other\",\"fields\":[]}"}`)
	}))
	defer s.Close()
	client, err := registry.New(registry.Config{URL: s.URL})
	if err != nil {
		t.Fatal(err)
	}
	set, err := schemas.Load("")
	if err != nil {
		t.Fatal(err)
	}
	c := &Cluster{cfg: Config{Registry: client}}
	r := newRowReader(c, target{resource: set.Get("orders"), valueID: 1}, 1)
	for range 3 {
		if _, err := r.value(t.Context(), []byte{0, 0, 0, 0, 7, 0}); !errors.Is(err, errNotOurs) {
			t.Errorf("%v, expected that the value is not ours", err)
		}
	}
	if asked != 1 {
		t.Errorf("the registry was asked %d times for one schema", asked)
	}
}
