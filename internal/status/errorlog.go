package status

import (
	"log"
	"strings"

	"go.uber.org/zap"
	ratelimit "golang.org/x/time/rate"
)

const (
	// errorLines bounds how many lines what strangers send may leave in the log: so many at once, and then one
	// in errorEvery seconds.
	errorLines = 10
	errorEvery = 10
	// errorLength bounds a line, in bytes. A panic's stack is longer, and begins with what matters.
	errorLength = 2000
)

// errorLog takes net/http's own messages (a TLS handshake that failed, a panic) to our log.
type errorLog struct {
	log     *zap.Logger
	limit   *ratelimit.Limiter
	dropped int // net/http's log.Logger writes one line at a time
}

func newErrorLog(to *zap.Logger) *log.Logger {
	limit := ratelimit.NewLimiter(ratelimit.Limit(1./errorEvery), errorLines)
	return log.New(&errorLog{log: to, limit: limit}, "", 0)
}

// Write is io.Writer's.
func (e *errorLog) Write(line []byte) (int, error) {
	if !e.limit.Allow() {
		e.dropped++
		return len(line), nil
	}
	text := strings.TrimSpace(string(line))
	if len(text) > errorLength {
		text = strings.ToValidUTF8(text[:errorLength], "")
	}
	e.log.Warn("status server", zap.String("said", text), zap.Int("dropped", e.dropped))
	e.dropped = 0
	return len(line), nil
}
