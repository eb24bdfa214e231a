package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
)

// team is instances that share a group.
type team struct {
	part, series string
	x            float64
	members      []*stream
}

// growingFleet measures what instances take that have nothing to do: with one to five resources, and one to three that share five. All run at once, which a
// process's own CPU time and memory do not mind.
func growingFleet(ctx context.Context, s *stage, f *figures) (err error) {
	if s.options.orders > 100_000 { // the size does not matter here, only the time that it takes to make
		s.options.orders, s.options.users, s.options.products = 100_000, 20_000, 20_000
	}
	if err := s.shop(ctx); err != nil {
		return err
	}
	b, err := s.someBroker(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.stop()) }()
	var teams []*team
	defer func() {
		for _, t := range teams {
			for _, st := range t.members {
				err = errors.Join(err, st.Kill())
			}
		}
	}()
	for n := range len(allResources) {
		t := &team{part: "resources", series: "one instance", x: float64(n + 1)}
		teams = append(teams, t)
		if err := s.muster(ctx, t, b, fmt.Sprintf("r%d.", n+1), n+1, 1); err != nil {
			return err
		}
	}
	for n := range 3 {
		t := &team{part: "instances", series: "all together, five resources", x: float64(n + 1)}
		teams = append(teams, t)
		if err := s.muster(ctx, t, b, fmt.Sprintf("i%d.", n+1), len(allResources), n+1); err != nil {
			return err
		}
	}
	settle, window := 40*time.Second, time.Minute // two polls over REST at the default interval
	if s.quick {
		settle, window = time.Second, 2*time.Second
	}
	if err := rest(ctx, settle); err != nil {
		return err
	}
	return s.review(ctx, f, teams, b, window)
}

// muster starts a team.
func (s *stage) muster(ctx context.Context, t *team, b *broker, name string, resources, instances int) error {
	set := setting{broker: b, prefix: name, group: strings.TrimSuffix(name, "."), resources: map[string]string{}}
	for _, r := range allResources[:resources] {
		set.resources[r] = ""
	}
	for range instances {
		st, err := s.start(set)
		if err != nil {
			return err
		}
		t.members = append(t.members, st)
		if err := st.awaitReady(ctx, 2*time.Minute); err != nil {
			return err
		}
	}
	return nil
}

// review measures all teams over one window.
func (s *stage) review(ctx context.Context, f *figures, teams []*team, b *broker, window time.Duration) error {
	before := map[*stream]time.Duration{}
	for _, t := range teams {
		for _, st := range t.members {
			before[st] = used(st.Pid())
		}
	}
	began, broker, database := time.Now(), used(b.pid), used(s.pgPid)
	if err := rest(ctx, window); err != nil {
		return err
	}
	elapsed := time.Since(began).Seconds()
	broker, database = used(b.pid)-broker, used(s.pgPid)-database
	all := 0.
	for _, t := range teams {
		var cpu, memory, sockets float64
		var owned []string
		for _, st := range t.members {
			cpu += (used(st.Pid()) - before[st]).Seconds()
			kb, _ := statusKB(st.Pid(), "VmRSS:")
			memory += mebi(kb << 10)
			sockets += float64(connections(st.Pid(), b.addr))
			n, err := st.metric(ctx, "storestream_owned")
			if err != nil {
				return err
			}
			owned = append(owned, fmt.Sprintf("%.0f", n))
			all += n
		}
		f.add(t.part, "%", t.series, t.x, 100*cpu/elapsed)
		f.add(t.part, "MiB", t.series, t.x, memory)
		f.add(t.part, "connections", t.series, t.x, sockets)
		s.say("%s %.0f: CPU %.2f %%, %.0f MiB, %.0f connections to the broker; resources owned: %s", t.part, t.x, 100*cpu/elapsed, memory, sockets, strings.Join(owned, " "))
	}
	// Not in a plot: for the arithmetic of many stores.
	f.add("fleet", "% of a core", "broker, for so many idle resources", all, 100*broker.Seconds()/elapsed)
	f.add("fleet", "% of a core", "PostgreSQL, for so many idle resources", all, 100*database.Seconds()/elapsed)
	s.say("all %.0f resources: CPU of the broker %.2f %%, of PostgreSQL %.2f %%", all, 100*broker.Seconds()/elapsed, 100*database.Seconds()/elapsed)
	return nil
}
