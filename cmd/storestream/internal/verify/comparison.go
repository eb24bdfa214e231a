package verify

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/storestream/storestream/cmd/storestream/internal/connect"
	"github.com/storestream/storestream/cmd/storestream/internal/ownership"
	"github.com/storestream/storestream/config"
	"github.com/storestream/storestream/internal/health"
	"github.com/storestream/storestream/internal/reconcile"
	"github.com/storestream/storestream/internal/status"
	"github.com/storestream/storestream/internal/terminal"
	"github.com/storestream/storestream/internal/wait"
	"github.com/storestream/storestream/internal/watermark"
	"github.com/storestream/storestream/producer"
	"github.com/storestream/storestream/schemas"
)

const (
	// mostLooks is how often the rows that differ are looked at again.
	mostLooks = 2
	// deliverWithin is how long an instance takes at most from the end of a poll until its rows can be read.
	deliverWithin = 5 * time.Second
	// lookEvery is how often the watermarks are read and the group is asked, while verify waits for polls.
	lookEvery = time.Second
	// silence is how long verify reads or waits without saying so.
	silence = 10 * time.Second
)

// comparison is the comparison of one resource.
type comparison struct {
	cfg      Config
	resource *schemas.Resource
	settings config.Resource
	watch    *producer.Watch
	compare  reconcile.Config
	began    time.Time

	looked  time.Time // when topic and source were last read
	figures reconcile.Report
	found   map[reconcile.Kind][]int64 // the ids of the differences
	strays  int                        // of them have a record in a wrong partition
	stopped int64                      // the last id that was compared, if too many rows differed to go on

	partitions int    // of the topic, when it was last read
	lacks      string // why the topic lacks rows that the watermark covers. Empty if it may hold all

	// The state of the running instance.
	ownership ownership.Resource
	mark      watermark.Watermark
}

// newComparison returns the comparison of r's topic with the source of compare.
func newComparison(c Config, r *schemas.Resource, compare reconcile.Config) *comparison {
	o := &comparison{cfg: c, resource: r, settings: c.Settings.Resources[r.Name],
		watch: producer.NewWatch(c.Cluster), compare: compare, began: time.Now(),
		found: map[reconcile.Kind][]int64{}, mark: watermark.New(r.Name), stopped: math.MaxInt64}
	o.compare.Memory, o.compare.From = int64(c.Settings.Sweep.Memory), math.MinInt64
	o.compare.Scratch = int64(c.Settings.Sweep.Scratch)
	return o
}

