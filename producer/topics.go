package producer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"go.uber.org/zap"

	"github.com/storestream/storestream/schemas"
)

// TopicSpec is how a topic must be, and how we create it.
type TopicSpec struct {
	Name       string
	Partitions int32
	Replicas   int16 // -1 for the broker's default
	Settings   map[string]string
	c          *Cluster
}

// RefusedError blocks a resource until a person has changed something in Kafka: storestream does not change
// topics that it finds.
type RefusedError struct {
	Topic    string // "" if it is about the brokers
	Setting  string // a topic setting, or what else is wrong
	Found    string
	Expected string
	Do       string // the command or step that puts it right
	// MayPass is set if a broker that is only starting answers the same. Then the caller may go on waiting.
	MayPass bool
	// Unknown is set if the brokers do not show the setting. Then it is a concern and refuses nothing.
	Unknown bool
}

func (e *RefusedError) Error() string {
	text := fmt.Sprintf("topic %s: %s is %s, expected %s: %s", e.Topic, e.Setting, e.Found, e.Expected, e.Do)
	return strings.TrimPrefix(text, "topic : ")
}

// Refused reports that err is a *RefusedError that does not pass by itself.
func Refused(err error) bool {
	refused, ok := errors.AsType[*RefusedError](err)
	return ok && !refused.MayPass
}

const (
	week     = 7 * 24 * time.Hour
	tenYears = 10 * 365 * 24 * 3_600_000 // in ms
)

// The topic settings that decide how long deleted values and their tombstones stay.
const (
	compactionLag = "max.compaction.lag.ms"
	tombstoneStay = "delete.retention.ms"
)

// newSpec returns the spec of a topic. Later settings count, and those of the configuration before all.
func newSpec(c *Cluster, name string, settings ...map[string]string) TopicSpec {
	s := TopicSpec{name, c.cfg.Partitions, c.cfg.ReplicationFactor,
		map[string]string{"cleanup.policy": "compact", "message.timestamp.type": "CreateTime"}, c}
	for _, more := range append(settings, c.cfg.TopicSettings) {
		maps.Copy(s.Settings, more)
	}
	return s
}

// TopicSpecs returns the topics that all resources share, and behind them those of resources.
func TopicSpecs(c *Cluster, resources ...string) []TopicSpec {
	// A topic with personal data keeps deleted values for a limited time. Without this a broker compacts a
	// partition when half of it is old, so a deleted value stays for as long as little else changes.
	erasing := map[string]string{}
	if c.cfg.EraseWithin > 0 {
		erasing[compactionLag] = millis(c.cfg.EraseWithin)
	}

	// A takeover reads the topics of state in full. Watermarks are a few hundred bytes each but come every
	// second, and the active segment is never compacted: with the defaults a takeover would read half a
	// gigabyte. Segments of ten minutes and 1 MiB, and a low dirty ratio, keep it at a few megabytes.
	state := map[string]string{"segment.ms": millis(10 * time.Minute), "segment.bytes": strconv.Itoa(1 << 20),
		"min.cleanable.dirty.ratio": "0.01"}

	// The topic of watermarks keeps the markers that end transactions for ten minutes. Compaction removes the
	// old watermarks soon, but it keeps each one's marker, 78 bytes, until delete.retention.ms has passed since
	// then. With Kafka's day a takeover would read 0.7 MB of them for each resource without changes, and 68 MB
	// for one that changes ten times a second. The day is for slow readers, and a reader of watermarks takes
	// seconds. (Watermarks are never deleted. Dead letters are, and consumers may follow them slowly, so they
	// keep the day.)
	marks := map[string]string{tombstoneStay: millis(10 * time.Minute)}

	// A data topic ends its segments early, because the active segment is never compacted: its end decides how
	// long replaced versions stay, personal data among them. The default segment.bytes of 1 GiB would be some
	// 24 million rows a partition; 64 MiB are 1.5 million. If a partition never has so many, its segments end
	// after a week.
	//
	// Segments end by the time that records carry, and a row's is its updated_at. That would make a segment of
	// each week of a first load's history; but the record that ends a transaction carries the broker's clock.
	// The first one ends the segment that began with old rows. The next segment begins with that record, and to
	// it all old rows are early. So a first load costs one more small segment for each 64 MiB
	// (docs/performance.md has the measurement).
	//
	// A tombstone stays for a week, so that a consumer that was away for as long meets it.
	data := map[string]string{"segment.ms": millis(week), "segment.bytes": strconv.Itoa(64 << 20),
		tombstoneStay: millis(week)}

	specs := []TopicSpec{newSpec(c, c.Watermarks(), state, marks), newSpec(c, c.DeadLetters(), state, erasing),
		newSpec(c, c.requestsTopic(), map[string]string{"retention.ms": millis(week)})}
	for i := range specs {
		specs[i].Partitions = 1 // the state partition
	}
	// By these Kafka's own tools show who has which resource (sharing). A topic with fewer serves as well.
	specs[0].Partitions = int32(len(schemas.Names()))
	specs[2].Settings["cleanup.policy"] = "delete"
	for _, resource := range resources {
		specs = append(specs, newSpec(c, c.Topic(resource), data, erasing))
	}
	return specs
}

