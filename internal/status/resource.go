package status

import "time"

// State sums up a resource in a word.
type State string

// The states of a resource.
const (
	Following       State = "following"        // passes complete, nothing is wrong
	Behind          State = "behind"           // no answer, or no pass met every change for BehindAfter
	SettlingDelayed State = "settling_delayed" // passes complete, but settled stands still: Resource.Delayed
	FirstLoad       State = "first_load"       // no instance has completed a pass yet
	CatchingUp      State = "catching_up"      // this instance has not completed a pass since it took over
	Replaying       State = "replaying"        // it publishes again from a time on
	TakingOver      State = "taking_over"      // the takeover is not over, nothing polls yet
	Failing         State = "failing"          // Resource.Error, since FailedSince
	Elsewhere       State = "elsewhere"        // another instance has it: Resource.Owner
	Stalled         State = "stalled"          // it does, and does not write the watermark
	Nobody          State = "nobody"           // no instance of the group has it
	Unknown         State = "unknown"          // not ours, and the group has not said yet whose
)

// Resource is the state of one resource.
type Resource struct {
	Name   string `json:"name"`
	Source string `json:"source"` // postgres or rest
	// IntervalSeconds is the time from the start of one poll to that of the next, if the first does not take
	// longer.
	IntervalSeconds float64 `json:"interval_seconds"`
	State           State   `json:"state"` // set by the Board
	// Owned is set if this instance polls it. Otherwise the rest comes from the topics.
	Owned bool `json:"owned"`
	// Owner is the instance that has it, or "" if unknown.
	Owner string `json:"owner,omitzero"`
	// Abandoned is set if no instance has it, according to the consumer group.
	Abandoned bool `json:"abandoned,omitzero"`
	// Stalled is set if an instance has it, this one or another, according to the consumer group, and its
	// watermark is not written.
	Stalled bool `json:"stalled,omitzero"`
	// Doing is its current activity, for people: "polling", "closing 2026-11-20", "waiting for the rate limit".
	Doing string    `json:"doing,omitzero"`
	Since time.Time `json:"since,omitzero"` // of Doing
	// Unanswered is set if the current poll has waited some seconds for its source to begin an answer.
	Unanswered bool `json:"unanswered,omitzero"`
	// Passes counts the complete passes since this instance took it over.
	Passes int `json:"passes"`
	// Settled, AsOf and Rows are the watermark's. No row with an updated_at before Settled can still appear.
	// AsOf is the start of the last complete pass. Rows counts all published rows. Written is when another
	// instance wrote the watermark.
	Settled time.Time `json:"settled,omitzero"`
	AsOf    time.Time `json:"as_of,omitzero"`
	Rows    int64     `json:"rows"`
	Written time.Time `json:"written,omitzero"`
	// Good is the start of the last pass that met every change before it. LagSeconds is Now minus Good, set by
	// the Board. It is absent if no such pass is known, and if another instance has the resource and is not
	// stalled, because that one knows better.
	Good       time.Time `json:"-"`
	LagSeconds *float64  `json:"lag_seconds,omitempty"`
	// Published counts the rows that this instance has published since it started. RowsPerSecond is their rate
	// over the last ten seconds, set by the Board.
	Published     int64   `json:"published"`
	RowsPerSecond float64 `json:"rows_per_second"`
	// Progress of a first load or a replay.
	Progress *Progress `json:"progress,omitempty"`
	// Error is the current failure, or why it is blocked, and FailedSince is when that began. Delayed is
	// why settled stands still although polls succeed, and DelayedSince is when that began, if
	// known. If another instance has the resource, they come from its last watermark.
	Error        string    `json:"error,omitzero"`
	FailedSince  time.Time `json:"failed_since,omitzero"`
	Delayed      string    `json:"settling_delayed,omitzero"`
	DelayedSince time.Time `json:"settling_delayed_since,omitzero"`
	Replaying    bool      `json:"replaying,omitzero"`
	// DeadLetters counts the rows that cannot be published. Letters are these rows by reason. They are read from
	// the topic every few seconds, so they may be that much behind.
	DeadLetters int      `json:"dead_letters"`
	Letters     []Letter `json:"letters,omitempty"`
	// UnknownFields are fields of the service that the schema does not know. They are not published.
	UnknownFields []string `json:"unknown_fields,omitempty"`
	// OtherPolicies is set if the topic may hold rows that were published under other policies for fields
	// (privacy.fields).
	OtherPolicies bool `json:"other_policies,omitzero"`
	// Requests counts requests to the service since this instance started. It is nil unless the source is REST.
	Requests *Requests `json:"requests,omitempty"`
	// Sweep is the last one that finished, SweepInHand one that waits or runs. Polls go on beside it.
	Sweep       *Sweep       `json:"sweep,omitempty"`
	SweepInHand *SweepInHand `json:"sweep_in_hand,omitempty"`
	DedupBytes  int          `json:"dedup_bytes"` // memory of dedup
	// Detail shows these. Polls are the last ones of this instance, the newest last. LatestLetters are dead
	// letters one by one, the newest first. Settling is nil if unknown.
	Polls         []Poll       `json:"-"`
	LatestLetters []DeadLetter `json:"-"`
	Settling      *Settling    `json:"-"`
}

