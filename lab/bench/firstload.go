package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/storestream/storestream/internal/standins/servers"
	"github.com/storestream/storestream/internal/standins/storefake"
	"github.com/storestream/storestream/internal/terminal"
)

// load is one first load of one resource.
type load struct {
	rows             float64
	cpu              time.Duration // of storestream, start and end included
	elapsed          time.Duration // from its start to the visible watermark that says "complete"
	brokerCPU, pgCPU time.Duration
	peak             int64
}

// firstLoad has a new storestream fill the topic of one resource, which is empty, and exit.
func firstLoad(ctx context.Context, r *round, b *broker, resource string, hashed ...string) (l load,
	err error) {
	db, shop, err := r.openShop(ctx)
	if err != nil {
		return l, err
	}
	set := setting{broker: b, dsn: db.reader("postgres"), base: shop.base,
		resources: map[string]string{resource: ""}, hashed: hashed}
	return loadBy(ctx, r, db, set, resource)
}

// loadTable fills a new broker's topic with the orders of a database, by further settings of storestream.
func loadTable(ctx context.Context, r *round, db *database, name string, newBroker startBroker,
	settings map[string]string) (load, error) {
	b, err := newBroker(ctx, r.stage)
	if err != nil {
		return load{}, err
	}
	set := setting{broker: b, dsn: db.reader(name), resources: map[string]string{storefake.Orders: ""},
		settings: settings}
	l, err := loadBy(ctx, r, db, set, storefake.Orders)
	return l, errors.Join(err, b.stop())
}

// loadBy has a new storestream fill the topic of the only resource of a setting, which is empty, and exit.
func loadBy(ctx context.Context, r *round, db *database, set setting, resource string) (l load, err error) {
	b := set.broker
	set.once = true
	if r.program.profiled {
		if err := os.MkdirAll(r.profile, 0o700); err != nil {
			return l, err
		}
		set.profile, set.once = filepath.Join(r.profile, r.name(resource)), false
	}
	pg, bc := used(db.pid), used(b.pid)
	st, err := r.program.start(set)
	if err != nil {
		return l, err
	}
	defer func() { err = errors.Join(err, st.Kill()) }()
	ctx, cancel := context.WithTimeout(ctx, 10*time.Minute)
	defer cancel()
	mark, err := awaitLoadBy(ctx, st, b, resource)
	if err != nil {
		return l, err
	}
	if r.program.profiled {
		err = st.finishProfile(ctx)
	} else {
		err = st.done(ctx)
	}
	return load{rows: float64(mark.rows), cpu: st.CPU(), elapsed: mark.done.Sub(st.began),
		brokerCPU: used(b.pid) - bc, pgCPU: used(db.pid) - pg, peak: st.peak.Load()}, err
}

// awaitLoadBy waits for the end of a first load, or for the program's end if it fails before.
func awaitLoadBy(ctx context.Context, st *stream, b *broker, resource string) (loaded, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		select {
		case <-st.Exited():
			if st.ExitCode() != 0 {
				cancel()
			}
		case <-ctx.Done():
		}
	}()
	l, err := awaitLoad(ctx, b, resource)
	if err != nil && servers.Closed(st.Exited()) {
		return l, st.Ended()
	}
	return l, err
}

// firstLoads measures the first load of each table against COPY of the same query, in turn.
func firstLoads(ctx context.Context, r *round) error {
	return errors.Join(loadOf(ctx, r, storefake.Orders, "", startEmbedded),
		loadOf(ctx, r, storefake.OrderItems, "", startEmbedded))
}

// apacheLoads measures the first loads with Apache Kafka as the broker.
func apacheLoads(ctx context.Context, r *round) error {
	if !r.kafka {
		return nil
	}
	return errors.Join(loadOf(ctx, r, storefake.Orders, " into Apache Kafka", startApache),
		loadOf(ctx, r, storefake.OrderItems, " into Apache Kafka", startApache))
}

type startBroker func(context.Context, *stage) (*broker, error)

