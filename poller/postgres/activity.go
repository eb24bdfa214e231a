package postgres

import (
	"sync"
	"time"

	"go.uber.org/zap"
)

// unansweredAfter is how long a statement may go unanswered before the page and the log say so. With an index
// a poll is answered within milliseconds.
const unansweredAfter = 5 * time.Second

// Unanswered is what SourceConfig.Doing gets while the database has not begun to answer for some seconds.
const Unanswered = "waiting for the database to answer"

// activity says what a read is doing.
type activity struct {
	tell func(string) // see SourceConfig.Doing
	log  *zap.Logger
	now  string // what it says, apart from Unanswered
}

func (a *activity) says(what string) {
	a.now = what
	a.tell(what)
}

// await says Unanswered when no answer begins in time. The returned function ends that; it may be called
// twice.
//
// Most errors come at once. But a pooler whose database has gone lets a statement wait for it (PgBouncer: two
// minutes), and a locked table or a cut connection say nothing either. Until chunkDeadline such a poll would
// look like one that goes well.
func (a *activity) await() (answered func()) {
	said := make(chan struct{})
	timer := time.AfterFunc(unansweredAfter, func() {
		defer close(said)
		a.tell(Unanswered)
		a.log.Warn("the database has not answered yet",
			zap.Duration("after", unansweredAfter), zap.Duration("given_up_after", chunkDeadline))
	})
	return sync.OnceFunc(func() {
		if !timer.Stop() {
			<-said
			a.tell(a.now)
		}
	})
}
