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
	Unreadable    State = "unreadable"    // in the topic: a record that is none of storestream's
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
	// Settled and AsOf are the watermark's, or nil. Trouble is why the resource is blocked or fails, or settled
	// stands still.
	Settled *schemas.Instant   `json:"settled"`
	AsOf    *schemas.Instant   `json:"as_of"`
	Trouble *watermark.Trouble `json:"trouble"`
	// Notes say why they differ, what may be under way, and what to do; a sentence or two each.
	Notes []string `json:"notes"`

	// Fields are those of the schema, where either side has a row.
	Fields []Field `json:"-"`
}

// InTopic is the topic's state of a row.
type InTopic struct {
	State State `json:"state"`
	// Partition, offset and time of the newest record. They are nil if there is none.
	Partition *int32     `json:"partition"`
	Offset    *int64     `json:"offset"`
	Time      *time.Time `json:"time"`
	// Value is the row, or nil.
	Value json.RawMessage `json:"value"`
	Error string          `json:"error,omitempty"` // why it is unreadable
	// Records is how many records of the row the log holds: this one, strays, and older ones that compaction
	// has not taken out yet.
	Records int `json:"records"`
	// Strays are records of the row in partitions where its key does not belong.
	Strays []Stray `json:"strays"`
}

// Stray is a record that another program wrote into a partition where its key does not belong.
type Stray struct {
	Partition int32     `json:"partition"`
	Offset    int64     `json:"offset"`
	Time      time.Time `json:"time"`
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
	Partition int32     `json:"partition"`
	Offset    int64     `json:"offset"`
	Time      time.Time `json:"time"`
	Field     string    `json:"field,omitempty"`
	Error     string    `json:"error"`
	// Row is the letter's row. It is nil if personal fields are masked here, or if it is no JSON.
	Row json.RawMessage `json:"row"`
}

// Field is one field of the row on both sides, in JSON. A side without the row is nil.
type Field struct {
	Name           string
	Topic, Service []byte
	Differs        bool
}

// setFields compares field by field. nil: that side has no row.
func (r *Report) setFields(fields []schemas.Field, topic, service *schemas.Value, mask bool) {
	if topic == nil && service == nil {
		return
	}
	inTopic, inService := texts(topic), texts(service)
	for i := range fields {
		f := Field{Name: fields[i].Name}
		if topic != nil {
			f.Topic = fields[i].Shown(inTopic[i], mask)
		}
		if service != nil {
			f.Service = fields[i].Shown(inService[i], mask)
		}
		if topic != nil && service != nil && !bytes.Equal(inTopic[i], inService[i]) {
			f.Differs = true
			r.Differs = append(r.Differs, f.Name)
		}
		r.Fields = append(r.Fields, f)
	}
}

// hide masks secrets in the text of others. The row itself stays as it is, even if a value reads like a
// secret.
func (r *Report) hide(hide func(string) string) {
	texts := []*string{&r.Error, &r.InTopic.Error, &r.InService.Error}
	if r.DeadLetter != nil {
		texts = append(texts, &r.DeadLetter.Error)
	}
	if r.Trouble != nil {
		trouble := *r.Trouble
		r.Trouble, texts = &trouble, append(texts, &trouble.Why)
	}
	for i := range r.Notes {
		texts = append(texts, &r.Notes[i])
	}
	for _, text := range texts {
		*text = hide(*text)
	}
}

// texts is v field by field, in JSON.
func texts(v *schemas.Value) (all [][]byte) {
	if v != nil {
		for _, text := range v.Fields() {
			all = append(all, bytes.Clone(text))
		}
	}
	return all
}
