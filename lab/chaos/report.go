package main

import (
	"fmt"
	"math/big"
	"slices"
	"time"

	"github.com/storestream/storestream/lab/asked"
)

// report is the verdict on one resource's topic. The lists name the first offenders.
type report struct {
	resource string
	rows     int // of the service
	versions int // records of the topic, tombstones apart
	repeated int // by replays that were asked for

	lost    findings // rows of the service that the topic does not have
	stale   findings // rows whose newest record in the topic differs from the service
	twice   findings // versions that are there again, and no replay that covers them began in between
	back    findings // records older than the one before it of the same key
	deleted findings // tombstones of rows that the service had, and the topic
	extra   findings // rows that the topic has and the service never had, or has no longer
	omitted findings // rows that a replay should have sent again and did not
	broken  findings // other breaches of the contract

	staleIDs []int64
}

// findings counts, and keeps the first few.
type findings struct {
	n     int
	first []string
}

const keptFindings = 5

func (f *findings) add(format string, args ...any) {
	if f.n++; len(f.first) < keptFindings {
		f.first = append(f.first, fmt.Sprintf(format, args...))
	}
}

// row is a row of the service as a topic shows it: field to int64, float64, string, *big.Rat, time.Time or
// nil.
type row map[string]any

// judgeOrder goes through a topic's records, in offset order within each partition. setBack has the instants
// to which the service itself has set a row's updated_at back. The row's next version that the topic gets is
// of that instant, or of a later one if the row has changed once more. A created_at that the id has not had
// before is another row: the service has given the id out again, and stamps that row earlier while its clock
// is set back. A row that a rewrite left as it was may come once more: to PostgreSQL, and so to the floor, it
// is written after all others.
//
// now are the service's rows at the end. A step back to one of these was the service's own: a transaction
// that began earlier wrote the row later.
func (j *report) judgeOrder(versions []version, replays []asked.Course, rewrites []rewrite,
	setBack func(id int64) []int64, now map[int64]row) {
	type content struct {
		id   int64
		hash uint64
	}
	type origin struct{ id, created int64 }
	last, seen, rows := map[int64]version{}, map[content]version{}, map[origin]bool{}
	used := make([]map[content]bool, len(rewrites))
	stepped := map[[2]int64]bool{} // by id and number of the instant, which excuses one step to a later one
	wentBack := func(v version, from int64) bool {
		if at, ok := now[v.id]["updated_at"].(time.Time); ok && at.UnixMilli() == v.millis {
			return true
		}
		for n, to := range setBack(v.id) {
			step := [2]int64{v.id, int64(n)}
			if to == v.millis || to < v.millis && v.millis < from && !stepped[step] {
				stepped[step] = true
				return true
			}
		}
		return false
	}
	excused := func(i int, v version, c content) bool {
		for n, r := range rewrites {
			if i >= r.before && v.millis > r.from && !used[n][c] {
				if used[n] == nil {
					used[n] = map[content]bool{}
				}
				used[n][c] = true
				return true
			}
		}
		return false
	}
	for i, v := range versions {
		before, known := last[v.id]
		last[v.id] = v
		if known && before.partition != v.partition {
			j.broken.add("%s %d is in partitions %d and %d", j.resource, v.id, before.partition, v.partition)
		}
		if v.gone {
			continue
		}
		j.versions++
		first := !rows[origin{v.id, v.created}]
		rows[origin{v.id, v.created}] = true
		if known && !before.gone && !first && v.millis < before.millis && !wentBack(v, before.millis) {
			j.back.add("%s %d steps back from %s (offset %d) to %s (partition %d, offset %d)", j.resource, v.id,
				instant(before.millis), before.offset,
				instant(v.millis), v.partition, v.offset)
		}
		c := content{v.id, v.hash}
		before, again := seen[c]
		seen[c] = v
		switch {
		case !again:
		case slices.Contains(setBack(v.id), v.millis),
			asked.Covered(replays, v.asked(), before.offset), excused(i, v, c):
			j.repeated++
		default:
			j.twice.add("%s %d: the version of %s is there twice, at offsets %d and %d of partition %d", j.resource,
				v.id, instant(v.millis), before.offset,
				v.offset, v.partition)
		}
	}
}

// judgeDeletes finds tombstones of rows that the service had all the time. They are mistakes, even if a later
// poll or sweep brought the rows back.
func (j *report) judgeDeletes(versions []version) {
	published := map[int64]bool{}
	for _, v := range versions {
		if v.mistake && published[v.id] {
			j.deleted.add("%s %d: a tombstone at offset %d of partition %d, and the service has the row", j.resource,
				v.id, v.offset, v.partition)
		}
		published[v.id] = !v.gone
	}
}

func instant(millis int64) string { return time.UnixMilli(millis).UTC().Format(time.RFC3339Nano) }

