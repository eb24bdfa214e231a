package main

import (
	"maps"
	"strings"
	"sync"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

const (
	// quietFor is how long the same warning is not repeated. A little less than a minute: a loop that keeps to one line a minute by itself must
	// not lose every second one to a timer that fired early.
	quietFor = 55 * time.Second
	// quietKinds bounds the kinds of warnings that are remembered.
	quietKinds = 1024
)

// quiet lets the first of a run of equal warnings through at once, and then one a minute with the count of those it swallowed
// ("repeated"): a broker that is down all night leaves hundreds of lines, not a hundred thousand. zap's sampler drops likewise but keeps the
// count to itself. Information passes untouched: it says that something happened, each time.
type quiet struct {
	zapcore.Core
	bound string // the text of the fields bound by With
	said  *said
}

// said is shared by a logger and all that were made from it.
type said struct {
	mu     sync.Mutex
	byText map[string]*repeats
}

type repeats struct {
	last time.Time
	n    int // swallowed since
}

func newQuiet(core zapcore.Core) zapcore.Core {
	return &quiet{Core: core, said: &said{byText: map[string]*repeats{}}}
}

// With binds fields, which become part of what makes two warnings equal: orders failing says nothing of users.
func (q *quiet) With(fields []zap.Field) zapcore.Core {
	return &quiet{Core: q.Core.With(fields), bound: q.bound + fieldText(fields), said: q.said}
}

// Check is zapcore's.
func (q *quiet) Check(entry zapcore.Entry, checked *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	if q.Enabled(entry.Level) {
		return checked.AddCore(entry, q)
	}
	return checked
}

// Write is zapcore's.
func (q *quiet) Write(entry zapcore.Entry, fields []zap.Field) error {
	if entry.Level < zapcore.WarnLevel {
		return q.Core.Write(entry, fields)
	}
	n, say := q.said.again(entry.LoggerName+"\x00"+entry.Message+q.bound+fieldText(fields), entry.Time)
	if !say {
		return nil
	}
	if n > 0 {
		fields = append(fields[:len(fields):len(fields)], zap.Int("repeated", n))
	}
	return q.Core.Write(entry, fields)
}

// again says whether to say text now, and how often it was swallowed since the last time.
func (s *said) again(text string, now time.Time) (n int, say bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.byText[text]
	switch {
	case r == nil:
		s.forget(now)
		s.byText[text] = &repeats{last: now}
		return 0, true
	case now.Sub(r.last) < quietFor:
		r.n++
		return 0, false
	}
	n, r.n, r.last = r.n, 0, now
	return n, true
}

// forget makes room: first what has not been said for long, and if all is fresh everything, which repeats lines but bounds memory.
func (s *said) forget(now time.Time) {
	if len(s.byText) < quietKinds {
		return
	}
	maps.DeleteFunc(s.byText, func(_ string, r *repeats) bool { return now.Sub(r.last) >= 2*quietFor })
	if len(s.byText) >= quietKinds {
		clear(s.byText)
	}
}

// fieldText is what tells warnings apart: the texts and errors among the fields, with each digit replaced, so that counts, times and port numbers
// do not make every line another one.
func fieldText(fields []zap.Field) string {
	var b strings.Builder
	for _, f := range fields {
		switch f.Type {
		case zapcore.StringType:
			b.WriteString("\x00" + f.Key + "=" + f.String)
		case zapcore.ErrorType:
			if err, ok := f.Interface.(error); ok && err != nil {
				b.WriteString("\x00" + f.Key + "=" + err.Error())
			}
		}
	}
	return strings.Map(func(r rune) rune {
		if r >= '0' && r <= '9' {
			return '#'
		}
		return r
	}, b.String())
}
