// Package health answers one question for all readers: is this resource well?
//
//	facts (watermark, group, live poller, settings, time) ──> Judge ──> state, why, since, remedy
//
// The status page, /status.json, /readyz, `watermark list`, --wait and `run --once` render the answer and
// decide nothing. An instance judges the resources that it polls by its live state. It judges all others by
// the watermark in Kafka, as the command line does.
//
// The reasons for which a resource is blocked or incomplete, settling is delayed, or a row is deferred are
// one list: Reasons. Tests write the table of docs/reference.md and parts of docs/operations.md from it.
package health

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/storestream/storestream/internal/terminal"
	"github.com/storestream/storestream/internal/watermark"
	"github.com/storestream/storestream/schemas"
)

// Resource is all that is known of one resource: the record that /status.json and `watermark list` print.
// Pointers are nil if a fact is not known.
type Resource struct {
	// Name is the name of the resource.
	Name string `json:"resource"`
	// Source is `postgres` or `rest`.
	Source string `json:"source"`
	// IntervalSeconds is `resources.*.interval`. It is the time from the start of one poll to that of the
	// next, if the first does not take longer.
	IntervalSeconds float64 `json:"interval_seconds"`

	// Judge sets the members from here to LagSeconds.

	// State is one of the [states](#states).
	State State `json:"state"`
	// UpToDate is set if the topic is up to date.
	UpToDate bool `json:"up_to_date"`
	// Why, Since and Remedy are reason and beginning of the state, and advice. They are zero if unknown, or if
	// there is nothing to say.
	Why    string    `json:"why,omitzero"`
	Since  time.Time `json:"since,omitzero"`
	Remedy string    `json:"remedy,omitzero"`
	// LagSeconds is the age of the last pass that met every change. It is Now minus Good.
	LagSeconds *float64 `json:"lag_seconds"`

	// Owner is the instance that polls it, according to the group. It is "" if there is none, or that is not
	// known.
	Owner string `json:"owner"`
	// Owned is set if that is the answering instance.
	Owned bool `json:"owned,omitzero"`

	// These are members of the watermark (New).

	Settled   *schemas.Instant   `json:"settled"`
	AsOf      *schemas.Instant   `json:"as_of"`
	Rows      int64              `json:"rows"`
	Instance  string             `json:"instance"`
	Group     string             `json:"group"`
	Written   *schemas.Instant   `json:"written"`
	Replay    *watermark.Replay  `json:"replay,omitempty"`
	Results   []watermark.Result `json:"results,omitempty"`
	Parts     []watermark.Part   `json:"parts,omitempty"`
	Pause     *watermark.Pause   `json:"pause,omitempty"`
	Sweep     *watermark.Sweep   `json:"sweep,omitempty"`
	Erase     []watermark.Erase  `json:"erase,omitempty"`
	LastSweep *schemas.Instant   `json:"last_sweep"`
	Swept     *watermark.Swept   `json:"swept,omitempty"`
	Policies  watermark.Policies `json:"privacy,omitempty"`
	// Pending lists requests that no owner has accepted. Only the command line reads them.
	Pending []watermark.Request `json:"pending,omitempty"`
	// DeadLetters lists reasons of dead letters.
	DeadLetters []watermark.DeadLetters `json:"dead_letters"`

	// Only the instance that answers knows the rest.

	// Doing and DoingSince are the current activity and its start. Examples are "polling" and "closing
	// 2026-11-20".
	Doing      string    `json:"doing,omitzero"`
	DoingSince time.Time `json:"doing_since,omitzero"`
	// Passes is the number of complete passes since takeover.
	Passes int `json:"passes,omitzero"`
	// Published is the number of rows published since start.
	Published int64 `json:"published,omitzero"`
	// Requests holds the requests to the service, by status code. They count from the start of the instance. "0"
	// means no answer.
	Requests map[string]int64 `json:"requests,omitempty"`
	// UnknownFields is the number of service fields that the schema lacks. They are not published.
	UnknownFields int `json:"unknown_fields,omitzero"`
	// Sweeping is the activity of the sweep in hand.
	Sweeping *Sweeping `json:"sweeping,omitempty"`
	// Settling is the open range after settled.
	Settling *Settling `json:"settling,omitempty"`
	// DedupBytes is the memory of deduplication.
	DedupBytes int `json:"dedup_bytes,omitzero"`

	// The facts by which Judge decides. Mark is the watermark: a new one if there is none, or if it cannot be
	// read (Unreadable has the reason).
	Mark       watermark.Watermark `json:"-"`
	Unreadable error               `json:"-"`
	// Trouble is the watermark's, or of its own if the instance that answers has the resource.
	Trouble *watermark.Trouble `json:"-"`
	// Good is when the last pass began that counts for the lag: Watermark.FreshAsOf.
	Good *schemas.Instant `json:"-"`
	// LagSince is when the lag began that the instance that answers reports as a metric. Nil: another instance
	// reports it.
	LagSince *schemas.Instant `json:"-"`
	// Enabled is set if this configuration polls it.
	Enabled bool `json:"-"`
	// Polling is set if the instance that answers polls it, and has taken it over.
	Polling bool `json:"-"`
	// Without an Owner, Between is set while the group hands it over, and Abandoned if no instance has it. If
	// neither is set, the group has not said.
	Between   bool `json:"-"`
	Abandoned bool `json:"-"`
	// Silent is how long the owner has left the watermark alone.
	Silent time.Duration `json:"-"`
	// Now is the time of the facts.
	Now schemas.Instant `json:"-"`
}

