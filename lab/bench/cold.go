package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/storestream/storestream/internal/standins/storefake"
)

const (
	coldName   = "cold" // of the line's database
	dropCaches = "/proc/sys/vm/drop_caches"
)

// cold measures first loads of a table of four times the memory that PostgreSQL has, whose rows lie in no
// order of time, against COPY. Before each of these PostgreSQL starts anew, and the kernel forgets all files.
//
// The memory is that of the control group --cgroup, which also holds the kernel's copies of files. Without it
// the kernel keeps what was read once: then the figures have no target, and say so.
func cold(ctx context.Context, r *round) error {
	if !mayWrite(ctx, dropCaches) {
		r.note("cold: not measured, because only root may have the kernel forget files")
		return nil
	}
	memory, limit := int64(256<<20), "cold, memory not limited"
	if r.cgroup != "" {
		var err error
		if memory, err = limitOf(r.cgroup); err != nil {
			return err
		}
		limit = fmt.Sprintf("four times PostgreSQL's memory of %.0f MiB", mebibytes(memory))
	}
	db, err := startDatabase(ctx, false, fmt.Sprintf("%dMB", memory>>22))
	if err != nil {
		return err
	}
	return errors.Join(coldOn(ctx, r, db, memory, limit), db.stop())
}

func coldOn(ctx context.Context, r *round, db *database, memory int64, limit string) error {
	n := r.large
	const narrow = 75 // bytes of a row without padding
	padding := max(4*memory/int64(n)-narrow, 0)
	if r.quick {
		padding = 100
	}
	widen := fmt.Sprintf("ALTER TABLE orders ADD COLUMN padding text DEFAULT repeat('x', %d)", padding)
	if err := db.freshTable(ctx, coldName, n, append([]string{widen}, scatterSQL...)...); err != nil {
		return err
	}
	var loaded load
	var ordered, plain copied
	turns := []func() error{
		func() (err error) { loaded, err = loadTable(ctx, r, db, coldName, startEmbedded, nil); return err },
		func() (err error) { ordered, err = db.copyOut(ctx, coldName, storefake.Orders); return err },
		func() (err error) { plain, err = db.copyBy(ctx, coldName, storefake.Orders, copyAnyhow); return err },
	}
	if r.number%2 == 1 {
		slices.Reverse(turns)
	}
	for _, turn := range turns {
		if err := errors.Join(db.chill(ctx, r.cgroup), turn()); err != nil {
			return err
		}
	}
	what := fmt.Sprintf("first load of %s orders in no order of time, %s: ", count(n), limit)
	target := ""
	if r.cgroup != "" {
		target = "1.3"
	}
	r.add(figure{what: what + "time", format: "%.1f s"}, loaded.elapsed.Seconds())
	r.add(figure{what: what + "against psql COPY", target: target, format: "%.2f"},
		loaded.elapsed.Seconds()/ordered.elapsed.Seconds())
	r.add(figure{what: what + "against psql COPY without ORDER BY", format: "%.2f"},
		loaded.elapsed.Seconds()/plain.elapsed.Seconds())
	return nil
}

// chill has PostgreSQL start anew, in the control group if there is one, and the kernel forget all files.
func (db *database) chill(ctx context.Context, cgroup string) error {
	if err := db.server.Restart(ctx); err != nil {
		return err
	}
	if err := db.findPID(ctx); err != nil {
		return err
	}
	if cgroup != "" { // the sessions follow, because they are made from this process
		err := os.WriteFile(filepath.Join(cgroup, "cgroup.procs"), []byte(strconv.Itoa(db.pid)), 0o600)
		if err != nil {
			return err
		}
	}
	return shell(ctx, ".", "sync && echo 3 >"+dropCaches)
}

func mayWrite(ctx context.Context, path string) bool { return shell(ctx, ".", "test -w "+path) == nil }

// limitOf is the limit of a control group's memory in bytes. Its file's name depends on the groups' version.
func limitOf(cgroup string) (int64, error) {
	for _, name := range []string{"memory.max", "memory.limit_in_bytes"} {
		if n, err := strconv.ParseInt(firstLine(filepath.Join(cgroup, name)), 10, 64); err == nil && n < 1<<50 {
			return n, nil
		}
	}
	return 0, fmt.Errorf("--cgroup %s: expected a memory group with a limit", cgroup)
}