func millis(d time.Duration) string { return strconv.FormatInt(d.Milliseconds(), 10) }

// EnsureTopics creates the missing topics of the resources, and those that all resources share. If another
// program made a topic, it leaves the topic as it is, and reads its settings. For each topic that would
// lose data the error holds a *RefusedError for the first such setting.
func EnsureTopics(ctx context.Context, c *Cluster, resources ...string) error {
	var refused []error
	for _, spec := range TopicSpecs(c, resources...) {
		_, err := c.describe(ctx, spec.Name)
		if errors.Is(err, kerr.UnknownTopicOrPartition) {
			if err = spec.create(ctx, c.admin.CreateTopics); err == nil {
				c.log.Info("created topic", zap.String("topic", spec.Name), zap.Int32("partitions", spec.Partitions),
					zap.Any("settings", spec.Settings))
				err = c.awaitLeaders(ctx, spec.Name)
			}
		}
		if err != nil {
			return err
		}
		settings, err := c.settings(ctx, spec.Name)
		if err != nil {
			return err
		}
		if refusal, _ := spec.judge(settings); refusal != nil {
			refused = append(refused, refusal)
		}
	}
	return errors.Join(refused...)
}

// create makes the topic by one of kadm.Client's functions: CreateTopics, or ValidateCreateTopics, which only
// asks the broker whether it would. Somebody else may make the topic at the same moment.
func (s TopicSpec) create(ctx context.Context,
	by func(context.Context, int32, int16, map[string]*string, ...string) (kadm.CreateTopicResponses, error),
) error {
	configs := make(map[string]*string)
	for key, value := range s.Settings {
		configs[key] = &value
	}
	answer, err := by(ctx, s.Partitions, s.Replicas, configs, s.Name)
	made, missing := answer.On(s.Name, nil)
	err = cmp.Or(err, missing, made.Err)
	if err == nil || errors.Is(err, kerr.TopicAlreadyExists) {
		return nil
	}
	person := []error{kerr.InvalidReplicationFactor, kerr.PolicyViolation, kerr.InvalidConfig,
		kerr.TopicAuthorizationFailed, kerr.ClusterAuthorizationFailed}
	if !slices.ContainsFunc(person, func(code error) bool { return errors.Is(err, code) }) {
		return fmt.Errorf("creating topic %s: %w (%s)", s.Name, err, made.ErrMessage)
	}
	return &RefusedError{Topic: s.Name, Setting: "its creation",
		Found: fmt.Sprintf("refused by the broker (%v %s)", err, made.ErrMessage),
		Expected: fmt.Sprintf("%d partitions, replication factor %d, settings %v", s.Partitions, s.Replicas,
			s.Settings),
		Do: "set kafka.replication_factor and kafka.topic_settings to what the brokers accept (many managed ones " +
			"want segment.bytes=52428800 or more), allow this user to create topics, or create it like that",
		// Too few brokers for the replicas may be brokers that are only starting: a controller calls them fenced
		// until their first heartbeats have come.
		MayPass: errors.Is(err, kerr.InvalidReplicationFactor)}
}

