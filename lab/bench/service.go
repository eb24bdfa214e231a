package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"
	"time"

	"github.com/spf13/pflag"

	"github.com/storestream/storestream/internal/standins/storefake"
)

// service is a stand-in service in a process of its own.
type service struct {
	*child
	base, control string
	orders, items int
}

func startService(ctx context.Context, s *stage, args ...string) (*service, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	c, err := spawn(s.dir, s.name("service"), self, nil, append([]string{"service"}, args...)...)
	if err != nil {
		return nil, err
	}
	line, err := c.ready(ctx)
	if err != nil {
		return nil, errors.Join(err, c.Kill())
	}
	orders, err1 := strconv.Atoi(line[2])
	items, err2 := strconv.Atoi(line[3])
	return &service{child: c, base: line[0], control: line[1], orders: orders, items: items},
		errors.Join(err1, err2)
}

// touch has the service change n rows.
func (v *service) touch(ctx context.Context, resource string, n int) error {
	url := fmt.Sprintf("%s/%s/%d", v.control, resource, n)
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		return err
	}
	_ = response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", url, response.Status)
	}
	return nil
}

// serveService is the process of the stand-in service, without any limit, with a second port over which rows
// are changed.
func serveService(ctx context.Context, args []string, stdout io.Writer) error {
	var c storefake.Config
	var clock, order, fault string
	f := pflag.NewFlagSet("bench service", pflag.ContinueOnError)
	f.StringVar(&c.Database.DSN, "postgres", "", "")
	f.IntVar(&c.Size.Orders, "orders", 0, "")
	f.IntVar(&c.Size.Users, "users", 0, "")
	f.IntVar(&c.Size.Products, "products", 0, "")
	f.IntVar(&c.Size.Days, "days", 0, "")
	f.StringVar(&clock, "clock", "", "")
	f.StringVar(&order, "order", "", "")
	f.StringVar(&fault, "fault", "", "")
	err := f.Parse(args)
	if err == nil && clock != "" {
		c.Start, err = time.Parse(time.RFC3339, clock)
	}
	if err != nil {
		return err
	}
	c.Readings.Order = storefake.Order(order)
	if fault != "" { // every data request meets it
		c.Faults.Shares = map[storefake.Fault]float64{storefake.Fault(fault): 1}
	}
	fake, err := storefake.Start(ctx, c)
	if err != nil {
		return err
	}
	defer fake.Close()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	control := &http.Server{Handler: touches(fake), ReadHeaderTimeout: time.Second}
	context.AfterFunc(ctx, func() { _ = control.Close() })
	fmt.Fprintf(stdout, "ready %s http://%s %d %d\n", fake.BaseURL(), listener.Addr(),
		fake.Count(storefake.Orders),
		fake.Count(storefake.OrderItems))
	if err := control.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// touches changes n rows of a resource, spread over the table, in one transaction: GET /RESOURCE/N answers
// when they are visible.
func touches(fake *storefake.Fake) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("/{resource}/{n}", func(w http.ResponseWriter, r *http.Request) {
		n, err := strconv.Atoi(r.PathValue("n"))
		if err == nil {
			err = touch(r.Context(), fake, r.PathValue("resource"), n)
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
		}
	})
	return mux
}

func touch(ctx context.Context, fake *storefake.Fake, resource string, n int) error {
	tx := fake.Begin()
	defer tx.Rollback(ctx)
	step := max(fake.Count(resource)/max(n, 1), 1)
	for i := range n {
		if err := tx.Update(ctx, resource, int64(1+i*step), func(storefake.Row) {}); err != nil {
			return err
		}
	}
	return tx.Commit(ctx)
}
