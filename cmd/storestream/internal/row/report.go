package row

import (
	"bytes"
	"encoding/json"
	"time"

	"github.com/storestream/storestream/cmd/storestream/internal/verify"
	"github.com/storestream/storestream/internal/watermark"
	"github.com/storestream/storestream/schemas"
)

// State is what one side has of a row.
type State string

// The states.
const (
	Present       State = "row"
	Absent        State = "none"
	Tombstone     State = "tombstone"     // in the topic: the row is deleted
	Unreadable    State = "unreadable"    // in the topic: a record of another program
	Unpublishable State = "unpublishable" // in the service: a row that breaks the contract
	Unknown       State = "unknown"       // the service could not be asked
)

// Report is what `row -o json` prints.
type Report struct {
	Resource string         `json:"resource"`
	ID       int64          `json:"id"`
	Source   string         `json:"source"`
	Topic    string         `json:"topic"`
	Verdict  verify.Verdict `json:"verdict"`
	Error    string         `json:"error,omitempty"` // why it is unknown
	// InTopic is the newest record that every consumer can see. InService is the service's current row.
	InTopic   InTopic   `json:"in_topic"`
	InService InService `json:"in_service"`
	// Differs are the fields that differ, in the order of the schema, where both have a row.
	Differs    []string    `json:"differs"`
	DeadLetter *DeadLetter `json:"dead_letter"` // nil: it has none
	// Notes say why they differ, what may be under way, and what to do; a sentence or two each.
	Notes []string `json:"notes"`

	// Fields are those of the schema, where either side has a row.
	Fields []Field `json:"-"`
}

// Place is the place of a record in its topic.
type Place struct {
	Partition int32     `json:"partition"`
	Offset    int64     `json:"offset"`
	Time      time.Time `json:"time"`
}

func placeOf(p watermark.Published) Place { return Place{p.Partition, p.Offset, p.Time.Time()} }

// InTopic is the topic's state of a row.
type InTopic struct {
	State  State           `json:"state"`
	*Place                 // of the newest record, or nil
	Value  json.RawMessage `json:"value"`           // the row, or nil
	Error  string          `json:"error,omitempty"` // why it is unreadable
	// Strays are records of the row in partitions where its key does not belong. Another program wrote them.
	Strays []Place `json:"strays"`
}

// InService is the service's state of a row.
type InService struct {
	State State           `json:"state"`
	Asked time.Time       `json:"asked"` // when that was
	Value json.RawMessage `json:"value"` // the row as it would be published, nil if there is none
	// Why it cannot be published: the first field that breaks the contract, "" for the row as a whole, and what
	// was expected.
	Field string `json:"field,omitempty"`
	Error string `json:"error,omitempty"`
}

// DeadLetter is the dead letter of a row.
type DeadLetter struct {
	Place
	Field string `json:"field,omitempty"`
	Error string `json:"error"`
	// Row is the letter's row. It is nil if personal fields are masked here, or if it is no JSON.
	Row json.RawMessage `json:"row"`
}

// NewDeadLetter returns letter for people. Its texts went through hide. With mask its row is left out.
func NewDeadLetter(letter *watermark.DeadLetter, hide func(string) string, mask bool) *DeadLetter {
	d := &DeadLetter{Place: Place{letter.Partition, letter.Offset, letter.Time.UTC()}, Field: letter.Field,
		Error: hide(letter.Err)}
	if !mask && json.Valid(letter.Row) {
		d.Row = letter.Row
	}
	return d
}

// Field is one field of the row on both sides, in JSON. A side without the row is nil.
type Field struct {
	Name           string
	Topic, Service []byte
	Differs        bool
}

// setFields compares field by field. nil: that side has no row.
func (r *Report) setFields(topic, service *schemas.Value, mask bool) {
	var inTopic [][]byte // nothing masked
	if topic != nil {
		for f, text := range topic.Fields() {
			inTopic = append(inTopic, bytes.Clone(text))
			r.Fields = append(r.Fields, Field{Name: f.Name, Topic: bytes.Clone(f.Shown(text, mask))})
		}
	}
	if service == nil {
		return
	}
	i := 0
	for f, text := range service.Fields() {
		if topic == nil {
			r.Fields = append(r.Fields, Field{Name: f.Name})
		}
		r.Fields[i].Service = bytes.Clone(f.Shown(text, mask))
		if topic != nil && !bytes.Equal(inTopic[i], text) {
			r.Fields[i].Differs, r.Differs = true, append(r.Differs, f.Name)
		}
		i++
	}
}
