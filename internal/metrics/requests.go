package metrics

import (
	"slices"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
)

// Requests is how many requests were sent to the service since the start, by resource and status code ("0": no answer). It is for people to
// look at, as Published and Fields are.
func (s *Set) Requests() map[string]map[string]int64 {
	sent := make(map[string]map[string]int64)
	each(s.httpRequests, func(labels map[string]string, value float64) {
		resource := labels["resource"]
		if sent[resource] == nil {
			sent[resource] = make(map[string]int64)
		}
		sent[resource][labels["code"]] = int64(value)
	})
	return sent
}

// Published is how many rows this process has published, by resource.
func (s *Set) Published() map[string]int64 {
	rows := make(map[string]int64)
	each(s.rowsPublished, func(labels map[string]string, value float64) { rows[labels["resource"]] = int64(value) })
	return rows
}

// Fields is the fields met that the schemas do not know, by resource.
func (s *Set) Fields() map[string][]string {
	met := make(map[string][]string)
	each(s.unknownFields, func(labels map[string]string, _ float64) {
		met[labels["resource"]] = append(met[labels["resource"]], labels["field"])
	})
	for _, fields := range met {
		slices.Sort(fields)
	}
	return met
}

// each gives every series of a counter.
func each(v *prometheus.CounterVec, take func(labels map[string]string, value float64)) {
	found := make(chan prometheus.Metric)
	go func() {
		defer close(found)
		v.Collect(found)
	}()
	for metric := range found {
		var m dto.Metric
		if metric.Write(&m) != nil {
			continue
		}
		labels := make(map[string]string)
		for _, l := range m.GetLabel() {
			labels[l.GetName()] = l.GetValue()
		}
		take(labels, m.GetCounter().GetValue())
	}
}
