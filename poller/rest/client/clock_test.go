package client

import (
	"net/http"
	"strconv"
	"testing"
	"time"

	"github.com/storestream/storestream/schemas"
	"go.uber.org/zap"
)

var noon = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

// hears lets a clock hear one answer a second for an hour. date is how far the Date of the answer in that
// second is off ours; old gets the seconds in which the answer was taken for one out of a cache.
func hears(date func(second int) time.Duration) (c *Clock, old []int) {
	now := noon
	c = newClock(func() time.Time { return now }, zap.NewNop())
	for second := range 3600 {
		now = noon.Add(time.Duration(second) * time.Second)
		sent := now
		now = now.Add(100 * time.Millisecond)
		h := http.Header{"Date": {now.Add(date(second)).Format(http.TimeFormat)}}
		if _, age := c.observe(h, sent); age > 0 {
			old = append(old, second)
		}
	}
	return c, old
}

func TestAClockThatWasSetIsToldFromAnAnswerOutOfACache(t *testing.T) {
	frozen := func(second, from int) time.Duration { // the answer of second from, again
		return -time.Duration(second-from) * time.Second
	}
	for name, test := range map[string]struct {
		date        func(second int) time.Duration
		first, last int // of the answers taken for old; -1: none is
		times       int
		before      bool // in the end it shows a time before noon
	}{
		"right":                             {func(int) time.Duration { return 0 }, -1, -1, 0, false},
		"three hours ahead, and always was": {func(int) time.Duration { return 3 * time.Hour }, -1, -1, 0, false},
		"slow": {func(second int) time.Duration { return -time.Duration(second) * 10 * time.Millisecond },
			-1, -1, 0, false},
		"fast": {func(second int) time.Duration { return time.Duration(second) * 10 * time.Millisecond },
			-1, -1, 0, false},
		"two servers 20 s apart": {func(second int) time.Duration {
			return time.Duration(second%2) * 20 * time.Second
		}, -1, -1, 0, false},
		"two servers a minute apart": {func(second int) time.Duration {
			return -time.Duration(second%2) * time.Minute
		}, 1, 9, 5, false},
		"set back by three hours": {func(second int) time.Duration {
			if second < 600 {
				return 0
			}
			return -3 * time.Hour
		}, 600, 609, 10, true},
		"set ahead by three hours": {func(second int) time.Duration {
			if second < 600 {
				return 0
			}
			return 3 * time.Hour
		}, -1, -1, 0, false},
		"one Date three hours back": {func(second int) time.Duration {
			if second != 600 {
				return 0
			}
			return -3 * time.Hour
		}, 600, 600, 1, false},
		"one Date three hours ahead": {func(second int) time.Duration {
			if second != 600 {
				return 0
			}
			return 3 * time.Hour
		}, -1, -1, 0, false},
		"the first Date three hours ahead": {func(second int) time.Duration {
			if second > 0 {
				return 0
			}
			return 3 * time.Hour
		}, 1, 10, 10, false},
		"every third out of a cache that keeps answers for five minutes": {func(second int) time.Duration {
			if second%3 > 0 {
				return 0
			}
			return frozen(second, second/300*300)
		}, 33, 3597, 1068, false},
		"nothing but an answer out of a cache, from the tenth minute on": {func(second int) time.Duration {
			if second < 600 {
				return 0
			}
			return frozen(second, 600)
		}, 632, 3599, 2968, false},
	} {
		t.Run(name, func(t *testing.T) {
			c, old := hears(test.date)
			if test.first < 0 && len(old) > 0 || test.first >= 0 && (len(old) != test.times ||
				old[0] != test.first || old[len(old)-1] != test.last) {
				t.Errorf("%d answers were taken for old: %v", len(old), old)
			}
			if now, before := c.Before(schemas.InstantOf(noon)); before != test.before {
				t.Errorf("it shows %s", now)
			}
		})
	}
}

func TestAgeSaysHowLongBeforeItsRequestAnAnswerWasMade(t *testing.T) {
	for _, test := range []struct {
		age  string
		took time.Duration
		want time.Duration
	}{
		{"", 0, 0},
		{"0", 0, 0},
		{"1", 100 * time.Millisecond, 0}, // rounded
		{"2", 100 * time.Millisecond, 2 * time.Second},
		{"5", 5 * time.Second, 0}, // a cache counts the time that it waited for the service
		{"600", 0, 10 * time.Minute},
		{" 600 , 5", 0, 10 * time.Minute},
		{"99999999999999", 0, maxAge},
		{"-600", 0, 0},
		{"old", 0, 0},
	} {
		for _, dated := range []bool{true, false} {
			now := noon
			c := newClock(func() time.Time { return now }, zap.NewNop())
			for range 2 { // the first Date is believed whatever it is
				sent := now
				now = now.Add(test.took)
				h := http.Header{"Age": {test.age}}
				if dated {
					h.Set("Date", now.Add(-test.want).Format(http.TimeFormat))
				}
				if date, age := c.observe(h, sent); age != test.want || (date == schemas.MinInstant) == dated {
					t.Errorf("Age %s after %s: %s, want %s", strconv.Quote(test.age), test.took, age, test.want)
				}
			}
			if skew, _ := c.gap(); skew.Abs() > 3*time.Second {
				t.Errorf("Age %s: the clocks are said to be %s apart", strconv.Quote(test.age), skew)
			}
		}
	}
}
