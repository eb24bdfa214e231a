package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/storestream/storestream/internal/standins/storefake"
	"github.com/storestream/storestream/internal/terminal"
	"github.com/storestream/storestream/internal/wait"
)

// steadyRate is the changes a second of a steady run, and steadyInterval that of its polls. A producer id has
// 32,767 epochs. Apache Kafka from 4.0 on takes one for each transaction, so at this interval another id
// begins after an hour.
const (
	steadyRate     = 1000
	steadyInterval = "100ms"
)

// steady measures whether following goes on as it began, for as long as --steady says: it compares the first
// minute with the last.
func steady(ctx context.Context, r *round) (err error) {
	if r.steady == 0 {
		return nil
	}
	const name = "steady"
	db, err := r.database(ctx)
	if err != nil {
		return err
	}
	n := steadyRate * int((r.steady+time.Minute)/time.Second) // no row changes twice
	if err := db.freshTable(ctx, name, n); err != nil {
		return err
	}
	newBroker := startEmbedded
	if r.kafka {
		newBroker = startApache
	}
	b, err := newBroker(ctx, r.stage)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.stop(), db.drop(ctx, name)) }()
	set := setting{dsn: db.reader(name), broker: b,
		resources: map[string]string{storefake.Orders: "interval: " + steadyInterval}}
	st, err := r.program.start(set)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, st.Kill()) }()
	if err := st.awaitReady(ctx, 10*time.Minute); err != nil {
		return err
	}
	return compareEnds(ctx, r, name, n, b, st)
}

// spell is a part of a steady run.
type spell struct {
	memory, cpu float64 // MiB, the median, and the share of a core in percent
	late        series  // milliseconds from commit to consumer
	producer    int64   // id
}

// compareEnds changes the n rows of a database for as long as --steady says. It reports the last minute
// beside the first one after the overlap is full.
func compareEnds(ctx context.Context, r *round, name string, n int, b *broker, st *stream) error {
	a, err := watchAll(ctx, b, n)
	if err != nil {
		return err
	}
	defer a.close()
	conn, err := pgx.Connect(ctx, r.pg.server.AdminDSN(name))
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	w := &writer{conn: conn, rate: steadyRate, next: 1, committed: map[int64]time.Time{}}
	writing, stop := context.WithCancel(ctx)
	wrote := make(chan error, 1)
	go func() { wrote <- w.write(writing) }()
	began := time.Now()
	lead, lasts := min(2*overlap, r.steady/4), min(time.Minute, r.steady/4)
	var spells [2]spell
	for i, at := range []time.Duration{lead, r.steady - lasts} {
		if err = wait.For(ctx, max(time.Until(began.Add(at)), 0)); err != nil {
			break
		}
		if spells[i], err = spellOf(ctx, b, st, lasts); err != nil {
			break
		}
	}
	stop()
	if err := errors.Join(err, <-wrote); err != nil {
		return err
	}
	for i, at := range []time.Duration{lead, r.steady - lasts} {
		from, to := began.Add(at), began.Add(at+lasts)
		during := maps.Clone(w.committed)
		maps.DeleteFunc(during, func(_ int64, t time.Time) bool { return t.Before(from) || t.After(to) })
		if spells[i].late, err = a.lateness(ctx, during); err != nil {
			return err
		}
	}
	what := fmt.Sprintf("%s changes a second for %s: ", terminal.Count(steadyRate), terminal.Duration(r.steady))
	for i, when := range []string{"at the start", "at the end"} {
		r.add(figure{what: what + "memory " + when, format: "%.0f MiB"}, spells[i].memory)
		r.add(figure{what: what + "CPU of storestream " + when, format: "%.1f %%"}, spells[i].cpu)
		r.add(figure{what: what + "commit to consumer, p99, " + when, target: "250 ms", format: "%.0f ms"},
			spells[i].late.quantile(.99))
	}
	r.add(figure{what: what + "memory at the end against the start", format: "%.2f"},
		spells[1].memory/spells[0].memory)
	if spells[0].producer == spells[1].producer {
		r.note("the producer id is still that of the start: the run did not pass the end of its epochs")
	}
	return nil
}

// spellOf measures all of a spell but the delays.
func spellOf(ctx context.Context, b *broker, st *stream, lasts time.Duration) (s spell, err error) {
	var memory series
	spent, began := used(st.Pid()), time.Now()
	for time.Since(began) < lasts {
		if err := wait.For(ctx, min(time.Second, lasts)); err != nil {
			return s, err
		}
		kb, there := statusKB(st.Pid(), "VmRSS:")
		if !there {
			return s, st.Ended()
		}
		memory.add(mebibytes(kb << 10))
	}
	s.memory = memory.median()
	s.cpu = 100 * (used(st.Pid()) - spent).Seconds() / time.Since(began).Seconds()
	s.producer, err = producerOf(ctx, b)
	return s, err
}

// producerOf is the producer id of the only transactional id.
func producerOf(ctx context.Context, b *broker) (int64, error) {
	cl, err := kgo.NewClient(kgo.SeedBrokers(b.addr))
	if err != nil {
		return 0, err
	}
	defer cl.Close()
	all, err := kadm.NewClient(cl).ListTransactions(ctx, nil, nil)
	if err == nil && len(all) != 1 {
		err = fmt.Errorf("the broker lists %d transactional ids: expected one", len(all))
	}
	if err != nil {
		return 0, err
	}
	return all.Sorted()[0].ProducerID, nil
}
