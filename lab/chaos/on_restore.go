package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/storestream/storestream/internal/storefake"
)

// The service is restored from a backup: its rows go back, what was written since is gone, and ids are given
// out again. That breaks what storestream's promise stands on, that a change of a row changes its updated_at
// to now. So its operator asks for a sweep, and then the topics must be the service once more, but for rows
// that it has no longer. The judge forgives what the restore itself did: a step back to what the backup had,
// and that a state is there again. A sweep believes a row that went back when an overlap has passed, by our
// clock: where the service's runs fast, that is longer than the run.
var restoreKinds = []*kind{
	{name: "restored from a backup", weight: 2, hits: theTables, least: 3 * time.Second, most: 20 * time.Second,
		needs: overDatabase,
		do: func(ctx context.Context, s *stage, _ event) (func() error, error) {
			b, err := s.backup(ctx)
			if err != nil {
				return nil, notPlayed(fmt.Sprintf("backup: %v", err))
			}
			return func() error { return s.restore(ctx, b) }, nil
		}},
}

// backup waits until no transaction of load's is open.
func (s *stage) backup(ctx context.Context) (b *storefake.Backup, err error) {
	err = s.load.whileClosed(ctx, func(ctx context.Context) error {
		b, err = s.around.fake.Backup(ctx)
		return err
	})
	return b, err
}

func (s *stage) restore(ctx context.Context, b *storefake.Backup) error {
	overREST := func(name string) bool { return !s.around.readsTable(name) }
	s.tail.rewritten(slices.DeleteFunc(storefake.Names(), overREST))
	var did *storefake.Restored
	err := s.load.whileClosed(ctx, func(ctx context.Context) (err error) {
		did, err = s.around.fake.Restore(ctx, b)
		return err
	})
	if err != nil { // such as a forgotten transaction that holds rows
		return notPlayed(fmt.Sprintf("restore: %v", err))
	}
	back, gone := s.load.restored(did)
	s.journal.say("%d rows went back to %s, %d are gone", back, b.At.Format(time.RFC3339), gone)
	s.sweepAll(ctx)
	return nil
}

// sweepAll asks for a sweep of every resource.
func (s *stage) sweepAll(ctx context.Context) {
	s.fleet.command(ctx, "sweep", "--yes", "--all")
}

// restored notes what a restore did.
func (l *load) restored(did *storefake.Restored) (back, gone int) {
	for name, rows := range did.Back {
		back, gone = back+len(rows), gone+len(did.Gone[name])
		for id, at := range rows {
			l.noteBack(name, id, at)
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.restores++
	return back, gone
}

// noteBack notes that a row went back to an instant.
func (l *load) noteBack(resource string, id int64, to time.Time) {
	to = l.around.shown(resource, to)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.back[rowAt{resource, id, to.UnixMilli()}] = true
	l.backIDs[rowAt{resource: resource, id: id}] = true
}

// steppedBack notes that the service's clock was moved: settled may go back after it.
func (l *load) steppedBack() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.steps++
}

// missedStep notes that no poll met a step of the clock: what was written then only a sweep finds.
func (l *load) missedStep() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.missed++
}

// needsSweep says whether something happened to the service after which only a sweep brings all rows.
func (l *load) needsSweep() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.restores+l.missed > 0
}

// excuses says what of the mishaps the judge takes into account, "" if nothing.
func (l *load) excuses() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	text := ""
	if l.restores > 0 {
		text += fmt.Sprintf("the service was restored from a backup %d times: rows may step back to what the "+
			"backup had and be there again, also those of the last overlap that it left as they were, and rows "+
			"written since stay in the topics\n", l.restores)
	}
	if l.steps > 0 {
		text += fmt.Sprintf("the service's clock was moved %d times: settled may go back. %d times no poll met "+
			"it: what was written then came with a sweep\n", l.steps, l.missed)
	}
	return text
}

// hasRestored says whether the service was restored from a backup: its topics keep rows that it has no
// longer.
func (l *load) hasRestored() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.restores > 0
}

// settledMayGoBack says whether something happened to the service after which storestream reads again what it
// had settled.
func (l *load) settledMayGoBack() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.restores+l.steps > 0
}
