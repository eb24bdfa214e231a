// Package logging is storestream's log: one line an event, and a warning that repeats is one line a minute.
package logging

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/storestream/storestream/config"
	"github.com/storestream/storestream/internal/terminal"
)

// New is a log that writes to w. The configuration has been checked.
func New(cfg config.Log, w io.Writer) *zap.Logger {
	level, _ := zapcore.ParseLevel(cfg.Level)
	fields := zapcore.EncoderConfig{TimeKey: "time", LevelKey: "level", NameKey: "part", MessageKey: "msg",
		LineEnding: "\n", EncodeLevel: zapcore.LowercaseLevelEncoder, EncodeDuration: zapcore.StringDurationEncoder,
		EncodeTime: func(t time.Time, enc zapcore.PrimitiveArrayEncoder) {
			enc.AppendString(t.UTC().Format("2006-01-02T15:04:05.000Z"))
		}}
	encoder := zapcore.NewJSONEncoder(fields)
	if cfg.Format == "console" {
		fields.EncodeLevel = zapcore.CapitalLevelEncoder
		fields.ConsoleSeparator = "  "
		encoder = zapcore.NewConsoleEncoder(fields)
	}
	core := zapcore.NewCore(encoder, zapcore.Lock(zapcore.AddSync(oneLine{w})), level)
	return zap.New(&repeatSuppression{Core: core, mu: &sync.Mutex{}, seen: map[string]*warning{}})
}

// oneLine writes each text as one line without control characters. The console's form does not escape texts,
// and JSON escapes only characters below a space.
type oneLine struct{ w io.Writer }

// Write is io.Writer's.
func (o oneLine) Write(entry []byte) (int, error) {
	text := strings.ReplaceAll(terminal.Escape(strings.TrimSuffix(string(entry), "\n")), "\n", `\n`)
	if _, err := io.WriteString(o.w, text+"\n"); err != nil {
		return 0, err
	}
	return len(entry), nil
}

// mostText is the longest text of a field, in bytes. An error may quote a server's answer, and the last lines
// are kept in memory.
const mostText = 16 << 10

// texts returns fields with each error as its text, and with long texts cut off at mostText.
func texts(fields []zap.Field) []zap.Field {
	fields = slices.Clone(fields)
	for i, f := range fields {
		if err, ok := f.Interface.(error); ok && f.Type == zapcore.ErrorType {
			fields[i] = zap.String(f.Key, err.Error())
		}
		if text := fields[i].String; len(text) > mostText {
			fields[i] = zap.String(f.Key, fmt.Sprintf("%s ... (%d bytes)", strings.ToValidUTF8(text[:mostText], ""),
				len(text)))
		}
	}
	return fields
}

const (
	// repeatAfter is how long the same warning is not repeated. It is a little less than a minute: a loop that
	// keeps to one line a minute by itself must not lose every second line to a timer that fired early.
	repeatAfter = 55 * time.Second
	// mostWarnings bounds how many different warnings are remembered.
	mostWarnings = 1024
)

// repeatSuppression is a zapcore.Core that lets the first of equal warnings through at once, and then one a
// minute with the number that it swallowed ("repeated"). So a broker that is down all night leaves hundreds
// of lines, not a hundred thousand. zap's sampler drops lines too, but does not log the number. Information
// always passes, because each line is an event of its own.
type repeatSuppression struct {
	zapcore.Core
	bound string // the text of the fields bound by With

	// Loggers that With has made share these.
	mu   *sync.Mutex
	seen map[string]*warning // by text
}

// warning is one that was written lately.
type warning struct {
	written   time.Time
	swallowed int // since then
}

// With binds fields. Two warnings are equal only if these fields are, so a failure of orders does not
// suppress one of users.
func (s *repeatSuppression) With(fields []zap.Field) zapcore.Core {
	fields = texts(fields)
	bound := s.bound + fieldText(fields)
	return &repeatSuppression{Core: s.Core.With(fields), bound: bound, mu: s.mu, seen: s.seen}
}

// Check is zapcore's.
func (s *repeatSuppression) Check(entry zapcore.Entry, checked *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	if s.Enabled(entry.Level) {
		return checked.AddCore(entry, s)
	}
	return checked
}

// Write is zapcore's.
func (s *repeatSuppression) Write(entry zapcore.Entry, fields []zap.Field) error {
	fields = texts(fields)
	if entry.Level < zapcore.WarnLevel {
		return s.Core.Write(entry, fields)
	}
	text := entry.LoggerName + "\x00" + entry.Message + s.bound + fieldText(fields)
	s.mu.Lock()
	last := s.seen[text]
	if last != nil && entry.Time.Sub(last.written) < repeatAfter {
		last.swallowed++
		s.mu.Unlock()
		return nil
	}
	if len(s.seen) >= mostWarnings { // that repeats some lines, and bounds memory
		clear(s.seen)
	}
	s.seen[text] = &warning{written: entry.Time}
	s.mu.Unlock()
	if last != nil && last.swallowed > 0 {
		fields = append(fields, zap.Int("repeated", last.swallowed))
	}
	return s.Core.Write(entry, fields)
}

// fieldText is what makes warnings different: the texts among the fields, see texts. Every digit is replaced,
// so that counts, times and port numbers do not make each line a different one.
func fieldText(fields []zap.Field) string {
	var b strings.Builder
	for _, f := range fields {
		if f.Type == zapcore.StringType {
			b.WriteString("\x00" + f.Key + "=" + f.String)
		}
	}
	return strings.Map(func(r rune) rune {
		if r >= '0' && r <= '9' {
			return '#'
		}
		return r
	}, b.String())
}