// Sweeping is the activity of a sweep in hand, or of one that failed and is tried again.
type Sweeping struct {
	// Doing and Since are its activity and the start of it. Doing is "" while the sweep waits.
	Doing string    `json:"doing,omitzero"`
	Since time.Time `json:"since,omitzero"`
	// Rows and Of are the source rows and topic records read so far.
	Rows int `json:"rows"`
	Of   int `json:"of"`
	// Error and Next are error of the last try, and time of the next.
	Error string    `json:"error,omitzero"`
	Next  time.Time `json:"next,omitzero"`
}

// New returns the resource by its watermark. The caller adds the other facts, and calls Judge.
func New(mark watermark.Watermark, now schemas.Instant) Resource {
	good := mark.FreshAsOf
	if good == schemas.MinInstant { // an earlier version wrote it, or no pass is known
		good = mark.AsOf
	}
	return Resource{Name: mark.Resource, Settled: Known(mark.Settled), AsOf: Known(mark.AsOf), Rows: mark.Rows,
		Instance: mark.Instance, Group: mark.Group, Written: Known(mark.Written), Replay: mark.Replay,
		Results: mark.Results, Parts: mark.Parts, Pause: mark.Pause, Sweep: mark.Sweep, Erase: mark.Erase,
		LastSweep: Known(mark.LastSweep),
		Swept:     mark.Swept, Policies: mark.Policies, DeadLetters: []watermark.DeadLetters{},
		Mark: mark, Trouble: mark.Trouble, Good: Known(good), Now: now}
}

// Known returns i, or nil if it is MinInstant.
func Known(i schemas.Instant) *schemas.Instant {
	if i == schemas.MinInstant {
		return nil
	}
	return &i
}

// aheadAtMost is how far another instance's clock may be ahead of this one's before its times say nothing.
const aheadAtMost = time.Minute

// behindAfter is the lag from which a resource is behind: three polls, and the ten seconds for which an idle
// owner writes no watermark.
func (r *Resource) behindAfter() time.Duration { return 10*time.Second + 3*r.interval() }

// StalledAfter is how long the owner of a resource that is polled at this interval may leave its watermark
// alone. A statement that gets no answer is given up after 75 seconds, and tried again within 30.
func StalledAfter(interval time.Duration) time.Duration { return max(2*time.Minute, 3*interval) }

// HandoverPatience is how long a handover may take. A group waits ten seconds for a member that does not
// answer, after six for one that died.
const HandoverPatience = 30 * time.Second

func (r *Resource) interval() time.Duration {
	return time.Duration(r.IntervalSeconds * float64(time.Second))
}

// Lag is the time since the last pass began that met every change before it. It is 0 if no pass is known.
func (r *Resource) Lag() time.Duration {
	if r.Good == nil {
		return 0
	}
	return max(0, r.Now.Sub(*r.Good))
}

// knowsLag reports whether Good is known. A time in the future is not: the writer's clock was ahead, so the
// start of that pass is unknown.
func (r *Resource) knowsLag() bool { return r.Good != nil && r.Good.Sub(r.Now) <= aheadAtMost }

