package producer

import (
	"errors"
	"fmt"
	"time"

	"github.com/storestream/storestream/schemas"
)

// ErrAborted says that the transaction was aborted and nothing of it is or will be visible. The session may be used again.
var ErrAborted = errors.New("the transaction was aborted")

// ErrLost says that whether the transaction was committed is unknown, or another producer has taken the topic over. Close the session, and go on with a
// new one (Group.Confirm, then Take).
var ErrLost = errors.New("the session is lost")

// Reasons for which the context of an owner is cancelled.
var (
	// ErrRevoked: the group hands the resource to another member, or this one leaves. Abort, close, return within seconds.
	ErrRevoked = errors.New("the group takes the resource away")
	// ErrLostOwnership: the group went on without this member, and another may be writing already. Close without an abort (Session.Lost).
	ErrLostOwnership = errors.New("this instance is no longer a member of the group")
)

// RefusedError holds a resource until a person has changed something in Kafka: we alter nothing that we find.
type RefusedError struct {
	Topic    string
	Setting  string // a topic setting, or what else is wrong
	Found    string
	Expected string
	Do       string // the command or step that mends it
	// MayPass: the broker also says so for a while where nothing is wrong, so whoever waits is not wrong to go on waiting.
	MayPass bool
}

func (e *RefusedError) Error() string {
	return fmt.Sprintf("topic %s: %s is %s, expected %s: %s", e.Topic, e.Setting, e.Found, e.Expected, e.Do)
}

// NeighbourError holds a resource because another group is publishing it to the same topic. Nothing was fenced.
type NeighbourError struct {
	Resource, Topic, Group, Instance string
	Written                          schemas.Instant
}

func (e *NeighbourError) Error() string {
	return fmt.Sprintf("%s is being published to topic %s by group %q (instance %q, last at %s): stop one of the two deployments, "+
		"or give this one another kafka.topic_prefix; it takes over once the other has been quiet for %s",
		e.Resource, e.Topic, e.Group, e.Instance, e.Written, neighbourQuiet)
}

// neighbourQuiet is how long a watermark of another group keeps us away: three of the 10 s within which a living owner writes one.
const neighbourQuiet = 30 * time.Second