// judge compares a topic's settings with what storestream needs. refused is the first by which the topic
// would lose or spoil data, or nil. concerns only cost something: they are left to the person who made the
// topic. A setting that the brokers do not show is unknown, and one of the concerns. A limit that they do not
// show, or that is negative, counts as none.
func (s TopicSpec) judge(found map[string]string) (refused *RefusedError, concerns []*RefusedError) {
	unknown := slices.DeleteFunc([]string{"cleanup.policy", "message.timestamp.type", "retention.ms",
		compactionLag, tombstoneStay}, func(key string) bool { return found[key] != "" || s.Settings[key] == "" })
	if len(unknown) > 0 {
		concerns = append(concerns, &RefusedError{Topic: s.Name, Setting: strings.Join(unknown, ", "),
			Found: "not shown by the brokers", Expected: fmt.Sprintf("as in %v", s.Settings), Unknown: true,
			Do: "compare it in the brokers' own console, or grant DescribeConfigs if this user lacks it"})
	}
	for _, key := range []string{"cleanup.policy", "message.timestamp.type"} {
		// compact,delete loses rows that did not change for the retention time. LogAppendTime loses the record
		// times by which a takeover finds the rows that were published lately.
		if want := s.Settings[key]; found[key] != want && found[key] != "" {
			return s.refusal(key, found[key], want, want), nil
		}
	}
	number := func(settings map[string]string, key string, unset int64) int64 {
		n, err := strconv.ParseInt(cmp.Or(settings[key], strconv.FormatInt(unset, 10)), 10, 64)
		if err != nil || n < 0 {
			return math.MaxInt64
		}
		return n
	}
	const (
		years   = "records carry the rows' updated_at"
		noLimit = "9223372036854775807"
	)
	for _, limit := range []struct {
		key           string
		least, most   int64
		refuses       bool
		expected, why string
	}{
		{"message.timestamp.before.max.ms", tenYears, math.MaxInt64, true, noLimit, years},
		{"message.timestamp.difference.max.ms", tenYears, math.MaxInt64, true, noLimit, years},
		{"retention.ms", min(number(s.Settings, "retention.ms", 0), week.Milliseconds()), math.MaxInt64, true,
			s.Settings["retention.ms"], "or more"},
		{"max.message.bytes", smallRecords, math.MaxInt64, false, "1048588", "a larger row becomes a dead letter"},
		{compactionLag, 0, number(s.Settings, compactionLag, math.MaxInt64), false, s.Settings[compactionLag],
			"kafka.erase_within: it may keep for longer what was deleted"},
		{tombstoneStay, number(s.Settings, tombstoneStay, 0), math.MaxInt64, false, s.Settings[tombstoneStay],
			"a consumer that is away for longer may miss a deletion"},
	} {
		if have := number(found, limit.key, limit.most); have >= limit.least && have <= limit.most {
			continue
		}
		wrong := s.refusal(limit.key, found[limit.key], limit.expected+" ("+limit.why+")", limit.expected)
		if limit.refuses {
			return wrong, nil
		}
		concerns = append(concerns, wrong)
	}
	return nil, concerns
}

// smallRecords is a max.message.bytes under which ordinary rows become dead letters.
const smallRecords = 100 << 10

// refusal is that of a setting, which has to be value.
func (s TopicSpec) refusal(setting, found, expected, value string) *RefusedError {
	return &RefusedError{Topic: s.Name, Setting: setting, Found: found, Expected: expected,
		Do: s.c.Tool("kafka-configs.sh", "--alter", "--topic", s.Name, "--add-config", setting+"="+value)}
}