// ReportLag sets LagSince. While no pass is known, the resource is as far behind as tried.
func (r *Resource) ReportLag(tried schemas.Instant) {
	if r.LagSince = &tried; r.knowsLag() {
		r.LagSince = r.Good
	}
}

// Letters is how many rows cannot be published.
func (r *Resource) Letters() (rows int) {
	for _, l := range r.DeadLetters {
		rows += l.Rows
	}
	return rows
}

// TooManyLetters reports whether a resource is not up to date because of its dead letters: more than five
// rows, or more than one in a thousand, cannot be published. others is the number of the other rows.
func TooManyLetters(letters int, others int64) bool {
	return letters > 5 || int64(letters)*1000 > int64(letters)+others
}

// Incomplete says how many rows have dead letters if these are too many, "" if they are not. Rows alone would
// not do: a row counts there each time that it is published.
func (r *Resource) Incomplete() string {
	others := r.Rows
	if r.Swept != nil {
		others = min(others, int64(max(r.Swept.SourceRows, r.Swept.TopicRows)+r.Swept.Early))
	}
	if !TooManyLetters(r.Letters(), others) {
		return ""
	}
	return "the topic lacks " + terminal.Plural(r.Letters(), "row") + " because of dead letters: more than 5, " +
		"or more than one in a thousand"
}

// Ready reports whether the instance that answers has done its part: of a resource that it owns, a pass has
// read all that it can, or it is paused. Settling is delayed in the middle of a pass, too.
func (r *Resource) Ready() bool {
	return !r.Owned || r.Passes > 0 || r.Trouble.SettlingDelayed() && !r.loading() || r.Pause.Lasts(r.Now)
}

// loading reports whether the first load goes on. It is over once a pass has read all that it can, although
// rows are left that cannot be read, which delays settling.
func (r *Resource) loading() bool {
	return r.Good == nil || r.AsOf == nil && !r.Trouble.SettlingDelayed()
}

// Judge decides by the facts how the resource is. The worst state counts. A Trouble is the reason of all
// states that its owner is in, because it says why the first load or the replay does not end, too.
func (r *Resource) Judge() {
	r.LagSeconds = nil
	if r.knowsLag() {
		seconds := r.Lag().Seconds()
		r.LagSeconds = &seconds
	}
	t, late, incomplete := r.Trouble, r.late(), r.Incomplete()
	r.Why, r.Since, r.Remedy = late, time.Time{}, ""
	if t != nil {
		r.Why, r.Since, r.Remedy = t.Why, t.Since.Time(), remedyOf(t)
	}
	switch {
	case r.Unreadable != nil:
		r.isOtherwise(Unreadable, r.Unreadable.Error(), "")
	case !r.Owned && r.Owner == "" && r.Abandoned:
		why := "nothing is published yet, and no instance polls it"
		if r.Written != nil {
			why = "no instance polls it, since " + terminal.Duration(r.Lag())
		}
		r.isOtherwise(Unowned, why+r.lastWords(),
			"start an instance (`storestream run`), or enable the resource in all of them. An instance that runs "+
				"and does not answer at /healthz is frozen: restart it")
	case !r.Owned && r.Owner == "" && !r.Between:
		r.isOtherwise(Unknown, "the group has not said yet which instance has it", "")
	case !r.Owned && r.Silent > StalledAfter(r.interval()):
		r.stalled()
	case r.Pause.Lasts(r.Now):
		r.isOtherwise(Paused, r.Pause.Text(), ReasonOf(Paused, r.Pause.Text()).advice())
		r.Since = r.Pause.Since.Time()
	case t != nil && t.Failing && !t.Publishes:
		r.State = Failing
	case t.Blocked():
		r.State = Blocked
	case incomplete != "" && late == "":
		remedy := ReasonOf(Incomplete, incomplete).advice()
		if t != nil {
			incomplete += ". Settling is delayed: " + t.Why
			remedy += ". For settling: " + cmp.Or(r.Remedy, "see why")
		}
		r.State, r.Why, r.Remedy = Incomplete, incomplete, remedy
	case r.Owned && !r.Polling:
		r.State = Resuming
	case r.loading():
		r.State = FirstLoad
	case r.Replay != nil:
		r.State = Replaying
	case r.Owned && r.Passes == 0 && !t.SettlingDelayed():
		r.State = Resuming
	case late != "":
		if r.State = Behind; r.Remedy == "" {
			r.Remedy = "`storestream check` takes the same steps, and says where they end"
		}
	case t != nil:
		r.State = SettlingDelayed
	default:
		r.State = Following
	}
	r.UpToDate = r.upToDate(late)
	if t.SettlingDelayed() && late != "" && r.Why == t.Why {
		r.Why = late + ": " + t.Why
	}
	r.Remedy = strings.ReplaceAll(r.Remedy, "RESOURCE", r.Name)
}

