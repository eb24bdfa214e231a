package main

import (
	"context"
	"fmt"
	"net/http"
	"time"
)

// What happens to the schema registry. Owners ask it when they take over a resource, so its mishaps matter
// when an instance dies meanwhile.
var registryKinds = []*kind{
	{name: "registry cut off", weight: 2, hits: theRegistry, least: 5 * time.Second, most: 20 * time.Second,
		do: cut(toRegistry)},
	{name: "registry silent", weight: 1, hits: theRegistry, least: 5 * time.Second, most: 15 * time.Second,
		do: poison(toRegistry, toxic{"timeout", downstream, 0})},
	{name: "registry answers", weight: 2, hits: theRegistry, least: 5 * time.Second, most: 15 * time.Second,
		needs: &need{"--registry=embedded", func(p *plan) bool { return p.registry == embedded }},
		details: func(d draw, _ *plan, e *event) {
			e.number = oneOf(d, http.StatusInternalServerError, http.StatusConflict, http.StatusServiceUnavailable,
				http.StatusForbidden)
			e.amount = float64(e.number)
		},
		do: func(_ context.Context, s *stage, e event) (func() error, error) {
			fake := s.around.registry.embedded.Fake
			fake.Intercept(func(w http.ResponseWriter, _ *http.Request) bool {
				w.Header().Set("Content-Type", "application/vnd.schemaregistry.v1+json")
				w.WriteHeader(e.number)
				// No JSON, as from something in front of it.
				_, _ = fmt.Fprintf(w, `{"error_code":%s,"message":"refused by chaos"}`, http.StatusText(e.number))
				return true
			})
			return func() error { fake.ClearInterceptors(); return nil }, nil
		}},
}
