package rotation

import (
	"context"
	"os"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"
)

// every is how often Follow reads the files.
const every = 10 * time.Second

// Set has the values of one process. It logs which setting has changed, and which one is unusable and why. It
// never logs the content of a file.
type Set struct {
	// Hidden learns every secret that a file holds. It may be nil, and then hides none.
	*Hidden

	// Log is set before the values are used. It may be nil.
	Log *zap.Logger

	mu       sync.Mutex
	settings []string
	looks    []func() (changed bool, err error) // of the settings
	renewed  chan struct{}                      // nil until Renewed is called
}

// Renewed returns a channel that is closed when the next value changes, or when the next signal has had all
// files read. A login that was refused is worth another try then. s may be nil.
func (s *Set) Renewed() <-chan struct{} {
	if s == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.renewed == nil {
		s.renewed = make(chan struct{})
	}
	return s.renewed
}

func (s *Set) renew() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.renewed != nil {
		close(s.renewed)
		s.renewed = nil
	}
}

func (s *Set) add(setting string, look func() (changed bool, err error)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.settings, s.looks = append(s.settings, setting), append(s.looks, look)
}

// tell logs a change of a setting. was is the error before, wrong the present one.
func (s *Set) tell(setting string, changed bool, was, wrong error) {
	if s.Log == nil {
		return
	}
	switch {
	case changed:
		s.Log.Info("a file has changed: what it holds is used from now on", zap.String("setting", setting))
		s.renew()
	case wrong != nil && (was == nil || was.Error() != wrong.Error()):
		s.Log.Warn("a file cannot be used: what it held before stays in use, but of http.token, which is "+
			"refused", zap.String("setting", setting), zap.Error(wrong))
	case was != nil && wrong == nil:
		s.Log.Info("a file can be used again, and holds what it did", zap.String("setting", setting))
	}
}

// Follow reads all files again when a signal comes, and every ten seconds. So a broken file is reported
// before it is needed, and before a restart would fail by it. It returns when ctx ends.
func (s *Set) Follow(ctx context.Context, signals <-chan os.Signal) {
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			s.readAll()
		case <-signals:
			changed, unusable := s.readAll()
			s.Log.Info("SIGHUP: the files of secrets and certificates were read again",
				zap.Int("changed", len(changed)), zap.Strings("settings", changed),
				zap.Strings("unusable", unusable))
			s.renew()
		}
	}
}

func (s *Set) readAll() (changed, unusable []string) {
	s.mu.Lock()
	settings, looks := slices.Clone(s.settings), slices.Clone(s.looks)
	s.mu.Unlock()
	for i, look := range looks {
		switch isNew, err := look(); {
		case err != nil:
			unusable = append(unusable, settings[i])
		case isNew:
			changed = append(changed, settings[i])
		}
	}
	return changed, unusable
}