// upToDate decides by the state. late says why the resource is late, or "".
func (r *Resource) upToDate(late string) bool {
	switch r.State {
	case Following, SettlingDelayed:
		return r.AsOf != nil // else rows of the past are missing
	case Replaying, Resuming:
		return late == "" || !r.Enabled
	}
	return !r.Enabled && r.Unreadable == nil
}

// isOtherwise sets a state that its owner's Trouble does not explain.
func (r *Resource) isOtherwise(state State, why, remedy string) {
	r.State, r.Why, r.Since, r.Remedy = state, why, time.Time{}, remedy
}

// Unattended reports whether maybe no instance of group works on the resource: its passes are late, or
// another group wrote its watermark.
func (r *Resource) Unattended(group string) bool {
	return r.Enabled && r.Unreadable == nil && (!r.UpToDate && r.State != Incomplete &&
		r.State != Paused || r.Group != group)
}

// Refuse notes, after Judge, that no instance can take the resource over, as far as a rehearsal tells. why
// says why, and what to do. The resource is then blocked. If the refusal may pass by itself, it is failing,
// unless its owner says that it is blocked.
func (r *Resource) Refuse(why string, mayPass bool) {
	if r.Why != "" {
		r.Why += "; "
	}
	r.Why += "no instance with this configuration can take it over: " + why
	switch r.UpToDate = false; {
	case !mayPass:
		r.State, r.Remedy = Blocked, ""
	case r.State != Blocked:
		r.State, r.Remedy = Failing, ""
	}
}

// late says why the resource is not up to date although it publishes, "" if it is.
func (r *Resource) late() string {
	switch {
	case r.loading():
		return "the first load is not finished"
	case r.Good.Sub(r.Now) > aheadAtMost:
		return "the last complete pass began " + terminal.Duration(r.Good.Sub(r.Now)) + " from now: this " +
			"machine's clock is behind, or the owner's ahead, and the lag is not known"
	case r.Lag() > r.behindAfter():
		return "the last complete pass began " + terminal.Duration(r.Lag()) + " ago"
	}
	return ""
}

// stalled names the owner that does nothing, and repeats its last words.
func (r *Resource) stalled() {
	reads := "service"
	if r.Source == "postgres" {
		reads = "database"
	}
	wrote := "has written no watermark"
	if r.Written != nil {
		wrote = "has not written its watermark for " + terminal.Duration(r.Silent)
	}
	why := r.Owner + " has it, according to the consumer group, and " + wrote +
		": perhaps it is dead, hangs or fails"
	r.isOtherwise(Stalled, why+r.lastWords(),
		"`storestream check` tries kafka, registry and "+reads+"; its log says the rest")
	r.Since = r.Now.Add(-r.Silent).Time()
}

// lastWords returns a sentence with the trouble that the last owner reported, or "" if it reported none.
func (r *Resource) lastWords() string {
	if r.Trouble == nil {
		return ""
	}
	return ". Its owner said last: " + r.Trouble.Why
}

// Text says how the resource is: for how long, and why.
func (r *Resource) Text() string {
	age := terminal.Duration(max(0, r.Now.Sub(schemas.InstantOf(r.Since))))
	switch {
	case r.State == Failing && r.Trouble != nil && r.Trouble.Failing:
		return fmt.Sprintf("failing for %s: %s", age, r.Why)
	case r.State == Blocked && r.Trouble.Blocked() && r.Trouble.Publishes:
		return fmt.Sprintf("blocked for %s, other rows go on: %s", age, r.Why)
	case r.State == Blocked && r.Trouble.Blocked():
		return fmt.Sprintf("blocked for %s, nothing is published: %s", age, r.Why)
	case r.State == SettlingDelayed:
		return fmt.Sprintf("settling is delayed for %s, and rows go on: %s", age, r.Why)
	}
	return r.Why
}