func loadOf(ctx context.Context, r *round, resource, into string, newBroker startBroker) error {
	db, _, err := r.openShop(ctx)
	if err != nil {
		return err
	}
	c, err := db.copyOut(ctx, "postgres", resource)
	if err != nil {
		return err
	}
	b, err := newBroker(ctx, r.stage)
	if err != nil {
		return err
	}
	l, err := firstLoad(ctx, r, b, resource)
	if err := errors.Join(err, b.stop()); err != nil {
		return err
	}
	main := resource == storefake.Orders
	row, rate, peak, all := "", "", "", ""
	switch {
	case main && into == "":
		row, rate, peak = "1.03 us", "0.95", "80 MiB"
	case main:
		row, all = "1.07 us", "3.5 us"
	}
	what := fmt.Sprintf("first load of %s%s: ", resource, into)
	perRow := func(d time.Duration) float64 { return micros(d) / l.rows }
	r.add(figure{what: what + "CPU of storestream a row", target: row, format: "%.2f us"}, perRow(l.cpu))
	r.add(figure{what + "rows a second", "", "%.0f", main && into == ""}, l.rows/l.elapsed.Seconds())
	r.add(figure{what: what + "rate against psql COPY", target: rate, format: "%.2f"},
		c.elapsed.Seconds()/l.elapsed.Seconds())
	r.add(figure{what: what + "peak memory", target: peak, format: "%.0f MiB"}, mebibytes(l.peak))
	r.add(figure{what: what + "CPU of PostgreSQL a row", format: "%.2f us"}, perRow(l.pgCPU))
	r.add(figure{what: what + "CPU of the broker a row", format: "%.2f us"}, perRow(l.brokerCPU))
	r.add(figure{what: what + "CPU of all three programs a row", target: all, format: "%.2f us"},
		perRow(l.cpu+l.pgCPU+l.brokerCPU))
	return nil
}

// restLoad measures the first load of a resource that only REST has.
func restLoad(ctx context.Context, r *round) error {
	l, err := usersLoad(ctx, r)
	if err != nil {
		return err
	}
	requests := 0.0
	err = r.running(ctx, setting{resources: map[string]string{storefake.Users: ""}},
		func(_ *broker, st *stream) error {
			if err := st.awaitReady(ctx, 5*time.Minute); err != nil {
				return err
			}
			requests, err = st.metric(ctx, "storestream_http_requests_total")
			return err
		})
	what := "first load of users over REST: "
	r.add(figure{what: what + "CPU of storestream a row", target: "3.41 us", format: "%.2f us"},
		micros(l.cpu)/l.rows)
	r.add(figure{what: what + "rows a second", format: "%.0f"}, l.rows/l.elapsed.Seconds())
	r.add(figure{what: what + "peak memory", format: "%.0f MiB"}, mebibytes(l.peak))
	r.add(figure{what: what + "requests beyond one for 1,000 rows", target: "a constant", format: "%.0f"},
		requests-l.rows/1000)
	return err
}

// hashedLoads measures the cost of `hash` on three fields for a row's way from the service's answer to the
// broker. First loads with and without it take turns, and every round reverses their order.
func hashedLoads(ctx context.Context, r *round) error {
	if !slices.Contains(r.program.settings, "privacy.fields") {
		return nil // an older version, without policies
	}
	fields := []string{"users.email", "users.street_address", "users.last_name"}
	var plain, hashed load
	turns := []func() error{
		func() (err error) { plain, err = usersLoad(ctx, r); return err },
		func() (err error) { hashed, err = usersLoad(ctx, r, fields...); return err },
	}
	if r.number%2 == 1 {
		slices.Reverse(turns)
	}
	for _, turn := range turns {
		if err := turn(); err != nil {
			return err
		}
	}
	without, with := micros(plain.cpu)/plain.rows, micros(hashed.cpu)/hashed.rows
	const what = "first load of users over REST, three fields hashed: "
	r.add(figure{what: what + "CPU of storestream a row", format: "%.2f us"}, with)
	r.add(figure{what: what + "against none hashed, in turn", target: "1.25", format: "%.2f"}, with/without)
	return nil
}

func usersLoad(ctx context.Context, r *round, hashed ...string) (load, error) {
	b, err := startEmbedded(ctx, r.stage)
	if err != nil {
		return load{}, err
	}
	l, err := firstLoad(ctx, r, b, storefake.Users, hashed...)
	return l, errors.Join(err, b.stop())
}

// restDays measures first loads of the same number of users, created and changed over more and more days.
func restDays(ctx context.Context, r *round) error {
	for _, days := range []int{1, 10, 100, 1000} {
		if err := daysOf(ctx, r, days); err != nil {
			return err
		}
	}
	return nil
}

func daysOf(ctx context.Context, r *round, days int) (err error) {
	users := min(r.users, 50_000)
	v, err := startService(ctx, r.stage, "--users", strconv.Itoa(users), "--days", strconv.Itoa(days))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, v.Kill()) }()
	set := setting{base: v.base, resources: map[string]string{storefake.Users: ""}}
	return r.running(ctx, set, func(_ *broker, st *stream) error {
		if err := st.awaitReady(ctx, 5*time.Minute); err != nil {
			return err
		}
		took := time.Since(st.began)
		requests, err := st.metric(ctx, "storestream_http_requests_total")
		r.add(figure{what: fmt.Sprintf("first load of %s users over %s days: requests", count(users),
			terminal.Count(days)), format: "%.0f"}, requests)
		r.point("days", "requests of a first load", "", float64(days), requests)
		r.point("days", "time of a first load, s", "", float64(days), took.Seconds())
		return err
	})
}

func micros(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1e3 }

func mebibytes(n int64) float64 { return float64(n) / (1 << 20) }
