package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
)

// history is a first load of three years into one topic of Apache Kafka, and what comes after it.
type history struct {
	settings   string            // what the report calls them
	topic      map[string]string // of a topic that is there already; nil: storestream makes it
	rows       int
	partitions int
	rewrites   int           // after the load all rows are changed so many times,
	pause      time.Duration // and so long passes after each
	patience   time.Duration // how long a compaction is waited for
}

// histories are what is compared. The topics of one partition are soon long enough to be compacted; the small ones stay below 64 MiB for ever, and a segment.ms
// of ten seconds stands for a week; in the large ones a segment of 4 MiB, which takes some five batches, stands for 64.
func (s *stage) histories() []history {
	n, cleaner := 1_000_000, 20*time.Second // the cleaner rests for 15 s
	if s.quick {
		n = 20_000
	}
	mebibytes := func(n int) string { return strconv.Itoa(n << 20) }
	tenYears := strconv.FormatInt((10 * 365 * 24 * time.Hour).Milliseconds(), 10)
	return []history{
		{settings: "storestream's settings", rows: n, partitions: 6, patience: cleaner},
		{settings: "Kafka's defaults", topic: map[string]string{}, rows: n, partitions: 6, patience: cleaner},
		{settings: "storestream's settings", rows: n, partitions: 1, rewrites: 3, patience: cleaner},
		{settings: "Kafka's defaults", topic: map[string]string{}, rows: n, partitions: 1, rewrites: 3, patience: cleaner},
		{settings: "64 MiB, 10 s (for a week)", topic: map[string]string{"segment.bytes": mebibytes(64), "segment.ms": "10000"},
			rows: n / 20, partitions: 1, rewrites: 3, pause: 11 * time.Second, patience: cleaner},
		{settings: "64 MiB, ten years", topic: map[string]string{"segment.bytes": mebibytes(64), "segment.ms": tenYears},
			rows: n / 20, partitions: 1, rewrites: 3, patience: cleaner},
		{settings: "4 MiB (for 64), a week", topic: map[string]string{"segment.bytes": mebibytes(4)}, rows: n, partitions: 1},
		{settings: "4 MiB (for 64), ten years", topic: map[string]string{"segment.bytes": mebibytes(4), "segment.ms": tenYears}, rows: n, partitions: 1},
	}
}

// segmentsOf measures what three years of history do to a topic in Apache Kafka, with the settings that storestream gives its topics and with others.
func segmentsOf(ctx context.Context, s *stage, t *table) (err error) {
	if !s.kafka {
		return nil
	}
	if err := s.database(ctx); err != nil {
		return err
	}
	b, err := s.apache(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.stop()) }()
	if err := s.recordTimes(ctx, b, t); err != nil {
		return err
	}
	for i, h := range s.histories() {
		if err := s.loadHistory(ctx, t, b, h, fmt.Sprintf("history-%d.", i)); err != nil {
			return err
		}
	}
	return nil
}

func (s *stage) loadHistory(ctx context.Context, t *table, b *broker, h history, prefix string) (err error) {
	dsn, admin, err := s.tableOf(ctx, h.rows)
	if err != nil {
		return err
	}
	set := setting{dsn: dsn, broker: b, prefix: prefix, group: prefix, partitions: h.partitions}
	topic := set.topic("orders")
	if h.topic != nil {
		if err := s.createTopic(ctx, b, topic, int32(h.partitions), h.topic); err != nil {
			return err
		}
	}
	logs := watchLog(ctx, b.data, topic)
	defer logs.close()
	l, err := s.firstLoad(ctx, b, "orders", set)
	if err != nil {
		return err
	}
	loaded, n, segments := time.Now(), float64(l.rows), logs.begun()
	fresh, disk := logs.bytes()
	text := fmt.Sprintf("%d segments; %.1f s, CPU of storestream %.2f us, of Kafka %.2f us a row; %.1f bytes a row, %.1f MiB on disk", segments, l.elapsed.Seconds(),
		micros(l.cpu)/n, micros(l.brokerCPU)/n, float64(fresh)/n, mebi(disk))
	if h.rewrites > 0 {
		if err := errors.Join(s.rewrite(ctx, set, admin, h), s.dropTable(ctx, h.rows)); err != nil {
			return err
		}
	}
	if h.patience > 0 {
		if err := logs.awaitCompactions(ctx, h.partitions, h.patience); err != nil {
			return err
		}
		text += "; " + logs.compacted(loaded, l.rows*(1+h.rewrites), h.patience)
	}
	if h.rewrites > 0 {
		records, _ := logs.bytes()
		text += fmt.Sprintf("; in the end %d segments begun, %.1f times the load's bytes", logs.begun(), float64(records)/float64(fresh))
	}
	what := fmt.Sprintf("%d orders of three years, %d partitions, %s", h.rows, h.partitions, h.settings)
	if h.rewrites > 0 {
		what += fmt.Sprintf(", then all changed %d times", h.rewrites)
	}
	s.say("%s: %s", what, text)
	t.note(what, "stated", "%s", text)
	return nil
}

// rewrite changes all rows, again and again, and has them published.
func (s *stage) rewrite(ctx context.Context, set setting, admin string, h history) (err error) {
	set.resources = map[string]string{"orders": "overlap: 5s"} // not all rows once a second for two minutes
	st, err := s.start(set)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, st.Kill()) }()
	if err := st.awaitReady(ctx, time.Minute); err != nil {
		return err
	}
	conn, err := pgx.Connect(ctx, admin)
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	for i := range h.rewrites {
		if _, err := conn.Exec(ctx, "UPDATE orders SET updated_at = now()"); err != nil {
			return err
		}
		if err := st.awaitPublished(ctx, (i+1)*h.rows); err != nil {
			return err
		}
		if err := rest(ctx, h.pause); err != nil {
			return err
		}
	}
	return nil
}

// awaitCompactions waits until every partition was compacted, or for so long.
func (l *logDir) awaitCompactions(ctx context.Context, partitions int, patience time.Duration) error {
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); {
		if at, _ := l.compactions(); len(at) == partitions {
			return nil
		}
		if err := rest(ctx, 100*time.Millisecond); err != nil {
			return err
		}
	}
	return nil
}

// compacted says when what was compacted, of so many records.
func (l *logDir) compacted(loaded time.Time, written int, patience time.Duration) string {
	at, records := l.compactions()
	if len(at) == 0 {
		return fmt.Sprintf("not compacted within %v", patience)
	}
	return fmt.Sprintf("first compacted %.0f s after the load, then %.0f %% of all records", at[0].Sub(loaded).Seconds(), 100*float64(records)/float64(written))
}
