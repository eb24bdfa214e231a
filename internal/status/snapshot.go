package status

import (
	"slices"
	"strings"
	"time"

	"github.com/storestream/storestream/internal/health"
)

// Snapshot is the state of this instance at one moment. Its JSON form is /status.json, which has all that the
// page shows. Later versions add members and keep the meaning of the others. Members that are unknown or do
// not apply are left out, or null. Times are RFC 3339 in UTC, durations are seconds.
//
// It holds no secrets, and values of rows only in Latest, where personal fields read "***".
type Snapshot struct {
	// Instance, Group and Version are the answering instance, its consumer group, and its version.
	Instance string `json:"instance"`
	Group    string `json:"group,omitzero"`
	Version  string `json:"version"`
	// Started and Now are the times of the program's start and this answer. The Board sets Now, by this
	// instance's clock.
	Started time.Time `json:"started"`
	Now     time.Time `json:"now"`
	// DeadLettersTopic is the topic of rows that cannot be published.
	DeadLettersTopic string `json:"dead_letters_topic,omitzero"`
	// Waiting is why the whole instance waits. An example is "broker 127.0.0.1:9092: connection refused". It is
	// empty once the instance is a member of its group.
	Waiting string `json:"waiting,omitzero"`
	// Notices lists sentences about the instance or its group. A person should know them.
	Notices []string `json:"notices,omitempty"`
	// Service is the connection to the REST service. It is nil if no resource is read over REST.
	Service *Service `json:"service,omitempty"`
	// Members lists the instances of the group. They are as the group last said.
	Members []health.Member `json:"members,omitempty"`
	// Resources lists the enabled resources.
	Resources []health.Resource `json:"resources"`
	// Latest lists some of the newest records, newest first. Board.Document sets it.
	Latest []Upsert `json:"latest,omitempty"`
}

// Service is the way to the REST service, for all resources of this instance together.
type Service struct {
	// Allowed and Ceiling are the current request rate, and `store.max_requests_per_second`. Allowed is lower
	// after the service has refused requests for their rate.
	Allowed float64 `json:"allowed_per_second"`
	Ceiling float64 `json:"ceiling_per_second"`
	// RefusedSince and RefusedUntil are the bounds of the time in which requests are refused. RefusedUntil is
	// when the longest pause of a resource ends. The service asked for it, or it is our own.
	RefusedSince time.Time `json:"refused_since,omitzero"`
	RefusedUntil time.Time `json:"refused_until,omitzero"`
	// ClockSkewSeconds is the service's clock minus ours. It is exact to about a second, and nil if the service
	// does not send its clock.
	ClockSkewSeconds *float64 `json:"clock_skew_seconds,omitempty"`
	// Dialect lists the questions that the service's document leaves open.
	Dialect []Property `json:"dialect,omitempty"`
}

// Property is a question that the service's document leaves open, and its answer if that is known.
type Property struct {
	// Name and Question are the key below `store.dialect`, and the question.
	Name     string `json:"name"`
	Question string `json:"question"`
	// Value and Set are the answer, and whether the configuration gives it.
	Value string `json:"value,omitzero"`
	Set   bool   `json:"set,omitzero"`
	// Evidence and Since say which answer of the service showed it, and when. It may also have contradicted the
	// answer that was known before.
	Evidence string    `json:"evidence,omitzero"`
	Since    time.Time `json:"since,omitzero"`
}

// Ready reports whether every resource that this instance owns has completed a pass. The lines name the
// resources that have not, those that no instance seems to poll, and a refusal of requests for their rate. An
// instance without resources is a standby, and ready. Defects of other instances do not count: a rollout
// would wait for the instance that it is to replace.
func (s Snapshot) Ready() (ok bool, lines []string) {
	if s.Waiting != "" {
		return false, []string{"waiting: " + s.Waiting}
	}
	ok = true
	for _, r := range s.Resources {
		switch {
		case !r.Ready():
			ok = false
			line := r.Name + ": no complete pass yet"
			if text := r.Text(); text != "" {
				line += ": " + text
			}
			if r.Doing != "" {
				line += " (" + r.Doing + ")"
			}
			lines = append(lines, line)
		case r.State == health.Unowned, r.State == health.Stalled:
			lines = append(lines, r.Name+": "+r.Why)
		}
	}
	if s.Service != nil && !s.Service.RefusedUntil.IsZero() {
		lines = append(lines, "the service refuses requests for their rate: the longest pause ends at "+
			s.Service.RefusedUntil.Format(time.RFC3339))
	}
	return ok, lines
}

// hidden stands for a text of a driver or a client, which may name hosts, users and databases.
const hidden = "hidden here; the log has it"

// public is s for a stranger: without the texts of errors. That something fails, since when, and all figures
// stay.
func (s Snapshot) public() Snapshot {
	hide := func(text *string) {
		if *text != "" {
			*text = hidden
		}
	}
	hide(&s.Waiting)
	s.Resources = slices.Clone(s.Resources)
	for i := range s.Resources {
		r := &s.Resources[i]
		if r.Trouble != nil || r.Unreadable != nil || r.Pause != nil {
			hide(&r.Why)
		}
		if r.Pause != nil {
			pause := *r.Pause
			hide(&pause.Why)
			hide(&pause.By)
			r.Pause = &pause
		}
		if r.Sweeping != nil {
			sweeping := *r.Sweeping
			hide(&sweeping.Error)
			r.Sweeping = &sweeping
		}
		if r.Sweep != nil {
			sweep := *r.Sweep
			hide(&sweep.Failure)
			r.Sweep = &sweep
		}
		r.Parts = slices.Clone(r.Parts)
		for p := range r.Parts {
			hide(&r.Parts[p].Failure)
			r.Parts[p].IDs = nil
		}
		if r.Settling != nil {
			settling := *r.Settling
			settling.Days = slices.Clone(settling.Days)
			for d := range settling.Days {
				hide(&settling.Days[d].Why)
			}
			r.Settling = &settling
		}
		r.Erase = nil    // the ids of rows that a person wants erased
		r.Policies = nil // by a fingerprint, a guess at the key can be tested
	}
	s.Notices = []string{"Only readers on this machine, and readers with http.token, see errors and notices."}
	return s
}

// FirstLine is the text of err for a Snapshot: one line of at most some 600 bytes. A stack or a list is for
// the log.
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
