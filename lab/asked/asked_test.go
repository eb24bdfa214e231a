package asked

import (
	"slices"
	"testing"
	"time"
)

func at(second int) time.Time { return time.Date(2026, 11, 20, 12, 0, second, 0, time.UTC) }

// part is a replay of the rows from one second on and before another.
func part(request int64, from, to int, ends ...int64) Replay {
	return Replay{Request: request, From: at(from), To: at(to), Ends: ends}
}

func TestAReplayCoversOneFurtherCopyOfEachVersionThatItWants(t *testing.T) {
	ids := part(1, 0, 60, 10)
	ids.IDs = []int64{2, 3}
	since := Replay{Request: 1, From: at(5), Ends: []int64{10}}
	for name, c := range map[string]struct {
		replay       Replay
		over         []int64
		first, again int64
		covers       bool
	}{
		"of its range":               {part(1, 5, 15, 10), nil, 3, 12, true},
		"from the row's instant":     {part(1, 10, 15, 10), nil, 3, 12, true},
		"up to the row's instant":    {part(1, 5, 10, 10), nil, 3, 12, false},
		"of later rows":              {part(1, 11, 15, 10), nil, 3, 12, false},
		"of other rows":              {ids, nil, 3, 12, false},
		"of a reset":                 {since, nil, 3, 12, true},
		"accepted before both":       {part(1, 5, 15, 3), nil, 3, 12, false},
		"accepted after both":        {part(1, 5, 15, 13), nil, 3, 12, false},
		"over before the second":     {part(1, 5, 15, 10), []int64{12}, 3, 12, false},
		"over behind the second":     {part(1, 5, 15, 10), []int64{13}, 3, 12, true},
		"of fewer partitions":        {part(1, 5, 15), nil, 3, 12, false},
		"the third copy, of one":     {part(1, 5, 15, 10), nil, 10, 12, false},
		"at the offset where it was": {part(1, 5, 15, 10), nil, 3, 10, true},
	} {
		course := Course{Replay: c.replay, over: c.over}
		v := Version{ID: 1, Millis: at(10).UnixMilli(), Offset: c.again}
		if got := course.Covers(v, c.first); got != c.covers {
			t.Errorf("%s: covers %v, want %v", name, got, c.covers)
		}
	}
}

func TestACourseEndsWithTheWatermarkThatLacksTheReplay(t *testing.T) {
	first, second := Replay{Request: 2, From: at(5), Ends: []int64{10}},
		Replay{Request: 4, From: at(3), Ends: []int64{20}}
	marks := []Mark{
		{Instance: "a"},
		{Instance: "a", Parts: []Replay{part(1, 0, 9, 5), part(3, 0, 9, 7)}, Ends: []int64{8}},
		{Instance: "b", Parts: []Replay{part(3, 0, 9, 7)}, Replay: &first, Ends: []int64{14},
			Results: []Result{{Request: 1}}},
		{Instance: "b", Parts: []Replay{part(3, 0, 9, 7)}, Replay: &second, Ends: []int64{24},
			Results: []Result{{Request: 1}}},
		{Instance: "b", Ends: []int64{25}, Results: []Result{{Request: 4, Left: "cancelled"}}},
	}
	for i, want := range []struct {
		request   int64
		over      int64
		result    bool
		cancelled bool
		owners    []string
	}{
		{1, 14, true, false, []string{"a", "b"}},
		{3, 25, false, false, []string{"a", "b"}}, // cancelled behind the other
		{2, 24, false, false, []string{"b"}},      // the later reset goes on with it
		{4, 25, true, true, []string{"b"}},
	} {
		c := Courses(marks)[i]
		if c.Request != want.request || c.over[0] != want.over || (c.Result != nil) != want.result ||
			c.Cancelled() != want.cancelled || !slices.Equal(c.Owners, want.owners) {
			t.Errorf("%+v, want %+v", c, want)
		}
	}
}

func TestRowsThatAReplayHasLeftOutAreOmittedUnlessItSaysSo(t *testing.T) {
	newest := []Version{
		{ID: 1, Millis: at(10).UnixMilli(), Offset: 12}, // sent again
		{ID: 2, Millis: at(10).UnixMilli(), Offset: 5},
		{ID: 3, Millis: at(1).UnixMilli(), Offset: 4}, // not asked for
		{ID: 4, Millis: at(11).UnixMilli(), Offset: 6},
	}
	for left, want := range map[string]int{
		"": 2, "cancelled": 0,
		"not published again: 1 row that the source does not show as the topic has them. Polls ...":      2,
		"not published again: 2 rows that the source does not show as the topic has them. Polls ...":     0,
		"not published again: 1,002 rows that the source does not show as the topic has them. Polls ...": 0,
		"2 rows that the topic does not have": 2,
	} {
		c := Course{Replay: part(7, 5, 60, 10), Result: &Result{Request: 7, Left: left}}
		if got := c.Omitted(slices.Values(newest)); len(got) != want {
			t.Errorf("%q: %v, want %d rows", left, got, want)
		}
	}
}