// run compares part by part. It takes turn for the first reading of each, which takes most of the memory. The
// rows that differ are looked at again before the next part begins. If more rows differ than one part takes
// in, and still do when they are looked at again, it stops there: the topics differ.
func (o *comparison) run(ctx context.Context, turn chan struct{}) error {
	// Otherwise every row that cannot be decoded would be called stale.
	if err := producer.SameSchemas(ctx, o.cfg.Cluster, o.resource); err != nil {
		return err
	}
	topicID, _ := producer.TopicID(ctx, o.cfg.Cluster, o.resource.Name) // what fails here fails the reading too
	limit, err := producer.MaxRecordBytes(ctx, o.cfg.Cluster, o.topic())
	if err != nil {
		return err
	}
	o.compare.MaxValueBytes = limit - watermark.RowOverhead(o.resource)
	part := reconcile.New(o.compare)
	for number := 1; ; number++ {
		select {
		case turn <- struct{}{}:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		due := time.Tick(silence)
		err := part.First(ctx, func(topicRows, sourceRows int) {
			select {
			case <-due:
				o.cfg.Say(o.resource.Name, fmt.Sprintf("reading part %d: %s of the topic, %s of the service", number,
					terminal.Plural(topicRows, "row"), terminal.Count(sourceRows)))
			default:
			}
		})
		<-turn
		if o.looked = time.Now(); err != nil {
			return err
		}
		if err := o.lookAgain(ctx, part); err != nil {
			return err
		}
		o.figures, o.partitions = part.Report(), part.Partitions()
		for _, d := range part.Differences() {
			if o.found[d.Kind] = append(o.found[d.Kind], d.ID); len(d.Strays) > 0 {
				o.strays++
			}
		}
		_, last := part.Part()
		if part.Suspects() > 0 {
			o.stopped = last // MaxInt64 if it was the last part
		}
		if last == math.MaxInt64 || o.stopped < math.MaxInt64 {
			return o.sameTopic(ctx, topicID)
		}
		part = part.Next()
	}
}

// lookAgain looks again at the rows of a part that differ, each time when the running instance has had the
// time to deliver changes that were under way. If no instance runs, one look is enough.
func (o *comparison) lookAgain(ctx context.Context, part *reconcile.Comparison) error {
	said := ""
	for looks := 0; ; looks++ {
		rows := part.Suspects()
		for {
			if err := o.observe(ctx, rows > 0); err != nil {
				return err
			}
			if rows == 0 || looks == mostLooks || looks > 0 && o.ownership.Abandoned {
				return nil
			}
			what, until := o.waits(time.Now())
			if what == "" {
				break
			}
			if said != what && (until.IsZero() || time.Until(until) > silence) {
				said = what
				text := terminal.Plural(rows, "row") + " different so far, looked at again after " + what
				if !until.IsZero() { // it ends within a second that is not over then
					text += ", by " + until.Add(time.Second).UTC().Format("15:04:05Z") + " at the latest"
				}
				o.cfg.Say(o.resource.Name, text)
			}
			if err := wait.For(ctx, lookEvery); err != nil {
				return err
			}
		}
		if err := part.Look(ctx); err != nil {
			return err
		}
		o.looked = time.Now()
	}
}

// observe looks at the watermark, and at the group too if rows differ. If the group does not answer, the
// known owner stays.
func (o *comparison) observe(ctx context.Context, differ bool) error {
	if differ {
		asking, cancel := context.WithTimeout(ctx, connect.BrokerPatience)
		members, err := producer.Members(asking, o.cfg.Cluster)
		cancel()
		if sharing := errors.Is(err, producer.ErrSharing); err == nil || sharing {
			owners := ownership.ByResource(members)
			o.ownership.Note(owners[o.resource.Name], sharing || len(members) > 0, time.Now())
		}
	}
	_ = o.watch.Look(ctx) // a broker that does not answer is waited for like an instance that does not poll
	if mark, ok := o.watch.Watermarks()[o.resource.Name]; ok {
		o.mark = mark
	}
	return context.Cause(ctx)
}

func (o *comparison) topic() string { return o.cfg.Cluster.Topic(o.resource.Name) }

// sameTopic looks at the end whether the topic is still the one that was read, because equal rows are not
// looked at again. It had the id was before, "" if that is unknown. It also notes why the topic lacks rows
// that were published, as far as Kafka can tell: it was created again since it was filled, or lost its end.
//
// Partitions that were added move keys: each row whose key has moved is missing and looks like another
// program's, and no sweep runs on such a topic. A topic that was created again may have any number of
// partitions.
func (o *comparison) sameTopic(ctx context.Context, was string) error {
	id, err := producer.TopicID(ctx, o.cfg.Cluster, o.resource.Name)
	switch {
	case errors.Is(err, kerr.UnknownTopicOrPartition):
		return err
	case err == nil && id != "" && was != "" && id != was:
		return fmt.Errorf("topic %s was created anew while it was compared: verify it again once an instance has "+
			"filled it from the start (`storestream watermark list`)", o.topic())
	}
	if o.mark.Written > schemas.MinInstant {
		o.lacks, _ = producer.OtherLog(ctx, o.cfg.Cluster, o.mark) // what fails here is not known
	}
	if had := int(o.mark.Partitions); o.lacks == "" && had > 0 && had != o.partitions {
		return producer.OtherPartitions(o.cfg.Cluster, o.mark, o.partitions)
	}
	return nil
}

// waits returns the event that the next look waits for, and the latest end of that wait. The look waits until
// the running instance has had the time to deliver the changes that were under way. waits returns "" if the
// wait is over.
//
// The instance has had the time if a pass that began after the last look is complete. Over REST only some
// passes are complete. So two intervals of one owner and a little more are enough too. While rows are
// deferred, the wait is longer by the overlap, because the instance publishes them an overlap later. The end
// of a handover is not known, so until is zero then.
func (o *comparison) waits(now time.Time) (what string, until time.Time) {
	switch {
	case o.ownership.Abandoned:
		return "", time.Time{}
	case o.ownership.Between():
		return "the next owner's polls, because the resource is being handed over", time.Time{}
	}
	began := o.looked
	if o.ownership.Since.After(began) {
		began = o.ownership.Since
	}
	until = began.Add(2*o.settings.Interval + deliverWithin)
	what = "the next poll"
	if o.mark.Trouble != nil && o.mark.Trouble.Until != nil {
		until = until.Add(o.settings.Overlap)
		what = fmt.Sprintf("rows that the running instance defers, and publishes after the overlap (%s)",
			terminal.Duration(o.settings.Overlap))
	} else if o.mark.AsOf > schemas.InstantOf(o.looked) {
		return "", until
	}
	if now.After(until) {
		return "", until
	}
	return what, until
}

// report returns the result. err is why the resource could not be compared, or nil.
func (o *comparison) report(err error) *Report {
	r := &Report{Resource: o.resource.Name, Source: o.settings.Source, Topic: o.topic(), Verdict: Identical,
		Seconds: math.Round(time.Since(o.began).Seconds()*10) / 10, Notes: []string{}}
	for kind, ids := range map[reconcile.Kind]*[]int64{reconcile.Missing: &r.MissingIDs,
		reconcile.Stale: &r.StaleIDs, reconcile.Extra: &r.ExtraIDs, reconcile.Unknown: &r.UnknownIDs} {
		*ids = append([]int64{}, o.found[kind][:min(mostIDs, len(o.found[kind]))]...)
	}
	if o.mark.AsOf > schemas.MinInstant {
		r.AsOf = &o.mark.AsOf
	}
	if errors.Is(err, kerr.UnknownTopicOrPartition) {
		err = fmt.Errorf("topic %s does not exist: `storestream run` creates and fills it", o.topic())
	}
	if err != nil {
		r.Verdict, r.Error = Unknown, status.FirstLine(err)
		return r
	}
	r.Report = o.figures
	r.Missing, r.Stale = len(o.found[reconcile.Missing]), len(o.found[reconcile.Stale])
	r.Extra, r.Unknown = len(o.found[reconcile.Extra]), len(o.found[reconcile.Unknown])
	o.judge(r)
	return r
}

// judge returns the verdict by the figures, and notes what to know beside them and what to do.
func (o *comparison) judge(r *Report) {
	add := func(to *[]string, so bool, text string) {
		if so {
			*to = append(*to, text)
		}
	}
	var doubts []string // why rows that seem equal may differ, maybe since before the topic was read
	add(&doubts, o.lacks != "", "the topic does not hold all that was published: "+o.lacks+": verify it again "+
		"later. Within a minute, a running instance fills it from the start (`storestream watermark list`)")
	add(&doubts, r.Unknown > 0, fmt.Sprintf("the service showed %s (ids %d) in one reading and not in "+
		"another. If they were deleted meanwhile, another verify does not meet them. If it does, the service "+
		"answers the same question in two ways",
		terminal.Plural(r.Unknown, "row"), r.UnknownIDs[:min(5, len(r.UnknownIDs))]))
	add(&doubts, r.Unread > 0, UnreadBatches(r.Unread))
	switch {
	case r.Missing+r.Stale+r.Extra > 0:
		r.Verdict = Different
		paused := o.mark.Pause.Lasts(schemas.InstantOf(time.Now()))
		kept := r.Extra > 0 && o.cfg.Settings.Sweep.Deletes == config.Report
		add(&r.Notes, !paused && o.lacks == "" && (!kept || r.Missing+r.Stale > 0), "`storestream sweep "+
			r.Resource+"` asks the running instance to repair the topic")
		add(&r.Notes, o.lacks == "" && kept, "extra rows stay, because sweep.deletes is report: `storestream "+
			"erase "+r.Resource+" ID` deletes single ones")
		add(&r.Notes, paused, "it is paused, so rows that changed since then are differences: verify it again "+
			"after `storestream resume "+r.Resource+"`")
		add(&r.Notes, o.ownership.Abandoned, "no instance polls it: rows that changed since the last one did are "+
			"differences")
		add(&r.Notes, o.stopped < math.MaxInt64, fmt.Sprintf("so many rows differ that it stopped: rows above id "+
			"%d were not compared", o.stopped))
		add(&r.Notes, o.strays > 0, terminal.Plural(o.strays, "row")+" of those that differ: another program "+
			"wrote a record into a partition where its key does not belong, and consumers may take it for the row")
		r.Notes = append(r.Notes, doubts...)
	case len(doubts) > 0:
		r.Verdict, r.Error = Unknown, strings.Join(doubts, ". ")
	case health.TooManyLetters(r.DeadLetters, int64(r.TopicRows)):
		r.Verdict = Incomplete
	}
	add(&r.Notes, r.DeadLetters > 0, terminal.Plural(r.DeadLetters, "row")+" cannot be published, see the dead "+
		"letters")
	add(&r.Notes, r.Foreign > 0, terminal.Plural(r.Foreign, "record")+" in the topic with a key that is no "+
		"row's: no row differs by it, but another program wrote it, and consumers that decode keys may stop there")
	add(&r.Notes, r.Early > 0, fmt.Sprintf("%s of the topic from before resources.%s.start: not compared",
		terminal.Plural(r.Early, "row"), r.Resource))
}

// UnreadBatches returns the text about n batches of a topic that were stepped over.
func UnreadBatches(n int) string {
	return fmt.Sprintf("the topic has batches of another program that are too large to be read (%d), and these "+
		"may hold any row's key: docs/security.md says what to do, \"A batch that was stepped over\"", n)
}
