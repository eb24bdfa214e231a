package main

import (
	"maps"
	"math/big"
	"testing"
	"time"

	"github.com/storestream/storestream/lab/asked"
)

// Each thing that the harness is there to find must be found, and named as what it is.

func at(second int) int64 { return time.Date(2026, 11, 20, 12, 0, second, 0, time.UTC).UnixMilli() }

func never(int64) []int64 { return nil }

func TestJudgeFindsAVersionThatIsThereTwiceUnlessAReplayCoversIt(t *testing.T) {
	versions := []version{{offset: 3, id: 1, millis: at(10), hash: 7},
		{offset: 8, id: 1, millis: at(10), hash: 7}}
	reset := func(from int, end int64) []asked.Course {
		r := asked.Replay{Request: 1, From: time.UnixMilli(at(from)), Ends: []int64{end}}
		return []asked.Course{{Replay: r}}
	}
	for name, c := range map[string]struct {
		replays  []asked.Course
		rewrites []rewrite
		twice    int
	}{
		"no replay":                       {nil, nil, 1},
		"a replay between":                {reset(5, 6), nil, 0},
		"a replay from the row's instant": {reset(10, 8), nil, 0},
		"a replay from a later time":      {reset(11, 6), nil, 1},
		"a replay accepted before both":   {reset(5, 3), nil, 1},
		"a replay accepted after both":    {reset(5, 9), nil, 1},
		"a restore between":               {nil, []rewrite{{at(5), 1}}, 0},
		"a restore after both":            {nil, []rewrite{{at(5), 2}}, 1},
		"a restore of settled rows":       {nil, []rewrite{{at(10), 1}}, 1},
	} {
		j := report{resource: "orders"}
		j.judgeOrder(versions, c.replays, c.rewrites, never, nil)
		if j.twice.n != c.twice || j.repeated != 1-c.twice {
			t.Errorf("%s: %d twice and %d by replays, want %d twice", name, j.twice.n, j.repeated, c.twice)
		}
	}
}

func TestJudgeFindsAStepBackUnlessTheServiceMadeIt(t *testing.T) {
	versions := []version{{offset: 1, id: 1, millis: at(10), hash: 1},
		{offset: 2, id: 2, millis: at(2), hash: 2}, {offset: 3, id: 1, millis: at(9), hash: 3}}
	j := report{resource: "orders"}
	if j.judgeOrder(versions, nil, nil, never, nil); j.back.n != 1 {
		t.Errorf("%d steps back, want 1", j.back.n)
	}
	j = report{resource: "orders"}
	j.judgeOrder(versions, nil, nil, backTo(at(9)), nil)
	if j.back.n != 0 {
		t.Errorf("%d steps back that the service did not make, want none", j.back.n)
	}
	for is, faults := range map[int]int{9: 0, 10: 1} {
		j, now := report{resource: "orders"}, map[int64]row{1: {"updated_at": time.UnixMilli(at(is))}}
		if j.judgeOrder(versions, nil, nil, never, now); j.back.n != faults {
			t.Errorf("the service has %d: %d steps back, want %d", is, j.back.n, faults)
		}
	}
}

func TestJudgeForgivesOneStepToAChangeOfARowThatWentBack(t *testing.T) {
	versions := []version{{offset: 1, id: 1, millis: at(10), hash: 1},
		{offset: 2, id: 1, millis: at(8), hash: 2}, {offset: 3, id: 1, millis: at(10), hash: 3},
		{offset: 4, id: 1, millis: at(9), hash: 4}}
	for to, faults := range map[int64]int{at(7): 1, at(9): 1, at(11): 2} {
		j := report{resource: "orders"}
		if j.judgeOrder(versions, nil, nil, backTo(to), nil); j.back.n != faults {
			t.Errorf("set back to %s: %d steps back, want %d", instant(to), j.back.n, faults)
		}
	}
}

