package status

import (
	"strings"
	"time"
)

// Snapshot is what is known of this instance at one moment. Its JSON form is /status.json, which is all that the page shows. Members are added to
// it over time and keep their meaning. What is not known, or not so, is left out. Times are RFC 3339 in UTC, durations are seconds.
//
// It holds no values of rows but those in Latest, where personal fields read "***", and no secrets.
type Snapshot struct {
	Instance string    `json:"instance"`
	Group    string    `json:"group,omitzero"`
	Version  string    `json:"version"`
	Started  time.Time `json:"started"`
	Now      time.Time `json:"now"` // set by the Board, by this instance's clock
	// DeadLettersTopic is where the rows are that cannot be published.
	DeadLettersTopic string `json:"dead_letters_topic,omitzero"`
	// Waiting says what the whole instance waits for ("broker 127.0.0.1:9092: connection refused"); empty once it is a member of its group.
	Waiting string `json:"waiting,omitzero"`
	// Notices are what somebody should know of the instance or its group, a sentence each.
	Notices []string `json:"notices,omitempty"`
	// Service is the way to the REST service; nil where nothing goes over it.
	Service *Service `json:"service,omitempty"`
	// Members are the instances of the group, as the group last said; none before it was asked.
	Members   []Member   `json:"members,omitempty"`
	Resources []Resource `json:"resources"` // the enabled ones
	// History and Latest are set by Board.Document.
	History *History `json:"history,omitempty"`
	Latest  []Upsert `json:"latest,omitempty"` // the newest first
}

// Service is the way to the REST service, for all resources of this instance together.
type Service struct {
	RequestsPerSecond float64 `json:"requests_per_second"` // over the last ten seconds; set by the Board
	// Allowed is the rate that the client keeps to now: lower than Ceiling after the service has refused requests for their rate.
	Allowed float64 `json:"allowed_per_second"`
	Ceiling float64 `json:"ceiling_per_second"` // store.max_requests_per_second
	// RefusedSince is since when the service has been refusing.
	RefusedSince time.Time `json:"refused_since,omitzero"`
	// ClockSkewSeconds is the service's clock minus ours, to about a second; absent where the service does not tell its clock.
	ClockSkewSeconds *float64 `json:"clock_skew_seconds,omitempty"`
}

// Member is an instance of the group.
type Member struct {
	Instance string   `json:"instance"`
	Enabled  []string `json:"enabled"` // resources
	Owned    []string `json:"owned"`
}

// State sums up a resource in a word.
type State string

// The states of a resource.
const (
	Following  State = "following"   // passes come to their end, nothing is wrong
	Behind     State = "behind"      // likewise, but the last pass that met every change began long ago (see behindAfter), or the source does not answer
	Held       State = "held"        // likewise, but something keeps it from settling: Resource.Held
	FirstLoad  State = "first_load"  // no pass has been completed yet, by whichever instance
	CatchingUp State = "catching_up" // this instance took it over and has not completed a pass since
	Replaying  State = "replaying"   // a reset is being worked off
	TakingOver State = "taking_over" // nothing is polled yet
	Failing    State = "failing"     // Resource.Error, since FailedSince
	Elsewhere  State = "elsewhere"   // another instance has it: Resource.Owner
	Nobody     State = "nobody"      // no instance of the group has it
	Unknown    State = "unknown"     // not ours, and the group has not been asked yet
)

// Resource is what is known of one resource.
type Resource struct {
	Name   string `json:"name"`
	Source string `json:"source"` // postgres or rest
	// IntervalSeconds is the time from the start of one poll to that of the next, if the first does not take longer.
	IntervalSeconds float64 `json:"interval_seconds"`
	State           State   `json:"state"` // set by the Board
	// Owned: this instance polls it. Otherwise the rest is what the topics last said.
	Owned bool `json:"owned"`
	// Owner is the instance that has it, "" where none is known.
	Owner string `json:"owner,omitzero"`
	// Abandoned: the group was asked, and no instance has it.
	Abandoned bool `json:"abandoned,omitzero"`
	// Doing is what it does now, for people: "polling", "closing 2026-11-20", "waiting for the rate limit".
	Doing string    `json:"doing,omitzero"`
	Since time.Time `json:"since,omitzero"` // of Doing
	// Unanswered: the poll in hand has waited for some seconds for its source to begin an answer.
	Unanswered bool `json:"unanswered,omitzero"`
	// Passes counts the complete passes since this instance took it over.
	Passes int `json:"passes"`
	// Settled, AsOf and Rows are the watermark's: everything with an earlier updated_at is published; the start of the last complete pass; rows
	// published in all. Written is when it was written, where another instance did.
	Settled time.Time `json:"settled,omitzero"`
	AsOf    time.Time `json:"as_of,omitzero"`
	Rows    int64     `json:"rows"`
	Written time.Time `json:"written,omitzero"`
	// Good is the start of the last pass that met every change before it, and LagSeconds is Now minus it (set by the Board; absent
	// where no such pass is known, and where another instance has the resource and knows better).
	Good       time.Time `json:"-"`
	LagSeconds *float64  `json:"lag_seconds,omitempty"`
	// Published counts the rows that this instance has published since it started; RowsPerSecond is of them, over the last ten seconds (set by the
	// Board).
	Published     int64   `json:"published"`
	RowsPerSecond float64 `json:"rows_per_second"`
	// Progress of a first load or a replay.
	Progress *Progress `json:"progress,omitempty"`
	// Error is the failure that it is in, FailedSince when that began; Held says why it settles no further although polls succeed.
	Error       string    `json:"error,omitzero"`
	FailedSince time.Time `json:"failed_since,omitzero"`
	Held        string    `json:"held,omitzero"`
	Replaying   bool      `json:"replaying,omitzero"`
	// DeadLetters counts the rows that cannot be published, Letters are they by reason. Letters are read from the topic every few seconds and may
	// be that much behind.
	DeadLetters int      `json:"dead_letters"`
	Letters     []Letter `json:"letters,omitempty"`
	// UnknownFields are those of the service that the schema does not know; they are left out of what is published.
	UnknownFields []string `json:"unknown_fields,omitempty"`
	// Requests to the service since this instance started; nil for a resource that does not go over REST.
	Requests *Requests `json:"requests,omitempty"`
	// Sweep is the last one that was finished, SweepInHand one that was asked for or is in hand; polls go on beside it.
	Sweep       *Sweep       `json:"sweep,omitempty"`
	SweepInHand *SweepInHand `json:"sweep_in_hand,omitempty"`
	SeenBytes   int          `json:"seen_bytes"`
}

