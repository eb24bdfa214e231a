package producer

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"go.uber.org/zap"

	"github.com/storestream/storestream/internal/wait"
	"github.com/storestream/storestream/internal/watermark"
	"github.com/storestream/storestream/schemas"
)

// Requests are what the command line has asked for in the last seven days, of any resource: the topic of
// requests, read from its start by one goroutine for the whole process. The first CatchUp starts it.
//
// An offset is the id of a request in one topic only. Somebody may delete the topic, and in the one that is
// made in its place offsets begin again at 0. So a request has an id of its own as well, its UID. A watermark
// that names a request which the topic should hold, and does not, comes from another topic: then all requests
// in this one are new (After).
type Requests struct {
	c *Cluster

	start   func() // the reading goroutine, once
	stop    context.CancelFunc
	running sync.WaitGroup

	mu       sync.Mutex
	topicID  [16]byte // of the topic that is read; zero: not known
	first    int64    // the offset where the topic began when reading began
	at       int64    // the next offset to read
	caughtUp bool     // at has been at the topic's end once
	// moved is closed, and made anew, when at changes; changed when a request arrives.
	moved, changed chan struct{}
	all            []watermark.Request // by ID, the newest mostRequests
}

// mostRequests bounds what somebody who floods the topic can have every instance keep in memory: 20 MB, for
// package watermark bounds each request. Sweeping five resources every two hours makes 420 requests in seven
// days.
const mostRequests = 5000

func newRequests(c *Cluster) *Requests {
	ctx, cancel := context.WithCancel(context.Background())
	q := &Requests{c: c, stop: cancel, moved: make(chan struct{}), changed: make(chan struct{})}
	q.start = sync.OnceFunc(func() { q.running.Go(func() { q.run(ctx) }) })
	return q
}

// Ask writes a request, and returns it with the ID and UID that it got. It returns when the brokers have it,
// not when it is carried out.
func (q *Requests) Ask(ctx context.Context, request watermark.Request) (watermark.Request, error) {
	if err := EnsureTopics(ctx, q.c); err != nil {
		return request, err
	}
	request.UID = newUID()
	value, err := json.Marshal(request)
	if err != nil {
		return request, fmt.Errorf("request for %s: %w", request.Resource, err)
	}
	if _, err := watermark.DecodeRequest(request.Resource, 0, value); err != nil {
		return request, err // an owner would skip it
	}
	record := &kgo.Record{Topic: q.c.requestsTopic(), Key: []byte(request.Resource), Value: value}
	if err := q.c.cl.ProduceSync(ctx, record).FirstErr(); err != nil {
		return request, fmt.Errorf("writing a request to topic %s: %w", record.Topic, err)
	}
	request.Topic, request.ID = record.Topic, record.Offset
	return request, nil
}

// newUID is a random UUID (version 4).
func newUID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

// CatchUp waits until every request that the topic holds now has been read. A successor that looked earlier
// would miss what was asked of its predecessor a moment ago.
func (q *Requests) CatchUp(ctx context.Context) error {
	q.start()
	topic, err := q.c.meta.describe(ctx, q.c.requestsTopic(), true)
	if err != nil {
		return err
	}
	ends, err := q.c.meta.offsets(ctx, topic.name, q.c.admin.ListEndOffsets)
	if err != nil {
		return err
	}
	for {
		q.mu.Lock()
		reached, moved := q.caughtUp && q.at >= ends[0] && !topic.isAnother(q.topicID), q.moved
		q.mu.Unlock()
		if reached {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("reading the requests up to offset %d: %w", ends[0], context.Cause(ctx))
		case <-moved:
		}
	}
}

// After returns the requests for resource after the one with this id and uid, in order; -1 is before the
// first. Where that one is from another topic all are returned. None is while the topic is being read: the
// last would hide those before it.
func (q *Requests) After(resource string, id int64, uid string) []watermark.Request {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.caughtUp {
		return nil
	}
	if q.elsewhere(resource, id, uid) {
		id = -1
	}
	var after []watermark.Request
	for _, request := range q.all[q.index(id+1):] {
		if request.Resource == resource {
			after = append(after, request)
		}
	}
	return after
}

// index is where the first request with this id or a later one stands.
func (q *Requests) index(id int64) int {
	at, _ := slices.BinarySearchFunc(q.all, id,
		func(r watermark.Request, id int64) int { return cmp.Compare(r.ID, id) })
	return at
}

// elsewhere says that the request with this id and uid is none of this topic, which was read: it ends before
// the id, or something else stands there. A uid that is unknown may be any: requests and watermarks of before
// 2026-11-22 have none. What lies before the first offset was deleted after its seven days, or is no longer
// kept, and says nothing.
func (q *Requests) elsewhere(resource string, id int64, uid string) bool {
	if id < q.first || id >= q.at {
		return id >= q.at
	}
	i := q.index(id)
	if i == len(q.all) {
		return true
	}
	at := q.all[i]
	return at.ID != id || at.Resource != resource || uid != "" && uid != at.UID
}