func TestRequestsThatTheWatermarksContradictAreFound(t *testing.T) {
	paused, until := &Pause{}, &Pause{Until: at(30)}
	one := part(1, 0, 9, 5)
	for name, c := range map[string]struct {
		kinds []string // the requests, from 0 on
		marks []Mark
		wrong int
	}{
		"carried out": {[]string{"replay"}, []Mark{{Request: 0, Parts: []Replay{part(0, 0, 9)}},
			{Request: 0, Rows: 3, Results: []Result{{Request: 0}}}}, 0},
		"never accepted":            {[]string{"replay"}, []Mark{{Request: -1}}, 1},
		"accepted without a replay": {[]string{"replay"}, []Mark{{Request: 0}}, 1},
		"accepted without a reset":  {[]string{"reset"}, []Mark{{Request: 0, Parts: []Replay{one}}}, 1},
		"cancelled at once":         {[]string{"replay", "cancel"}, []Mark{{Request: 1}}, 0},
		"cancelled before it":       {[]string{"cancel", "replay"}, []Mark{{Request: 1}}, 1},
		"refused": {[]string{"replay"}, []Mark{{Request: 0,
			Parts: slices.Repeat([]Replay{one}, mostParts)}}, 0},
		"lost": {[]string{"replay", "sweep"}, []Mark{{Request: 0, Parts: []Replay{part(0, 0, 9)}},
			{Request: 1}}, 1},
		"cancelled": {[]string{"replay", "cancel"}, []Mark{{Request: 0, Parts: []Replay{part(0, 0, 9)}},
			{Request: 1, Results: []Result{{Request: 0, Left: "cancelled"}}}}, 0},
		"cancelled without a result": {[]string{"replay", "cancel"}, []Mark{
			{Request: 0, Parts: []Replay{part(0, 0, 9)}}, {Request: 1}}, 1},
		"a reset that a later one takes over": {[]string{"reset", "reset"}, []Mark{
			{Request: 0, Replay: &Replay{Request: 0}}, {Request: 1, Replay: &Replay{Request: 1}}}, 0},
		"a reset that is lost": {[]string{"reset", "sweep"}, []Mark{
			{Request: 0, Replay: &Replay{Request: 0}}, {Request: 1}}, 1},
		"a pause": {[]string{"pause", "resume"}, []Mark{{Request: 0, Pause: paused, Rows: 3},
			{Request: 0, Pause: paused, Rows: 3}, {Request: 1, Rows: 3}, {Request: 1, Rows: 9}}, 0},
		"accepted without a pause": {[]string{"pause"}, []Mark{{Request: 0}}, 1},
		"resumed at once":          {[]string{"pause", "resume"}, []Mark{{Request: 1}}, 0},
		"rows in a pause": {[]string{"pause"}, []Mark{{Request: 0, Pause: paused, Rows: 3},
			{Request: 0, Pause: paused, Rows: 4}}, 1},
		"rows with the end of a pause": {[]string{"pause", "resume"}, []Mark{
			{Request: 0, Pause: paused, Rows: 3}, {Request: 1, Rows: 4}}, 1},
		"a pause that is lost": {[]string{"pause", "sweep"}, []Mark{{Request: 0, Pause: paused},
			{Request: 1}}, 1},
		"a pause that ends by itself": {[]string{"pause"}, []Mark{
			{Request: 0, Pause: until, Written: at(1)}, {Request: 0, Pause: until, Written: at(29)},
			{Request: 0, Written: at(30)}, {Request: 0, Written: at(31), Rows: 3}}, 0},
		"a pause that ends too early": {[]string{"pause"}, []Mark{
			{Request: 0, Pause: until, Written: at(1)}, {Request: 0, Written: at(29)}}, 1},
	} {
		var asks []Ask
		for i, kind := range c.kinds {
			asks = append(asks, Ask{ID: int64(i), Kind: kind})
		}
		if got := Wrong(asks, c.marks); len(got) != c.wrong {
			t.Errorf("%s: %q, want %d", name, got, c.wrong)
		}
	}
}
