package rotation

import (
	"context"
	"os"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"
)

// every is how often Follow looks at what nobody has asked for.
const every = 10 * time.Second

// Set is the values of one process, and tells its log of them: which setting has changed, and which cannot be
// used and why. It never tells what a file holds.
type Set struct {
	// Hidden hears of every secret that a file holds, which none of the texts for others may show; nil: nobody
	// does.
	Hidden *Hidden

	mu      sync.Mutex
	log     *zap.Logger // nil: nobody is told
	values  []value
	renewed chan struct{} // nil: nobody waits for it
}

// value is a *Value of whatever type.
type value interface {
	again() (setting string, changed bool, wrong error)
}

// Log has log told from now on.
func (s *Set) Log(log *zap.Logger) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.log = log
}

// Renewed returns a channel that is closed when the next value changes, or the next signal has had all files
// read: whoever waits because a login was refused need not wait any longer. s may be nil.
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

// Hide returns text with each secret in it masked, see Hidden. s may be nil.
func (s *Set) Hide(text string) string {
	if s == nil {
		return text
	}
	return s.Hidden.Hide(text)
}

// HideJSON is Hide for JSON, see Hidden. s may be nil.
func (s *Set) HideJSON(text string) string {
	if s == nil {
		return text
	}
	return s.Hidden.HideJSON(text)
}

func (s *Set) add(v value) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.values = append(s.values, v)
}

func (s *Set) logger() *zap.Logger {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.log == nil {
		return zap.NewNop()
	}
	return s.log
}

// tell logs a change of a setting. was is the error before, wrong the one now. admits is Value.admits.
func (s *Set) tell(setting string, admits, changed bool, was, wrong error) {
	switch {
	case changed:
		s.logger().Info("a file has changed: what it holds is used from now on", zap.String("setting", setting))
		s.renew()
	case wrong != nil && was != nil && was.Error() == wrong.Error():
	case wrong != nil && admits:
		s.logger().Warn("a file cannot be used, the token is refused", zap.String("setting", setting),
			zap.Error(wrong))
	case wrong != nil:
		s.logger().Warn("a file cannot be used, what it held before stays in use",
			zap.String("setting", setting), zap.Error(wrong))
	case was != nil && wrong == nil:
		s.logger().Info("a file can be used again, and holds what it did", zap.String("setting", setting))
	}
}

// Follow reads all files again when a signal comes, at once, and tells how many have changed. What nobody
// asks for is looked at every ten seconds besides. It returns when ctx ends.
func (s *Set) Follow(ctx context.Context, signals <-chan os.Signal) {
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-signals:
			changed, unusable := s.readAll()
			s.logger().Info("SIGHUP: the files of secrets and certificates were read again",
				zap.Int("changed", len(changed)), zap.Strings("settings", changed),
				zap.Strings("unusable", unusable))
			s.renew()
		case <-ticker.C:
			changed, _ := s.readAll()
			for _, setting := range changed {
				s.tell(setting, false, true, nil, nil)
			}
		}
	}
}

// readAll reads every file again, and returns the settings whose values have changed, and those whose files
// cannot be used.
func (s *Set) readAll() (changed, unusable []string) {
	s.mu.Lock()
	values := slices.Clone(s.values)
	s.mu.Unlock()
	for _, v := range values {
		setting, other, wrong := v.again()
		switch {
		case wrong != nil:
			unusable = append(unusable, setting)
		case other:
			changed = append(changed, setting)
		}
	}
	return changed, unusable
}