// Changed is closed when the next request arrives, for whichever resource. Ask for it before After, or one
// can come between.
func (q *Requests) Changed() <-chan struct{} {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.changed
}

func (q *Requests) close() {
	q.stop()
	q.running.Wait()
}

// run reads the topic until ctx ends, and begins again after whatever fails.
func (q *Requests) run(ctx context.Context) {
	// A client of its own, because the reader lets the broker wait for two seconds (see logReader).
	cl, err := q.c.client()
	if err != nil {
		q.c.log.Error("requests cannot be read", zap.Error(err)) // the options have made a client before
		return
	}
	defer cl.Close()
	said := ""
	for ctx.Err() == nil {
		err := q.follow(ctx, cl)
		if err == nil || ctx.Err() != nil {
			continue
		}
		if !passing(err) {
			q.forget()
		}
		if text := err.Error(); text != said && !errors.Is(err, kerr.UnknownTopicOrPartition) {
			said = text
			q.c.log.Warn("requests cannot be read, trying again", zap.Error(err))
		}
		_ = wait.For(ctx, time.Second)
	}
}

// forget begins with the first offset again: the topic may no longer be the one that was read.
func (q *Requests) forget() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.topicID, q.first, q.at, q.caughtUp = [16]byte{}, 0, 0, false
	q.all = nil
}

func (q *Requests) follow(ctx context.Context, cl *kgo.Client) error {
	topic, err := q.c.meta.describe(ctx, q.c.requestsTopic(), true)
	if err != nil {
		return err
	}
	spans, err := q.c.meta.toHighWatermark(ctx, topic.name)
	if err != nil {
		return err
	}
	end := spans[0].to
	q.begin(topic, spans[0])
	reader := logReader{c: q.c, cl: cl, topic: topic.name, id: topic.id, span: span{to: forEver}, at: q.at,
		fetchWait: 2 * time.Second, turn: new(sync.Mutex)}
	return reader.run(ctx, func(records []*kgo.Record) error {
		q.add(records, reader.at, end)
		return nil
	})
}

// begin prepares for reading a topic that holds all. Where it is another than the one that was read, or lost
// its end, reading begins with its first offset.
func (q *Requests) begin(topic topicInfo, all span) {
	if topic.isAnother(q.topicID) || all.to < q.at {
		q.forget()
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.topicID = topic.id
	if q.at == 0 {
		q.first = all.from
	}
	q.move(max(q.at, all.from), all.to)
}

// move notes that everything before at was read. end is where the topic ended when reading began. The caller
// holds q.mu.
func (q *Requests) move(at, end int64) {
	q.at = at
	close(q.moved)
	q.moved = make(chan struct{})
	if !q.caughtUp && at >= end {
		q.caughtUp = true
		q.tell()
	}
}

// tell wakes those who wait for a request. The caller holds q.mu.
func (q *Requests) tell() {
	close(q.changed)
	q.changed = make(chan struct{})
}

// add takes in records, after which the reader stands at at. It does so at once: an owner that accepted the
// first ones before at was known would have a watermark that names a request behind at (elsewhere). It skips
// what is not a request that we can carry out: anybody can write to the topic, and one bad record must not
// stop the good ones behind it.
func (q *Requests) add(records []*kgo.Record, at, end int64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	had, skipped := len(q.all), 0
	var wrong error // the first, which stands for all that came with it: somebody may flood the topic
	for _, record := range records {
		request, err := watermark.DecodeRequest(string(record.Key), record.Offset, record.Value)
		if err != nil {
			wrong = cmp.Or(wrong, err)
			skipped++
			continue
		}
		request.Topic = record.Topic
		if now := schemas.InstantOf(q.c.cfg.Now()); request.At > now.Add(time.Minute) {
			// A request from the future would be confirmed until an hour after that time. So its time is not
			// believed.
			q.c.log.Warn("a request says that it was asked for in the future: it counts as a day old",
				zap.String("topic", record.Topic), zap.Int64("request", request.ID), zap.Stringer("asked", request.At))
			request.At = now.Add(-24 * time.Hour)
		}
		q.all = append(q.all, request)
	}
	if wrong != nil {
		q.c.log.Warn("skipping a record that is not a request", zap.String("topic", q.c.requestsTopic()),
			zap.Int("skipped", skipped), zap.Error(wrong))
	}
	if len(q.all) > had {
		q.tell()
	}
	if over := len(q.all) - mostRequests; over > 0 {
		q.c.log.Warn("too many requests in seven days: the oldest are forgotten, whether accepted or not",
			zap.String("topic", q.c.requestsTopic()), zap.Int("forgotten", over), zap.Int("kept", mostRequests))
		q.all = slices.Clone(q.all[over:])
		q.first = q.all[0].ID
	}
	q.move(at, end)
}