// Progress says how far a first load or a replay has come, by time: rows are read in the order of their updated_at, and how many of them lie in a
// day nobody knows beforehand. So Fraction is a part of the time span and not of the rows.
type Progress struct {
	From time.Time `json:"from,omitzero"` // where it began; absent where this instance does not know
	At   time.Time `json:"at,omitzero"`   // up to where it has come; its end is now
	// Fraction is (At - From) / (Now - From); absent without From. SecondsLeft is how long the rest takes at the pace of the last half minute; absent
	// where there is no pace. Both are set by the Board.
	Fraction    *float64 `json:"fraction,omitempty"`
	SecondsLeft *float64 `json:"seconds_left,omitempty"`
}

// Letter is the dead letters of a resource that have the same reason.
type Letter struct {
	Field string `json:"field,omitzero"` // "" for the row as a whole
	Error string `json:"error"`          // never holds a value
	Rows  int    `json:"rows"`
	// IDs are a few of the rows, the newest letters first: an id, or a hash of 16 digits of a row that has no usable one.
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

// Sweep is what a finished sweep came to.
type Sweep struct {
	Began       time.Time `json:"began"`
	Ended       time.Time `json:"ended,omitzero"`
	SourceRows  int       `json:"source_rows"`
	TopicRows   int       `json:"topic_rows"`
	DeadLetters int       `json:"dead_letters"`
	// What differed: the topic lacked a row, had another version, had a row that the source has not.
	Missing int `json:"missing"`
	Stale   int `json:"stale"`
	Extra   int `json:"extra"`
	// What was done about it, and why some of it was left as it is ("" if nothing was).
	Published  int    `json:"published"`
	Tombstones int    `json:"tombstones"`
	Left       string `json:"left,omitzero"`
}

// SweepInHand is a sweep that is not finished yet.
type SweepInHand struct {
	Asked time.Time `json:"asked,omitzero"` // when it was accepted, where somebody asked for it
	Doing string    `json:"doing,omitzero"` // "" while it waits
	Since time.Time `json:"since,omitzero"` // of Doing
	// Rows of the source have been read so far, of about Of.
	Rows int `json:"rows"`
	Of   int `json:"of"`
	// Error is what the last try failed with, Next when it is tried again.
	Error string    `json:"error,omitzero"`
	Next  time.Time `json:"next,omitzero"`
}

// state sums up what the provider said of r, and its lag.
func (r *Resource) state() State {
	switch {
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
	case r.Unanswered || r.LagSeconds != nil && *r.LagSeconds > max(behindAfter.Seconds(), 3*r.IntervalSeconds):
		return Behind
	case r.Held != "":
		return Held
	}
	return Following
}

// behindAfter is the lag from which a resource is not called up to date, or three intervals where those are longer.
const behindAfter = time.Minute

// Ready says whether every resource that this instance owns has completed a pass, and if not, which has not and why.
func (s Snapshot) Ready() (ok bool, why []string) {
	if s.Waiting != "" {
		return false, []string{"waiting: " + s.Waiting}
	}
	for _, r := range s.Resources {
		if !r.Owned || r.Passes > 0 {
			continue
		}
		reason := r.Name + ": no complete pass yet"
		if r.Error != "" {
			reason += ": " + r.Error
		} else if r.Doing != "" {
			reason += ": " + r.Doing
		}
		why = append(why, reason)
	}
	return len(why) == 0, why
}

// FirstLine is the text of err for a Snapshot: one line of at most some 600 bytes. A stack or a list is for the log.
func FirstLine(err error) string {
	const longest = 600
	line, _, more := strings.Cut(err.Error(), "\n")
	if len(line) > longest {
		line, more = strings.ToValidUTF8(line[:longest], ""), true
	}
	if more {
		line += " ... (the log has the rest)"
	}
	return line
}
