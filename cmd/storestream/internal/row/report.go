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
	// Resource, ID, Source and Topic say which row it is.
	Resource string `json:"resource"`
	ID       int64  `json:"id"`
	Source   string `json:"source"`
	Topic    string `json:"topic"`
	// Verdict is `identical`, `different` or `unknown`. A row that cannot be published is different.
	Verdict verify.Verdict `json:"verdict"`
	// Error is why the verdict is unknown.
	Error string `json:"error,omitempty"`
	// InTopic is the newest record that every consumer can see.
	InTopic InTopic `json:"in_topic"`
	// InService is the service's current row.
	InService InService `json:"in_service"`
	// Differs lists fields that differ. Both sides have a row then. The order is the schema's.
	Differs []string `json:"differs"`
	// DeadLetter is the dead letter of the row, or null.
	DeadLetter *DeadLetter `json:"dead_letter"`
	// Notes lists explanations and advice. They say why they differ, what may be under way, and what to do; a
	// sentence or two each.
	Notes []string `json:"notes"`

	// Fields are those of the schema, where either side has a row.
	Fields []Field `json:"-"`
}

// Place is the place of a record in its topic.
type Place struct {
	// Partition, Offset and Time are the place and time of the record.
	Partition int32     `json:"partition"`
	Offset    int64     `json:"offset"`
	Time      time.Time `json:"time"`
}

func placeOf(p watermark.Published) Place { return Place{p.Partition, p.Offset, p.Time.Time()} }

// InTopic is the topic's state of a row.
type InTopic struct {
	// State is `row`, `tombstone`, `none`, or `unreadable` (another program wrote it).
	State  State `json:"state"`
	*Place       // of the newest record, or nil
	// Value is the row as `tail` prints it, or null.
	Value json.RawMessage `json:"value"`
	// Error is why the record is unreadable.
	Error string `json:"error,omitempty"`
	// Strays lists records of the row in wrong partitions. Another program wrote them.
	Strays []Place `json:"strays"`
}

// InService is the service's state of a row.
type InService struct {
	// State is `row`, `none`, `unpublishable`, or `unknown` (the service could not be asked).
	State State `json:"state"`
	// Asked is when the service was asked.
	Asked time.Time `json:"asked"`
	// Value is the row as it would be published, or null.
	Value json.RawMessage `json:"value"`
	// Field and Error are the broken field and its expected form. Field is "" for the row as a whole.
	Field string `json:"field,omitempty"`
	Error string `json:"error,omitempty"`
}

// DeadLetter is the dead letter of a row.
type DeadLetter struct {
	Place
	// Field and Error are the broken field and its expected form. Field is "" for the row as a whole.
	Field string `json:"field,omitempty"`
	Error string `json:"error"`
	// Row is the row in the letter, or null with --mask. It is nil, too, if the letter holds no JSON.
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
