// Package metrics declares storestream's metrics, under the names that docs/reference.md promises. The code
// that sees an event counts it here, and no rule depends on a count.
package metrics

import (
	"sync"

	"github.com/prometheus/client_golang/prometheus"
)

// Set is all metrics of one process.
type Set struct {
	// Kafka has the counters that the clients of all resources share.
	Kafka *Kafka

	reg    prometheus.Registerer
	mu     sync.Mutex
	byName map[string]*Resource
}

// New declares the metrics in reg.
func New(reg prometheus.Registerer) *Set {
	return &Set{Kafka: newKafka(reg), reg: reg, byName: map[string]*Resource{}}
}

// Resource is the metrics of the resource with this name.
func (s *Set) Resource(name string) *Resource {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.byName[name]
	if r == nil {
		r = newResource(s.reg, name)
		s.byName[name] = r
	}
	return r
}
