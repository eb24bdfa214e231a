package postgres

import (
	"time"

	"go.uber.org/zap"
)

// unansweredAfter is how long a statement may go unanswered before the page and the log say so. With an index
// a poll is answered within milliseconds.
const unansweredAfter = 5 * time.Second

// Unanswered is the text for SourceConfig.Doing while the database has not begun to answer for some seconds.
const Unanswered = "waiting for the database to answer"

// show shows the user the present activity of a read.
func (r *chunkReader) show(activity string) {
	r.activity = activity
	r.doing(activity)
}

// await shows Unanswered if the caller has not called answered after unansweredAfter.
//
// Most errors come at once. But if its database has gone, a pooler keeps a statement waiting (PgBouncer: two
// minutes). A locked table or a cut connection gives no sign either. Until chunkDeadline such a poll would
// look like a good one.
func (r *chunkReader) await() (answered func()) {
	shown := make(chan struct{})
	timer := time.AfterFunc(unansweredAfter, func() {
		defer close(shown)
		r.doing(Unanswered)
		r.log.Warn("the database has not answered yet",
			zap.Duration("after", unansweredAfter), zap.Duration("given_up_after", chunkDeadline))
	})
	return func() {
		if !timer.Stop() {
			<-shown
			r.doing(r.activity)
		}
	}
}
