package main

import (
	"context"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// logDir watches the folders that Apache Kafka keeps for a topic's partitions: which segments come about, and when the cleaner has been there.
type logDir struct {
	data, topic string
	end         func()

	mu      sync.Mutex
	made    map[string]bool // every segment that was ever seen
	cleaned map[int]time.Time
	reached map[int]int64 // by partition: the offset up to which it is compacted
}

// watchLog looks ten times a second until close. The cleaner rests for 15 s between its rounds, so that no segment comes and goes unseen.
func watchLog(ctx context.Context, data, topic string) *logDir {
	ctx, cancel := context.WithCancel(ctx)
	l, done := &logDir{data: data, topic: topic, made: map[string]bool{}, cleaned: map[int]time.Time{}, reached: map[int]int64{}}, make(chan struct{})
	l.end = func() { cancel(); <-done }
	go func() {
		defer close(done)
		for rest(ctx, 100*time.Millisecond) == nil {
			l.look()
		}
	}()
	return l
}

func (l *logDir) close() { l.end() }

func (l *logDir) look() {
	segments := l.segments()
	text, _ := os.ReadFile(filepath.Join(l.data, "cleaner-offset-checkpoint"))
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, path := range segments {
		l.made[path] = true
	}
	// The file has a line "topic partition offset" for each log that was compacted, written when that was done.
	for line := range strings.Lines(string(text)) {
		f := strings.Fields(line)
		if len(f) != 3 || f[0] != l.topic || f[2] == "0" {
			continue
		}
		p, err := strconv.Atoi(f[1])
		offset, err2 := strconv.ParseInt(f[2], 10, 64)
		if err != nil || err2 != nil {
			continue // half written
		}
		if l.cleaned[p].IsZero() {
			l.cleaned[p] = time.Now()
		}
		l.reached[p] = offset
	}
}

func (l *logDir) segments() []string {
	paths, _ := filepath.Glob(filepath.Join(l.data, l.topic+"-[0-9]*", "*.log")) // the pattern is well formed
	return paths
}

// begun is how many segments there have been so far, those included that the cleaner has put together since.
func (l *logDir) begun() int {
	l.look()
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.made)
}

// compactions is when each partition was first compacted, of those that were, in order, and how many records the compacted parts held.
func (l *logDir) compactions() (at []time.Time, records int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, n := range l.reached {
		records += n
	}
	return slices.SortedFunc(maps.Values(l.cleaned), time.Time.Compare), records
}

// bytes is how long the topic's segments are, and what all its files take on disk: indexes of an active segment are made 10 MiB long and mostly hole, and
// what the cleaner has replaced stays for a minute.
func (l *logDir) bytes() (records, disk int64) {
	for _, path := range l.segments() {
		if info, err := os.Stat(path); err == nil {
			records += info.Size()
		}
	}
	folders, _ := filepath.Glob(filepath.Join(l.data, l.topic+"-[0-9]*"))
	for _, folder := range folders {
		_ = filepath.WalkDir(folder, func(_ string, d fs.DirEntry, err error) error { // a file may go while we look
			if err != nil {
				return nil //nolint:nilerr // it went
			}
			if info, err := d.Info(); err == nil {
				disk += info.Sys().(*syscall.Stat_t).Blocks * 512
			}
			return nil
		})
	}
	return records, disk
}

func mebi(n int64) float64 { return float64(n) / (1 << 20) }
