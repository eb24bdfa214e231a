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
	w := &warnings{byText: map[string]*warning{}}
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