// judgeRows compares the newest record of every id with the service, field by field. decode decodes a value;
// deletes says that the service deletes rows now and then, and nothing in its document reports that.
func (j *report) judgeRows(rows map[int64]row, newest map[int64]*record,
	decode func([]byte) (map[string]any, error), deletes bool) {
	j.rows = len(rows)
	for id, want := range rows {
		r, there := newest[id]
		if !there || r.gone {
			j.lost.add("%s %d of %v", j.resource, id, want["updated_at"])
			continue
		}
		got, err := decode(r.value)
		if err != nil {
			j.broken.add("%s %d: %v", j.resource, id, err)
			continue
		}
		if field := differs(got, want); field != "" {
			j.staleIDs = append(j.staleIDs, id)
			j.stale.add("%s %d (partition %d, offset %d): %s is %v, the service has %v "+
				"(updated_at %v, the service's %v)",
				j.resource, id, r.partition, r.offset,
				field, show(got[field]), show(want[field]), got["updated_at"], want["updated_at"])
		}
	}
	for id, r := range newest {
		if _, there := rows[id]; !there && !r.gone && !deletes {
			j.extra.add("%s %d (partition %d, offset %d)", j.resource, id, r.partition, r.offset)
		}
	}
}

// difference describes how the rows differ. It returns "" if they are equal.
func (j *report) difference() string {
	if j.lost.n+j.stale.n+j.extra.n+j.broken.n == 0 {
		return ""
	}
	return fmt.Sprintf("%d lost, %d stale, %d extra: %v", j.lost.n, j.stale.n, j.extra.n,
		slices.Concat(j.lost.first, j.stale.first, j.extra.first, j.broken.first))
}

// differs names a field in which the two differ, "" if none.
func differs(got map[string]any, want row) string {
	for field, w := range want {
		if !equal(got[field], w) {
			return field
		}
	}
	for field := range got {
		if _, there := want[field]; !there {
			return field
		}
	}
	return ""
}

func equal(got, want any) bool {
	switch w := want.(type) {
	case *big.Rat:
		g, ok := got.(*big.Rat)
		return ok && g.Cmp(w) == 0
	case time.Time:
		g, ok := got.(time.Time)
		return ok && g.Equal(w)
	}
	return got == want
}

func show(v any) any {
	if r, ok := v.(*big.Rat); ok && r != nil {
		return r.FloatString(18)
	}
	return v
}

// asked returns what package asked reads of a record.
func (v *version) asked() asked.Version {
	return asked.Version{ID: v.id, Millis: v.millis, Partition: v.partition, Offset: v.offset}
}

// judgeReplays checks that each replay that has ended by itself has sent every row that it wants again, but
// rows that it says it left, and those that the service may have hidden. newest is from the topic, rows from
// the service.
func (j *report) judgeReplays(replays []asked.Course, rows map[int64]row, newest map[int64]*record,
	mayHide func(millis int64) bool) {
	for _, c := range replays {
		for _, v := range c.Omitted(func(yield func(asked.Version) bool) {
			for id, r := range newest {
				if _, there := rows[id]; there && !r.gone && !mayHide(r.millis) && !yield(r.asked()) {
					return
				}
			}
		}) {
			j.omitted.add("%s %d (updated_at %s, partition %d, offset %d) was not sent again by request %d, "+
				"from %s, accepted at offset %d, with the result %+v", j.resource, v.ID, instant(v.Millis),
				v.Partition, v.Offset, c.Request, c.From, c.Ends[v.Partition], *c.Result)
		}
	}
}

// judgeRequests checks that the owners have done what was asked of them, and nothing in a pause.
func (j *report) judgeRequests(asks []asked.Ask, marks []mark) {
	mine := slices.DeleteFunc(slices.Clone(asks), func(a asked.Ask) bool { return a.Resource != j.resource })
	for _, text := range asked.Wrong(mine, asMarks(marks)) {
		j.broken.add("%s: %s", j.resource, text)
	}
}

// judgeMarks checks the watermarks against each other and against the records. mayGoBack: something happened
// to the service after which settled may go back without a reset.
func (j *report) judgeMarks(marks []mark, mayGoBack bool) {
	replaying := int64(-1)
	for i, m := range marks {
		begins := m.Replay != nil && m.Replay.Request != replaying
		if begins {
			replaying = m.Replay.Request
		}
		if i > 0 && m.Settled.Before(marks[i-1].Settled) && !begins && !mayGoBack {
			j.broken.add("%s: settled went back from %s to %s, and no reset was accepted", j.resource,
				marks[i-1].Settled, m.Settled)
		}
	}
	if n := len(marks); n == 0 {
		j.broken.add("%s: there is no watermark", j.resource)
	} else if marks[n-1].Rows != int64(j.versions) {
		j.broken.add("%s: the watermark counts %d rows published, the topic has %d: they are not one transaction",
			j.resource, marks[n-1].Rows, j.versions)
	}
}

// judgeLetters finds dead letters of rows that can be published. Everything is repaired when it is called. A
// letter without an id stays until a sweep.
func (j *report) judgeLetters(letters map[string][]byte, rows map[int64]row) {
	for key := range letters {
		var id int64
		var rest string
		if n, _ := fmt.Sscanf(key, j.resource+"/%d%s", &id, &rest); n != 1 ||
			key != fmt.Sprintf("%s/%d", j.resource, id) || len(rest) > 0 {
			continue
		}
		if _, there := rows[id]; there {
			j.broken.add("%s %d can be published, and its dead letter is still there", j.resource, id)
		}
	}
}

// ok says whether the topic has no faults.
func (j *report) ok() bool {
	for _, f := range j.faults() {
		if f.n > 0 {
			return false
		}
	}
	return true
}

func (j *report) faults() map[string]findings {
	return map[string]findings{"lost": j.lost, "stale": j.stale, "twice": j.twice, "stepped back": j.back,
		"deleted by mistake": j.deleted,
		"extra":              j.extra, "not sent again": j.omitted,
		"broken": j.broken}
}
