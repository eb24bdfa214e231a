package e2e

import (
	"context"
	"fmt"
	"math/big"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/storestream/storestream/internal/standins/storefake"
	"github.com/storestream/storestream/lab/asked"
)

// floor is how a topic shows an instant of the service: PostgreSQL's to the millisecond, REST's to the
// second, unless REST shows fractions too.
func (s *stack) floor(resource string, at time.Time) time.Time {
	if s.postgres != nil && (resource == storefake.Orders || resource == storefake.OrderItems) {
		return at.Truncate(time.Millisecond)
	}
	if s.fake.Readings().Habits.Fractions {
		return at.Truncate(time.Millisecond)
	}
	return at.Truncate(time.Second)
}

// differences compares the newest record of every id with the service's rows, field by field. nil: equal.
func (s *stack) differences(resource string, records []record) []string {
	newest := map[int64]record{}
	for _, r := range records {
		newest[r.id] = r
	}
	var found []string
	rows := s.fake.Rows(resource)
	for id, row := range rows {
		if s.sees != nil {
			row = s.sees(resource, row)
		}
		r, there := newest[id]
		switch {
		case !there:
			found = append(found, fmt.Sprintf("%s %d is missing", resource, id))
		case r.tombstone:
			found = append(found, fmt.Sprintf("%s %d has a tombstone", resource, id))
		default:
			for field, want := range row {
				if got := r.value[field]; !s.equal(resource, got, want) {
					found = append(found, fmt.Sprintf("%s %d: %s is %v, the service has %v", resource, id, field, got, want))
				}
			}
			if len(r.value) != len(row) {
				found = append(found, fmt.Sprintf("%s %d: %d fields, the service has %d", resource, id, len(r.value),
					len(row)))
			}
		}
	}
	for id, r := range newest {
		if _, there := rows[id]; !there && !r.tombstone {
			found = append(found, fmt.Sprintf("%s %d is not in the service", resource, id))
		}
	}
	return found
}

// equal says whether a decoded Avro value is the service's.
func (s *stack) equal(resource string, got, want any) bool {
	switch want := want.(type) {
	case nil:
		return got == nil
	case int64:
		return got == want
	case string:
		return got == want
	case float64:
		return got == want
	case storefake.Money:
		exact, ok := new(big.Rat).SetString(string(want))
		d, isDecimal := got.(*big.Rat)
		return ok && isDecimal && d.Cmp(exact) == 0
	case time.Time:
		at, isTime := got.(time.Time)
		return isTime && at.Equal(s.floor(resource, want))
	}
	return false
}

// converge waits until every topic equals the service, and returns the records of each.
func (s *stack) converge() map[string][]record {
	s.t.Helper()
	all := map[string][]record{}
	for _, resource := range storefake.Names() {
		eventually(s.t, "the topic of "+resource+" equals the service", func() (bool, string) {
			all[resource] = s.topic(resource)
			found := s.differences(resource, all[resource])
			return len(found) == 0, summary(found)
		})
	}
	return all
}

func summary(found []string) string {
	if len(found) > 5 {
		return fmt.Sprintf("%d differences: %s; ...", len(found), strings.Join(found[:5], "; "))
	}
	return strings.Join(found, "; ")
}

// inOrder fails the test where a key steps back, or a version of a row is there twice.
func inOrder(t *testing.T, resource string, records []record) {
	t.Helper()
	inOrderBut(t, resource, records, nil)
}

// inOrderBut is inOrder, but each of the replays may have sent the versions that it covers once more.
func inOrderBut(t *testing.T, resource string, records []record, replays []asked.Course) {
	t.Helper()
	type version struct {
		id        int64
		updatedAt time.Time
	}
	last := map[int64]record{}
	versions := map[version][]record{}
	for _, r := range records {
		if before, there := last[r.id]; there {
			if r.partition != before.partition {
				t.Errorf("%s %d is in partitions %d and %d", resource, r.id, before.partition, r.partition)
			}
			if !r.tombstone && !before.tombstone && r.updatedAt.Before(before.updatedAt) {
				t.Errorf("%s %d steps back from %s (offset %d) to %s (offset %d)", resource, r.id, before.updatedAt,
					before.offset, r.updatedAt, r.offset)
			}
		}
		last[r.id] = r
		if r.tombstone {
			continue
		}
		v := version{r.id, r.updatedAt.UTC()}
		for _, before := range slices.Backward(versions[v]) {
			if fmt.Sprint(before.value) != fmt.Sprint(r.value) {
				continue
			}
			if !asked.Covered(replays, r.version(), before.offset) {
				t.Errorf("%s %d: the version of %s is there twice, at offsets %d and %d of partition %d", resource,
					r.id, r.updatedAt, before.offset, r.offset, r.partition)
			}
			break // the copies before it were looked at
		}
		versions[v] = append(versions[v], r)
		if at := r.timestamp; !at.Equal(r.updatedAt.Truncate(time.Millisecond)) && at.After(r.updatedAt) {
			t.Errorf("%s %d: the record's time is %s, after its updated_at %s", resource, r.id, at, r.updatedAt)
		}
	}
}

// asked fails the test where the watermarks of a resource contradict the requests for it, or a replay of a
// part has left rows out that it does not speak of. It returns all replays. What a reset has to send is not
// looked at: a copy of the service that lags need not show it the rows of the last moment.
func (s *stack) asked(resource string, records []record) []asked.Course {
	s.t.Helper()
	var marks []asked.Mark
	for _, m := range s.marks(resource) {
		marks = append(marks, m.Mark)
	}
	for _, text := range asked.Wrong(s.requests(resource), marks) {
		s.t.Errorf("%s: %s", resource, text)
	}
	newest := map[int64]record{}
	for _, r := range records {
		newest[r.id] = r
	}
	replays := asked.Courses(marks)
	for _, c := range replays {
		s.t.Logf("%s: replay %d of %v ended with %+v", resource, c.Request, c.Owners, c.Result)
		if c.To.IsZero() {
			continue // a reset has begun it
		}
		left := c.Omitted(func(yield func(asked.Version) bool) {
			for _, r := range newest {
				if !r.tombstone && !yield(r.version()) {
					return
				}
			}
		})
		if len(left) > 0 {
			s.t.Errorf("%s: replay %d has not sent %d rows, and says %+v: %+v", resource, c.Request, len(left),
				c.Result, left[:min(len(left), 5)])
		}
	}
	return replays
}

// shop makes n of traffic's changes, one after the other.
func (s *stack) shop(n int) {
	s.t.Helper()
	for range n {
		if err := s.fake.Step(context.Background()); err != nil {
			s.t.Fatal(err)
		}
	}
}
