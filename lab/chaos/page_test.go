package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// While requests for users are refused, settling may be delayed for users alone.
func TestARefusalIsNoOtherResourcesTrouble(t *testing.T) {
	body := ""
	page := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = fmt.Fprint(w, body)
	}))
	defer page.Close()
	f := &fleet{instances: []*instance{{page: strings.TrimPrefix(page.URL, "http://")}}}
	for _, c := range []struct {
		resource, state, why string
		owned, wrong         bool
	}{
		{"users", "settling_delayed", "answered 422 past_refused", true, false},
		{"users", "blocked", "answered 422 past_refused", true, true},
		{"users", "blocked", "rows have lost city", true, false},
		{"products", "settling_delayed", "answered 422 past_refused", true, true},
		{"products", "settling_delayed", "a transaction is open", true, false},
		{"products", "settling_delayed", "answered 422 past_refused", false, false},
	} {
		body = fmt.Sprintf(`{"resources":[{"resource":%q,"state":%q,"why":%q,"owned":%v}]}`, c.resource, c.state,
			c.why, c.owned)
		if got := f.suffers(t.Context(), "users", "past_refused"); (got != "") != c.wrong {
			t.Errorf("%+v: %q", c, got)
		}
	}
}
