package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/cespare/xxhash/v2"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/storestream/storestream/internal/standins/storefake"
	"github.com/storestream/storestream/lab/asked"
)

// topicPrefix is storestream's default.
const topicPrefix = "store."

// version is a record of a data topic.
type version struct {
	partition int32
	offset    int64
	id        int64
	millis    int64  // updated_at
	created   int64  // created_at in milliseconds
	hash      uint64 // of the value without its header
	gone      bool   // a tombstone
	mistake   bool   // a tombstone of a row that the service had when it was read
}

// mark is a watermark, as far as chaos looks at it.
type mark struct {
	asked.Mark
	Settled time.Time `json:"settled"`
	AsOf    time.Time `json:"as_of"`
	Load    *loading  `json:"load"`
	Sweep   *sweeping `json:"sweep"`
	Swept   *sweeping `json:"swept"`
	Trouble *trouble  `json:"trouble"`
	Erase   []erasing `json:"erase"`
	Fields  []string  `json:"fields"` // that the source had in the last complete pass
}

// trouble is the reason why a resource is blocked or fails, or why settling is delayed.
type trouble struct {
	Why string `json:"why"`
}

// erasing is a row that waits for its erasure.
type erasing struct {
	ID int64 `json:"id"`
}

// sweeping is a sweep that is not finished, or the last one that is.
type sweeping struct {
	Request   int64     `json:"request"`
	Tried     time.Time `json:"tried"`
	Attempts  int       `json:"attempts"`
	NotBefore time.Time `json:"not_before"`
	From      int64     `json:"from"` // the part that it has come to
}

// loading is the place of a load in the order of the blocks.
type loading struct {
	File   string `json:"file"`
	Block  int64  `json:"block"`
	Blocks int64  `json:"blocks"`
}

// inside says whether a part of the load is done, and a part is not.
func (l *loading) inside() bool { return l != nil && 0 < l.Block && l.Block < l.Blocks }

// tail reads all topics as a read_committed consumer while they are written: a compacted topic forgets its
// old records.
type tail struct {
	client  *kgo.Client
	decoder *decoder
	has     func(resource string, id int64) bool // the service has had the row for a while
	done    chan struct{}
	cancel  context.CancelFunc

	mu       sync.Mutex
	changed  chan struct{} // closed when there is more
	err      error         // the first record that breaks the contract
	next     map[place]int64
	versions map[string][]version         // by resource; in offset order within a partition
	newest   map[string]map[int64]*record // the newest record of each id
	marks    map[string][]mark            // by resource
	letters  map[string][]byte            // the current letters in dead_letters, by key
	lettered int                          // letters ever written
	asks     []asked.Ask
	rewrites map[string][]rewrite // by resource
}

// rewrite is a restore that wrote every row of a table again, even the unchanged ones.
type rewrite struct {
	from   int64 // rows with a later updated_at were read again: settled
	before int   // how many records the topic had
}

type place struct {
	topic     string
	partition int32
}

// record is the newest state of a row in a topic. Value is nil for a tombstone.
type record struct {
	version
	value []byte
}

