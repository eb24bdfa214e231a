package producer

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"go.uber.org/zap"

	"github.com/storestream/storestream/internal/watermark"
)

// Requests are what the command line has asked for in the last seven days, of any resource. One reader serves the whole process; the first call starts it.
type Requests struct{ r *requestReader }

// Requests gives access to the topic of requests.
func (c *Cluster) Requests() *Requests {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.requests == nil {
		ctx, cancel := context.WithCancel(context.Background())
		c.requests = &requestReader{c: c, changed: make(chan struct{}), byResource: make(map[string][]watermark.Request), cancel: cancel, done: make(chan struct{})}
		go c.requests.run(ctx)
	}
	return &Requests{c.requests}
}

// After is the requests for resource with an id greater than id, in order. Where the topic ends at or before id it is not the topic that id comes from
// (it was deleted and created again): then it is all of them.
func (q *Requests) After(resource string, id int64) []watermark.Request {
	r := q.r
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.caughtUp && id >= r.at {
		id = -1
	}
	all := r.byResource[resource]
	i := slices.IndexFunc(all, func(req watermark.Request) bool { return req.ID > id })
	if i < 0 {
		return nil
	}
	return slices.Clone(all[i:])
}

// Changed is closed when the next request arrives, for whichever resource. Ask for it before After, or one can come between.
func (q *Requests) Changed() <-chan struct{} {
	q.r.mu.Lock()
	defer q.r.mu.Unlock()
	return q.r.changed
}

// CatchUp waits until every request that the topic holds now has been read: a successor that looked earlier would miss what its predecessor was just told.
func (q *Requests) CatchUp(ctx context.Context) error {
	r := q.r
	ends, err := r.c.offsets(ctx, r.c.admin.ListEndOffsets, r.c.RequestsTopic())
	if err != nil {
		return err
	}
	for {
		r.mu.Lock()
		reached, moved := r.at >= ends[0], r.moved()
		if reached {
			r.caughtUp = true
		}
		r.mu.Unlock()
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

// Ask writes a request and returns its id. It returns when the brokers have it, not when it is carried out.
func (c *Cluster) Ask(ctx context.Context, request watermark.Request) (int64, error) {
	if err := c.EnsureTopics(ctx); err != nil {
		return 0, err
	}
	value, err := json.Marshal(request)
	if err != nil {
		return 0, fmt.Errorf("request for %s: %w", request.Resource, err)
	}
	if _, err := watermark.DecodeRequest(request.Resource, 0, value); err != nil {
		return 0, err // an owner would skip it
	}
	record := &kgo.Record{Topic: c.RequestsTopic(), Key: []byte(request.Resource), Value: value}
	if err := c.cl.ProduceSync(ctx, record).FirstErr(); err != nil {
		return 0, fmt.Errorf("writing a request to topic %s: %w", c.RequestsTopic(), err)
	}
	return record.Offset, nil
}

// requestReader reads the topic from its start and goes on reading.
type requestReader struct {
	c      *Cluster
	cancel context.CancelFunc
	done   chan struct{}

	mu         sync.Mutex
	at         int64 // the next offset to read
	caughtUp   bool  // at has been at the topic's end once
	changed    chan struct{}
	progress   chan struct{} // closed when at moves; nil if nobody waits
	byResource map[string][]watermark.Request
}

func (r *requestReader) close() {
	r.cancel()
	<-r.done
}

// moved is closed when at has moved. The caller holds r.mu.
func (r *requestReader) moved() <-chan struct{} {
	if r.progress == nil {
		r.progress = make(chan struct{})
	}
	return r.progress
}

func (r *requestReader) run(ctx context.Context) {
	defer close(r.done)
	cl, err := r.c.client()
	if err != nil {
		r.c.log.Error("requests cannot be read", zap.Error(err)) // the options have made a client before
		return
	}
	defer cl.Close()
	said := ""
	for ctx.Err() == nil {
		err := r.follow(ctx, cl)
		if err == nil || ctx.Err() != nil {
			continue
		}
		if errors.Is(err, errSpoilt) {
			r.restart()
		}
		if text := err.Error(); text != said && !errors.Is(err, kerr.UnknownTopicOrPartition) {
			said = text
			r.c.log.Warn("requests cannot be read, trying again", zap.Error(err))
		}
		sleep(ctx, time.Second)
	}
}

// restart begins with the first offset: the topic is no longer the one that was read.
func (r *requestReader) restart() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.at, r.caughtUp = 0, false
	r.byResource = make(map[string][]watermark.Request)
}

func (r *requestReader) follow(ctx context.Context, cl *kgo.Client) error {
	starts, err := r.c.offsets(ctx, r.c.admin.ListStartOffsets, r.c.RequestsTopic())
	if err != nil {
		return err
	}
	r.move(max(r.at, starts[0]))
	reader := logReader{c: r.c, topic: r.c.RequestsTopic(), span: span{to: forEver}, at: r.at, wait: 2 * time.Second, cl: cl, moved: r.move}
	return reader.run(ctx, func(records []*kgo.Record) error {
		for _, record := range records {
			r.add(record)
		}
		return nil
	})
}

func (r *requestReader) move(at int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.at = at
	if r.progress != nil {
		close(r.progress)
		r.progress = nil
	}
}

// add takes in one record. What is not a request that we can carry out is skipped: anybody can write to the topic, and one bad record must not stop the
// good ones behind it.
func (r *requestReader) add(record *kgo.Record) {
	request, err := watermark.DecodeRequest(string(record.Key), record.Offset, record.Value)
	if err != nil {
		r.c.log.Warn("skipping a record that is not a request", zap.String("topic", record.Topic), zap.Int64("offset", record.Offset), zap.Error(err))
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.byResource[request.Resource] = append(r.byResource[request.Resource], request)
	close(r.changed)
	r.changed = make(chan struct{})
}
