// Package logging is storestream's log: one line an event, and a warning that repeats is one line a minute.
package logging

import (
	"io"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/storestream/storestream/config"
)

// New is a log that writes to w. The configuration has been checked.
func New(cfg config.Log, w io.Writer) *zap.Logger {
	level, err := zapcore.ParseLevel(cfg.Level)
	if err != nil {
		level = zapcore.InfoLevel
	}
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
	return zap.New(suppressRepeats(zapcore.NewCore(encoder, zapcore.Lock(zapcore.AddSync(w)), level)))
}
