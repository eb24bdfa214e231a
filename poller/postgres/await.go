package postgres

import (
	"sync"
	"time"

	"go.uber.org/zap"
)

// awaitAfter is how long a statement may go without an answer before people are told. A poll is answered within milliseconds where there is an index.
const awaitAfter = 5 * time.Second

// Unanswered is what Doing is told meanwhile.
const Unanswered = "waiting for the database to answer"

// does tells people what the read is at.
func (s *Source) does(what string) {
	s.at = what
	s.Doing(what)
}

// await tells people when the database does not begin to answer in time; the returned function, which may be called twice, ends that.
//
// Most errors come at once. But a pooler whose database has gone lets a statement wait for it (PgBouncer: two minutes), and a lock on the table or a
// connection that was cut say nothing either: until chunkDeadline nobody could tell that from a poll that goes well.
func (s *Source) await() (answered func()) {
	told := make(chan struct{})
	timer := time.AfterFunc(awaitAfter, func() {
		defer close(told)
		s.Doing(Unanswered)
		s.Log.Warn("the database has not answered yet", zap.Duration("after", awaitAfter), zap.Duration("given_up_after", chunkDeadline))
	})
	return sync.OnceFunc(func() {
		if !timer.Stop() {
			<-told
			s.Doing(s.at)
		}
	})
}