// backTo says that the service has set every row back to that instant.
func backTo(millis int64) func(int64) []int64 {
	return func(int64) []int64 { return []int64{millis} }
}

func TestJudgeTellsARowUnderAnIDThatIsGivenOutAgainFromAStepBack(t *testing.T) {
	old := version{offset: 1, id: 1, millis: at(10), created: at(1), hash: 1}
	reused := version{offset: 2, id: 1, millis: at(8), created: at(8), hash: 2}
	oldAgain := version{offset: 3, id: 1, millis: at(7), created: at(1), hash: 3}
	for n, versions := range [][]version{{old, reused}, {old, reused, oldAgain}} {
		j := report{resource: "orders"}
		if j.judgeOrder(versions, nil, nil, never, nil); j.back.n != n {
			t.Errorf("%d records: %d steps back, want %d", len(versions), j.back.n, n)
		}
	}
}

func TestJudgeForgivesAStateThatARestoreBroughtBack(t *testing.T) {
	versions := []version{{offset: 1, id: 1, millis: at(10), hash: 1},
		{offset: 2, id: 1, millis: at(12), hash: 2}, {offset: 3, id: 1, millis: at(10), hash: 1}}
	j := report{resource: "orders"}
	j.judgeOrder(versions, nil, nil, backTo(at(10)), nil)
	if j.back.n != 0 || j.twice.n != 0 || j.repeated != 1 {
		t.Errorf("%d steps back and %d twice, want none: %+v", j.back.n, j.twice.n, j)
	}
}

func TestJudgeFindsATombstoneOfARowThatTheServiceHas(t *testing.T) {
	row, gone, mistake := version{id: 1}, version{id: 1, gone: true}, version{id: 1, gone: true, mistake: true}
	for name, c := range map[string]struct {
		versions []version
		deleted  int
	}{
		"a row that is gone":           {[]version{row, gone}, 0},
		"a row that is there":          {[]version{row, mistake}, 1},
		"one that came again":          {[]version{row, mistake, row}, 1},
		"one that the topic never had": {[]version{{id: 2}, mistake}, 0},
		"two tombstones":               {[]version{row, mistake, mistake}, 1},
	} {
		j := report{resource: "orders"}
		if j.judgeDeletes(c.versions); j.deleted.n != c.deleted || j.ok() != (c.deleted == 0) {
			t.Errorf("%s: %d deleted by mistake, expected %d", name, j.deleted.n, c.deleted)
		}
	}
}

func TestJudgeFindsAKeyInTwoPartitions(t *testing.T) {
	j := report{resource: "orders"}
	j.judgeOrder([]version{{offset: 1, id: 1, millis: at(1), hash: 1},
		{partition: 2, offset: 1, id: 1, millis: at(2), hash: 2}}, nil, nil, never, nil)
	if j.broken.n != 1 {
		t.Errorf("%d broken, want 1", j.broken.n)
	}
}

func TestJudgeFindsLostStaleAndInventedRows(t *testing.T) {
	price := big.NewRat(4999, 100)
	good := row{"id": int64(1), "amount": price, "note": nil, "updated_at": time.UnixMilli(at(1)).UTC()}
	for name, c := range map[string]struct {
		change  func(row)
		missing bool
		want    report
	}{
		"the same row": {func(row) {}, false, report{}},
		"a field that differs": {func(r row) { r["amount"] = big.NewRat(4998, 100) }, false,
			report{stale: findings{n: 1}}},
		"a null that was something": {func(r row) { r["note"] = "" }, false, report{stale: findings{n: 1}}},
		"a field that is not there": {func(r row) { delete(r, "note"); r["other"] = nil }, false,
			report{stale: findings{n: 1}}},
		"a field that the service has not": {func(r row) { r["more"] = int64(1) }, false,
			report{stale: findings{n: 1}}},
		"a row that is not there": {func(row) {}, true, report{lost: findings{n: 1}}},
	} {
		published := maps.Clone(good)
		c.change(published)
		newest := map[int64]*record{1: {}}
		if c.missing {
			newest = map[int64]*record{2: {}}
			c.want.extra.n = 1
		}
		j := report{resource: "orders"}
		j.judgeRows(map[int64]row{1: good}, newest, func([]byte) (map[string]any, error) { return published, nil },
			false)
		if j.lost.n != c.want.lost.n || j.stale.n != c.want.stale.n || j.extra.n != c.want.extra.n ||
			j.broken.n != 0 {
			t.Errorf("%s: %+v", name, j)
		}
	}
}