func startTail(options []kgo.Opt, d *decoder, has func(resource string, id int64) bool) (*tail, error) {
	topics := []string{topicPrefix + "watermarks", topicPrefix + "requests", topicPrefix + "dead_letters"}
	t := &tail{decoder: d, has: has, done: make(chan struct{}), changed: make(chan struct{}),
		next: map[place]int64{}, versions: map[string][]version{},
		newest: map[string]map[int64]*record{}, marks: map[string][]mark{}, letters: map[string][]byte{},
		rewrites: map[string][]rewrite{}}
	for _, name := range storefake.Names() {
		topics = append(topics, topicPrefix+name)
		t.newest[name] = map[int64]*record{}
	}
	var err error
	t.client, err = kgo.NewClient(append([]kgo.Opt{
		kgo.ConsumeTopics(topics...), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.KeepControlRecords(),
		kgo.MetadataMinAge(250 * time.Millisecond), kgo.MetadataMaxAge(2 * time.Second),
		kgo.FetchMaxWait(500 * time.Millisecond),
	}, options...)...)
	if err != nil {
		return nil, fmt.Errorf("the topics' reader: %w", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	t.cancel = cancel
	go t.run(ctx)
	return t, nil
}

func (t *tail) stop() {
	t.cancel()
	<-t.done
	t.client.Close()
}

// run reads until ctx ends. A fetch fails while Kafka is away or a topic does not exist yet, and the client
// tries again.
func (t *tail) run(ctx context.Context) {
	defer close(t.done)
	for ctx.Err() == nil {
		fetches := t.client.PollFetches(ctx)
		t.mu.Lock()
		fetches.EachRecord(t.take)
		close(t.changed)
		t.changed = make(chan struct{})
		t.mu.Unlock()
	}
}

// take files one record. The caller holds t.mu.
func (t *tail) take(r *kgo.Record) {
	at := place{r.Topic, r.Partition}
	if r.Offset < t.next[at] {
		t.wrong(r, fmt.Errorf("offset %d was read before: the broker took back committed records", t.next[at]))
		return
	}
	t.next[at] = r.Offset + 1
	if r.Attrs.IsControl() {
		return
	}
	var err error
	switch name := strings.TrimPrefix(r.Topic, topicPrefix); name {
	case "watermarks":
		var m mark
		if err = json.Unmarshal(r.Value, &m); err == nil {
			t.marks[string(r.Key)] = append(t.marks[string(r.Key)], m)
		}
	case "requests":
		a := asked.Ask{ID: r.Offset}
		if err = json.Unmarshal(r.Value, &a); err == nil {
			t.asks = append(t.asks, a)
		}
	case "dead_letters":
		t.letter(r)
	default:
		err = t.row(name, r)
	}
	if err != nil {
		t.wrong(r, err)
	}
}

func (t *tail) letter(r *kgo.Record) {
	if r.Value == nil {
		delete(t.letters, string(r.Key))
		return
	}
	t.letters[string(r.Key)] = r.Value
	t.lettered++
}

// hasLetter says whether there is a dead letter with this key now.
func (t *tail) hasLetter(key string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	_, there := t.letters[key]
	return there
}

func (t *tail) row(resource string, r *kgo.Record) error {
	key, err := t.decoder.decode(r.Key)
	if err != nil {
		return err
	}
	id, ok := key["id"].(int64)
	if !ok || len(key) != 1 {
		return fmt.Errorf("the key is %v, expected an id alone", key)
	}
	v := version{partition: r.Partition, offset: r.Offset, id: id, gone: r.Value == nil}
	if !v.gone {
		value, err := t.decoder.decode(r.Value)
		if err != nil {
			return err
		}
		at, ok := value["updated_at"].(time.Time)
		if !ok || value["id"] != id {
			return fmt.Errorf("the value under key %d has id %v and updated_at %v", id, value["id"],
				value["updated_at"])
		}
		v.millis, v.hash = at.UnixMilli(), xxhash.Sum64(r.Value[5:])
		if created, ok := value["created_at"].(time.Time); ok {
			v.created = created.UnixMilli()
		}
	}
	v.mistake = v.gone && t.has(resource, id)
	t.versions[resource] = append(t.versions[resource], v)
	t.newest[resource][id] = &record{v, r.Value}
	return nil
}

// wrong keeps the first record that breaks the rules of its topic.
func (t *tail) wrong(r *kgo.Record, err error) {
	if t.err == nil {
		t.err = fmt.Errorf("topic %s, partition %d, offset %d: %w", r.Topic, r.Partition, r.Offset, err)
	}
}

// more is closed when records have come in after the call.
func (t *tail) more() <-chan struct{} {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.changed
}

// find is the newest record of a row.
func (t *tail) find(resource string, id int64) (record, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	r, there := t.newest[resource][id]
	if !there {
		return record{}, false
	}
	return *r, true
}

// lastMark is the newest watermark of a resource.
func (t *tail) lastMark(resource string) (mark, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	all := t.marks[resource]
	if len(all) == 0 {
		return mark{}, false
	}
	return all[len(all)-1], true
}

// marksFrom are the watermarks of a resource from the n-th on.
func (t *tail) marksFrom(resource string, n int) []mark {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Clone(t.marks[resource][n:])
}

// catchUp waits until everything that is committed now has been read.
func (t *tail) catchUp(ctx context.Context) error {
	ends, err := kadm.NewClient(t.client).ListCommittedOffsets(ctx, t.client.GetConsumeTopics()...)
	if err != nil {
		return fmt.Errorf("asking for the ends of the topics: %w", err)
	}
	for {
		more := t.more()
		if t.reached(ends) {
			return nil
		}
		select {
		case <-more:
		case <-ctx.Done():
			return fmt.Errorf("reading the topics to their end: %w", context.Cause(ctx))
		}
	}
}

func (t *tail) reached(ends kadm.ListedOffsets) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	reached := true
	ends.Each(func(o kadm.ListedOffset) {
		if o.Err == nil && t.next[place{o.Topic, o.Partition}] < o.Offset {
			reached = false
		}
	})
	return reached
}

// counts is how many records each resource's topic has had.
func (t *tail) counts() map[string]int {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := map[string]int{}
	for _, resource := range storefake.Names() {
		n[resource] = len(t.versions[resource])
	}
	return n
}

// carriedOut says that no request of a resource waits, that no replay is in hand and that it is not paused;
// with sweeps also no erasure, and no sweep, but one that is put off because its owner died.
func (t *tail) carriedOut(resource string, sweeps bool) bool {
	m, there := t.lastMark(resource)
	t.mu.Lock()
	defer t.mu.Unlock()
	waits := func(a asked.Ask) bool { return a.Resource == resource && a.ID > m.Request }
	sweeps = sweeps && (m.Sweep != nil && m.Sweep.NotBefore.IsZero() || len(m.Erase) > 0)
	rests := m.Replay != nil || len(m.Parts) > 0 || m.Pause != nil
	return there && !rests && !sweeps && !slices.ContainsFunc(t.asks, waits)
}

// rewritten notes that a restore now writes all rows of the resources again.
func (t *tail) rewritten(resources []string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, resource := range resources {
		r := rewrite{before: len(t.versions[resource])}
		if all := t.marks[resource]; len(all) > 0 {
			r.from = all[len(all)-1].Settled.UnixMilli()
		}
		t.rewrites[resource] = append(t.rewrites[resource], r)
	}
}

// judge adds the faults in the topic's history to r. x excuses the service's own incidents.
func (t *tail) judge(r *report, rows map[int64]row, x *excuses) {
	t.mu.Lock()
	defer t.mu.Unlock()
	marks := t.marks[r.resource]
	replays := asked.Courses(asMarks(marks))
	r.judgeOrder(t.versions[r.resource], replays, t.rewrites[r.resource],
		func(id int64) []int64 { return x.setBack(r.resource, id) }, rows)
	r.judgeDeletes(t.versions[r.resource])
	r.judgeReplays(replays, rows, t.newest[r.resource], x.mayHide)
	r.judgeRequests(t.asks, marks)
	r.judgeMarks(marks, x.settledMayGoBack())
	r.judgeLetters(t.letters, rows)
}

// asMarks returns what package asked reads of watermarks.
func asMarks(marks []mark) (all []asked.Mark) {
	for _, m := range marks {
		all = append(all, m.Mark)
	}
	return all
}

// dump writes the records of each topic into the run's folder, a record or a watermark a line, to look into a
// failure.
func (t *tail) dump(dir string) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	var errs []error
	for _, resource := range storefake.Names() {
		errs = append(errs, writeLines(filepath.Join(dir, "topic-"+resource+".txt"), func(w *bufio.Writer) {
			for _, v := range t.versions[resource] {
				fmt.Fprintf(w, "%d/%d id %d updated_at %s value %016x tombstone %v\n", v.partition, v.offset, v.id,
					instant(v.millis), v.hash, v.gone)
			}
		}), writeLines(filepath.Join(dir, "watermarks-"+resource+".txt"), func(w *bufio.Writer) {
			for _, m := range t.marks[resource] {
				fmt.Fprintf(w, "%+v", m)
				if m.Load != nil {
					fmt.Fprintf(w, " load %+v", *m.Load)
				}
				if m.Replay != nil {
					fmt.Fprintf(w, " replay %+v", *m.Replay)
				}
				if len(m.Results) > 0 {
					fmt.Fprintf(w, " results %+v", m.Results)
				}
				fmt.Fprintln(w)
			}
		}))
	}
	errs = append(errs, writeLines(filepath.Join(dir, "requests.txt"), func(w *bufio.Writer) {
		for _, a := range t.asks {
			fmt.Fprintf(w, "%+v\n", a)
		}
	}))
	return errors.Join(errs...)
}

func writeLines(path string, write func(*bufio.Writer)) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	w := bufio.NewWriter(f)
	write(w)
	return errors.Join(w.Flush(), f.Close())
}
