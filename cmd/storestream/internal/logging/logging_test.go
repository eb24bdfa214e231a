package logging

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"

	"github.com/storestream/storestream/config"
	"github.com/storestream/storestream/internal/terminal"
)

func TestAWarningThatRepeatsEverySecondIsOneLineAMinuteWithACount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		log := New(config.Log{Level: "info", Format: "json"}, &out)
		orders, users := log.With(zap.String("resource", "orders")), log.With(zap.String("resource", "users"))
		for second := range 180 {
			refused := fmt.Errorf("dial tcp 127.0.0.1:%d: connection refused", 40000+second)
			orders.Warn("poll failed", zap.Error(refused))
			log.With(zap.String("resource", "users")).Info("day settled")
			time.Sleep(time.Second) //nolint:forbidigo // the bubble's clock
		}
		users.Warn("poll failed", zap.Error(errors.New("dial tcp 127.0.0.1:40000: connection refused")))
		orders.Warn("poll failed", zap.Error(errors.New("401 unauthorized")))

		var failed []string
		for line := range strings.Lines(out.String()) {
			if strings.Contains(line, "poll failed") {
				failed = append(failed, line)
			}
		}
		if len(failed) != 6 {
			t.Fatalf("%d lines, expected the first at once, one a minute, one of another resource and one of another "+
				"failure:\n%s", len(failed), strings.Join(failed, ""))
		}
		if !strings.Contains(failed[1], `"repeated":54`) || strings.Contains(failed[0], "repeated") {
			t.Errorf("the second line must count what was swallowed:\n%s", strings.Join(failed, ""))
		}
		if n := strings.Count(out.String(), "day settled"); n != 180 {
			t.Errorf("%d lines of information, expected each of 180", n)
		}
	})
}

func TestWhatIsRememberedOfWarningsIsBounded(t *testing.T) {
	w := &warnings{byText: map[string]warning{}}
	for i := range 10 * mostWarnings {
		w.add(fmt.Sprintf("%c%d", 'a', i), time.Unix(int64(i), 0))
	}
	if len(w.byText) > mostWarnings {
		t.Errorf("%d warnings are remembered, expected %d at most", len(w.byText), mostWarnings)
	}
}

func TestTheLevelAndTheFormAreTheConfigurations(t *testing.T) {
	var out bytes.Buffer
	log := New(config.Log{Level: "warn", Format: "console"}, &out)
	log.Info("not this")
	log.Warn("this", zap.String("topic", "store.orders"))
	const line = `WARN  this  {"topic": "store.orders"}`
	if s := out.String(); strings.Contains(s, "not this") || !strings.Contains(s, line) {
		t.Errorf("%q", s)
	}
}

func TestAnEntryIsOneLineWithoutControlCharactersInBothForms(t *testing.T) {
	const hostile = "no\x1b[2J\r\u009b31m\u202e\x9b\nERROR  forged"
	for _, form := range []string{"console", "json"} {
		var out bytes.Buffer
		New(config.Log{Level: "info", Format: form}, &out).Error(hostile, zap.String("text", hostile),
			zap.Error(errors.New(hostile)), zap.Any("any", map[string]string{"a": hostile}))
		line, rest, _ := strings.Cut(out.String(), "\n")
		if rest != "" || terminal.Escape(line) != line || strings.Contains(line, "\r") {
			t.Errorf("%s: %q", form, out.String())
		}
	}
}

// What a server answers may be megabytes, and each a little different.
func TestATextOfMegabytesIsCutShortInTheLogAndInWhatIsRemembered(t *testing.T) {
	for _, format := range []string{"json", "console"} {
		var out bytes.Buffer
		log := New(config.Log{Level: "info", Format: format}, &out)
		long := strings.Repeat("x", 1<<20)
		fields := []zap.Field{zap.String("said", long), zap.Int("n", 7), zap.Error(errors.New("a" + long))}
		log.Warn("failing", fields...)
		log.Info("failing", fields...)
		for line := range strings.Lines(out.String()) {
			if len(line) > 3*mostText || !strings.Contains(line, "(1048577 bytes)") || !strings.Contains(line, "7") {
				t.Errorf("%s: a line of %d bytes", format, len(line))
			}
		}
		for text := range log.Core().(*repeatSuppression).warnings.byText {
			if len(text) > 3*mostText {
				t.Errorf("%s: %d bytes are remembered", format, len(text))
			}
		}
		if fields[0].String != long {
			t.Error("the caller's fields were changed")
		}
	}
}