func TestJudgeFindsRowsThatAReplayLeftOut(t *testing.T) {
	rows := map[int64]row{1: {}, 2: {}, 3: {}, 5: {}}
	newest := map[int64]*record{
		1: {version: version{offset: 12, id: 1, millis: at(10)}}, // sent again
		2: {version: version{offset: 5, id: 2, millis: at(10)}},  // not
		3: {version: version{offset: 4, id: 3, millis: at(1)}},   // not asked for
		4: {version: version{offset: 6, id: 4, millis: at(10)}},  // gone from the service
		5: {version: version{offset: 7, id: 5, millis: at(20)}},  // hidden while the clock was back
	}
	x := newExcuses()
	x.steppedBack(time.UnixMilli(at(21)), time.UnixMilli(at(21)).Sub(time.UnixMilli(at(15))))
	replay := asked.Replay{Request: 7, From: time.UnixMilli(at(5)), Ends: []int64{10}}
	for left, omitted := range map[string]int{"": 1, "cancelled": 0} {
		j := report{resource: "orders"}
		over := []asked.Course{{Replay: replay, Result: &asked.Result{Request: 7, Left: left}}}
		if j.judgeReplays(over, rows, newest, x.mayHide); j.omitted.n != omitted {
			t.Errorf("%q: %+v, want %d left out", left, j, omitted)
		}
	}
}

func TestJudgeFindsRequestsThatNobodyCarriesOut(t *testing.T) {
	j := report{resource: "orders"}
	asks := []asked.Ask{{ID: 1, Resource: "orders", Kind: "reset"}, {ID: 2, Resource: "users", Kind: "reset"}}
	if j.judgeRequests(asks, []mark{{}}); j.broken.n != 1 {
		t.Errorf("%+v, want one that was never accepted", j)
	}
}

func TestJudgeFindsWatermarksThatCannotBeTrue(t *testing.T) {
	when, one := time.UnixMilli(at(20)), asked.Mark{Rows: 1}
	back := []mark{{Settled: when, Mark: one}, {Settled: when.Add(-time.Second), Mark: one}}
	j := report{resource: "orders", versions: 1}
	if j.judgeMarks(back, false); j.broken.n != 1 {
		t.Errorf("settled went back: %+v", j)
	}
	j = report{resource: "orders", versions: 1}
	if j.judgeMarks(back, true); j.broken.n != 0 {
		t.Errorf("the service's clock was moved: %+v", j)
	}
	back[1].Replay = &asked.Replay{Request: 0}
	j = report{resource: "orders", versions: 1}
	if j.judgeMarks(back, false); j.broken.n != 0 {
		t.Errorf("a reset takes settled back: %+v", j)
	}
	j = report{resource: "orders", versions: 2}
	if j.judgeMarks(back, false); j.broken.n != 1 {
		t.Errorf("more rows than the watermark knows of: %+v", j)
	}
}

func TestJudgeFindsADeadLetterOfARowThatIsWell(t *testing.T) {
	rows := map[int64]row{1: {}}
	letters := map[string][]byte{"orders/1": {1}, "orders/2": {1}, "orders/00000000000000ff": {1},
		"users/1": {1}}
	j := report{resource: "orders"}
	if j.judgeLetters(letters, rows); j.broken.n != 1 {
		t.Errorf("%+v, want the letter of order 1 alone", j)
	}
}