// state returns the worst State that the provider's facts and the lag lead to.
func (r *Resource) state() State {
	switch {
	case !r.Owned && r.Owner != "" && r.Stalled:
		return Stalled
	case !r.Owned && r.Owner != "":
		return Elsewhere
	case !r.Owned && r.Abandoned:
		return Nobody
	case !r.Owned:
		return Unknown
	case r.Error != "":
		return Failing
	case r.Settled.IsZero() && r.AsOf.IsZero() && r.Passes == 0 && r.Progress == nil:
		return TakingOver
	case r.Replaying:
		return Replaying
	case r.AsOf.IsZero():
		return FirstLoad
	case r.Passes == 0:
		return CatchingUp
	case r.Unanswered:
		return Behind
	case r.LagSeconds != nil && *r.LagSeconds > BehindAfter(r.IntervalSeconds).Seconds():
		return Behind
	case r.Delayed != "":
		return SettlingDelayed
	}
	return Following
}

// BehindAfter is the lag from which a resource that is polled every so many seconds is behind: three polls,
// and the ten seconds for which an idle owner writes no watermark.
func BehindAfter(interval float64) time.Duration {
	return 10*time.Second + time.Duration(3*interval*float64(time.Second))
}

// Letter is the dead letters of a resource that have the same reason.
type Letter struct {
	Field string `json:"field,omitzero"` // "" for the row as a whole
	Error string `json:"error"`          // never holds a value
	Rows  int    `json:"rows"`
	// IDs are a few of the rows, the newest first: an id, or 16 hash digits for a row without a usable one.
	IDs    []string  `json:"ids"`
	Latest time.Time `json:"latest"`
}

// Requests to the service for one resource.
type Requests struct {
	PerSecond float64 `json:"per_second"` // over the last ten seconds; set by the Board
	Total     int64   `json:"total"`
	// Codes counts them by status code; "0" is no answer.
	Codes map[string]int64 `json:"codes"`
}

// Sweep is the result of a finished sweep.
type Sweep struct {
	Began       time.Time `json:"began"`
	Ended       time.Time `json:"ended,omitzero"`
	SourceRows  int       `json:"source_rows"`
	TopicRows   int       `json:"topic_rows"`
	DeadLetters int       `json:"dead_letters"`
	// What differed: the topic lacked a row, had another version, had a row that the source lacks.
	Missing int `json:"missing"`
	Stale   int `json:"stale"`
	Extra   int `json:"extra"`
	// Published and Tombstones count the repairs. Left is why some differences were left as they are, or "".
	Published  int    `json:"published"`
	Tombstones int    `json:"tombstones"`
	Left       string `json:"left,omitzero"`
}

// SweepInHand is a sweep that is not finished yet.
type SweepInHand struct {
	Asked time.Time `json:"asked,omitzero"` // when it was accepted, if somebody asked for it
	Doing string    `json:"doing,omitzero"` // "" while it waits
	Since time.Time `json:"since,omitzero"` // of Doing
	// Rows is how many rows of the source it has read, of about Of.
	Rows int `json:"rows"`
	Of   int `json:"of"`
	// Error is the error of the last try. Next is when it tries again.
	Error string    `json:"error,omitzero"`
	Next  time.Time `json:"next,omitzero"`
}
