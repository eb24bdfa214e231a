package status

import (
	"log"
	"strings"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

const (
	// errorLines bounds how many lines a minute strangers may leave in the log.
	errorLines = 10
	// errorLength bounds a line, in bytes. A panic's stack is longer, and begins with what matters.
	errorLength = 2000
)

// errorLog takes net/http's own messages (a TLS handshake that failed, a panic) to our log.
type errorLog struct{ log *zap.Logger }

func newErrorLog(to *zap.Logger) *log.Logger {
	few := zap.WrapCore(func(core zapcore.Core) zapcore.Core {
		return zapcore.NewSamplerWithOptions(core, time.Minute, errorLines, 0)
	})
	return log.New(errorLog{to.WithOptions(few)}, "", 0)
}

// Write is io.Writer's.
func (e errorLog) Write(line []byte) (int, error) {
	text := strings.ToValidUTF8(strings.TrimSpace(string(line[:min(len(line), errorLength)])), "")
	e.log.Warn("status server", zap.String("said", text))
	return len(line), nil
}
