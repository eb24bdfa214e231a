package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"

	"github.com/storestream/storestream/internal/standins/servers"
)

// stage is one run of the bench: its folder, and the parts that live until the run ends.
type stage struct {
	options
	out      io.Writer
	dir      string
	programs []*program // the programs to measure, the version before first
	named    int        // names given out
	failures []string   // lines that could not be measured
	stops    []func() error

	// Started when first asked for.
	pg   *database
	shop *service
}

func open(ctx context.Context, o options, out io.Writer) (*stage, error) {
	s := &stage{options: o, out: out}
	dir, remove, err := servers.TemporaryFolder("bench")
	if err != nil {
		return nil, err
	}
	s.dir = dir
	s.stops = append(s.stops, func() error {
		if o.keep {
			s.say("kept: %s", dir)
			return nil
		}
		remove()
		return nil
	})
	if s.programs, err = newPrograms(ctx, s); err != nil {
		return nil, errors.Join(err, s.close())
	}
	return s, nil
}

func (s *stage) close() error {
	var errs []error
	for i := len(s.stops) - 1; i >= 0; i-- {
		errs = append(errs, s.stops[i]())
	}
	return errors.Join(errs...)
}

func (s *stage) say(format string, args ...any) { fmt.Fprintf(s.out, "# "+format+"\n", args...) }

// name returns a file name without its ending that is unique in the stage's folder.
func (s *stage) name(kind string) string {
	s.named++
	return fmt.Sprintf("%s-%d", kind, s.named)
}

// database is PostgreSQL.
func (s *stage) database(ctx context.Context) (*database, error) {
	if s.pg != nil {
		return s.pg, nil
	}
	db, err := startDatabase(ctx, s.pooler, "2GB")
	if err != nil {
		return nil, err
	}
	s.stops = append(s.stops, db.stop)
	s.pg = db
	return db, nil
}

// openShop is PostgreSQL, and a service with the rows that the options say, in it too.
func (s *stage) openShop(ctx context.Context) (*database, *service, error) {
	db, err := s.database(ctx)
	if err != nil || s.shop != nil {
		return db, s.shop, err
	}
	s.say("starting a shop of %d orders, %d users, %d products", s.orders, s.users, s.products)
	v, err := startService(ctx, s, "--postgres", db.server.AdminDSN("postgres"), "--orders",
		strconv.Itoa(s.orders),
		"--users", strconv.Itoa(s.users), "--products", strconv.Itoa(s.products))
	if err != nil {
		return nil, nil, err
	}
	s.stops = append(s.stops, v.Kill)
	s.shop = v
	s.say("the shop has %d orders and %d items", v.orders, v.items)
	return db, v, db.exec(ctx, "postgres", "VACUUM (FREEZE, ANALYZE)", "CHECKPOINT")
}
