package asked

import (
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"
)

// Replay is a replay that a watermark speaks of: of a part, or that a reset has begun.
type Replay struct {
	Request int64     `json:"request"`
	From    time.Time `json:"from"`
	To      time.Time `json:"to"`  // zero if a reset has begun it: without an end
	IDs     []int64   `json:"ids"` // of its only rows, if not nil
	Ends    []int64   `json:"ends"`
	Rows    int64     `json:"rows"`
	Failure string    `json:"failure"`
}

func (r *Replay) isPart() bool { return !r.To.IsZero() }

// Result is the result of a replay. Left is what it left and why, or "".
type Result struct {
	Request int64  `json:"request"`
	Rows    int64  `json:"rows"`
	Left    string `json:"left"`
}

// Course is a replay from the watermark that accepted it to the one with which it was over.
type Course struct {
	Replay
	// Result is nil while it is in hand, or if another reset goes on with it.
	Result *Result
	// Owners wrote the watermarks from its acceptance to its end, in order.
	Owners []string
	over   []int64 // the data topic's ends then, or nil while it is in hand
}

// Version is a record of a row in its topic, at an offset of a partition. Millis is its updated_at.
type Version struct {
	ID, Millis int64
	Partition  int32
	Offset     int64
}

// Courses lists the replays of a resource's watermarks.
func Courses(marks []Mark) (all []Course) {
	for _, m := range marks {
		for _, r := range m.inHand() {
			i := slices.IndexFunc(all, func(c Course) bool { return c.Request == r.Request })
			if i < 0 {
				i, all = len(all), append(all, Course{Replay: r})
			}
			all[i].ownedBy(m.Instance)
		}
		for i := range all {
			if c := &all[i]; c.over == nil && !m.has(c.Request) {
				c.over, c.Result = append([]int64{}, m.Ends...), m.resultOf(c.Request)
				c.ownedBy(m.Instance)
			}
		}
	}
	return all
}

func (c *Course) ownedBy(instance string) {
	if !slices.Contains(c.Owners, instance) {
		c.Owners = append(c.Owners, instance)
	}
}

// Cancelled reports whether its result says that it was cancelled.
func (c *Course) Cancelled() bool { return c.Result != nil && c.Result.Left == "cancelled" }

// Covers reports whether the replay explains that the version at offset first is there again as v: it wants
// the row, was accepted between the two, and was not over before v. So it explains one further copy of each
// version.
func (c *Course) Covers(v Version, first int64) bool {
	p := int(v.Partition)
	return c.wants(v) && p < len(c.Ends) && first < c.Ends[p] && c.Ends[p] <= v.Offset &&
		(p >= len(c.over) || v.Offset < c.over[p])
}

// Covered reports whether one of these replays covers v.
func Covered(all []Course, v Version, first int64) bool {
	return slices.ContainsFunc(all, func(c Course) bool { return c.Covers(v, first) })
}

func (c *Course) wants(v Version) bool {
	return (c.IDs == nil || slices.Contains(c.IDs, v.ID)) && v.Millis >= c.From.UnixMilli() &&
		(!c.isPart() || v.Millis < c.To.UnixMilli())
}

// Omitted returns the rows that it should have published again and has not, if they are more than it says
// that it left. newest are the newest records of the rows that it could meet in the source.
func (c *Course) Omitted(newest iter.Seq[Version]) (rows []Version) {
	if c.Result == nil || c.Cancelled() {
		return nil
	}
	for v := range newest {
		if p := int(v.Partition); c.wants(v) && v.Millis > c.From.UnixMilli() && p < len(c.Ends) &&
			v.Offset < c.Ends[p] {
			rows = append(rows, v)
		}
	}
	if len(rows) <= c.left() {
		return nil
	}
	return rows
}

// left is how many rows its result says that the source did not show as the topic has them.
func (c *Course) left() (n int) {
	text, _, says := strings.Cut(strings.ReplaceAll(c.Result.Left, ",", ""), " that the source does not show")
	if says {
		_, _ = fmt.Sscanf(text, "not published again: %d", &n)
	}
	return n
}
