package health

// State sums up a resource in a word.
type State string

// The states of a resource.
const (
	Following       State = "following"        // passes complete without a fault
	SettlingDelayed State = "settling_delayed" // passes complete, but settled does not move
	Replaying       State = "replaying"        // it publishes rows again
	Paused          State = "paused"           // a person asked for a pause
	Resuming        State = "resuming"         // its owner has not completed a pass
	FirstLoad       State = "first_load"       // the first pass is not complete
	Behind          State = "behind"           // no complete pass for three intervals and ten seconds
	Failing         State = "failing"          // polls fail, and are tried again
	Blocked         State = "blocked"          // it publishes nothing, or not all, until a person acts
	Incomplete      State = "incomplete"       // more than 5 rows, or 0.1 % of all, have dead letters
	Stalled         State = "stalled"          // its owner has not written the watermark for two minutes
	Unowned         State = "unowned"          // no instance has it
	Unreadable      State = "unreadable"       // another program wrote its watermark
	Unknown         State = "unknown"          // the group has not said which instance has it
)
