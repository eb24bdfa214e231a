//go:build consumers

package consumers

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/big"
	"strings"
	"time"

	"github.com/storestream/storestream/internal/standins/storefake"
)

// tables are the rows that an example holds, by resource and id. Values are JSON's, numbers with all their
// digits; money may be text, and times are text.
type tables map[string]map[int64]map[string]any

// add adds a row that was written as a JSON object. A table that holds an id twice is wrong.
func (ts tables) add(resource string, text []byte) error {
	row := map[string]any{}
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	if err := d.Decode(&row); err != nil {
		return fmt.Errorf("%s: %s: %w", resource, text, err)
	}
	number, _ := row["id"].(json.Number)
	id, err := number.Int64()
	if err != nil {
		return fmt.Errorf("%s: %s: id: %w", resource, text, err)
	}
	if ts[resource] == nil {
		ts[resource] = map[int64]map[string]any{}
	}
	if ts[resource][id] != nil {
		return fmt.Errorf("%s %d is there twice", resource, id)
	}
	ts[resource][id] = row
	return nil
}

// differences compares an example's tables with the service, field by field. nil: equal.
func (s *stack) differences(got tables) []string {
	var found []string
	for _, resource := range storefake.Names() {
		want := s.fake.Rows(resource)
		for id, row := range want {
			if got[resource][id] == nil {
				found = append(found, fmt.Sprintf("%s %d is missing", resource, id))
				continue
			}
			found = append(found, rowDifferences(resource, id, got[resource][id], row)...)
		}
		for id := range got[resource] {
			if want[id] == nil {
				found = append(found, fmt.Sprintf("%s %d is not in the service", resource, id))
			}
		}
	}
	return found
}

func rowDifferences(resource string, id int64, got map[string]any, want storefake.Row) []string {
	var found []string
	for field, value := range want {
		shown, there := got[field]
		if !there || !equal(resource, shown, value) {
			found = append(found, fmt.Sprintf("%s %d: %s is %v, the service has %v", resource, id, field,
				shown, value))
		}
	}
	for field, shown := range got {
		if _, there := want[field]; !there && (field != laterField || shown != nil) {
			found = append(found, fmt.Sprintf("%s %d: %s is %v, which the service does not have", resource, id,
				field, shown))
		}
	}
	return found
}

// equal says whether a value that an example holds is the service's.
func equal(resource string, got, want any) bool {
	switch want := want.(type) {
	case nil:
		return got == nil
	case string:
		return got == want
	case int64:
		return got == json.Number(fmt.Sprint(want))
	case float64:
		number, _ := got.(json.Number)
		f, err := number.Float64()
		return err == nil && f == want
	case storefake.Money:
		exact, ok := new(big.Rat).SetString(string(want))
		shown, isNumber := new(big.Rat).SetString(fmt.Sprint(got))
		return ok && isNumber && exact.Cmp(shown) == 0
	case time.Time:
		text, _ := got.(string)
		at, err := instant(text)
		return err == nil && at.Equal(floor(resource, want))
	}
	return false
}

// instant reads a time with or without its zone, which is then UTC.
func instant(text string) (time.Time, error) {
	at, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		at, err = time.Parse("2006-01-02T15:04:05.999999999", text)
	}
	return at, err
}

// floor is how a topic shows an instant of the service: PostgreSQL's to the millisecond, REST's to the
// second.
func floor(resource string, at time.Time) time.Time {
	if resource == storefake.Orders || resource == storefake.OrderItems {
		return at.Truncate(time.Millisecond)
	}
	return at.Truncate(time.Second)
}

// summary is the first few of what was found.
func summary(found []string) string {
	if len(found) > 5 {
		return fmt.Sprintf("%d differences: %s; ...", len(found), strings.Join(found[:5], "; "))
	}
	return strings.Join(found, "; ")
}
