package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"time"

	"github.com/spf13/pflag"

	"github.com/storestream/storestream/internal/storefake"
)

// serveService is the process of the stand-in service, without any limit, with a second port over which rows are changed.
func serveService(ctx context.Context, args []string, stdout io.Writer) error {
	var c storefake.Config
	var clock, order string
	f := pflag.NewFlagSet("bench service", pflag.ContinueOnError)
	f.StringVar(&c.Database.DSN, "postgres", "", "")
	f.IntVar(&c.Size.Orders, "orders", 0, "")
	f.IntVar(&c.Size.Users, "users", 0, "")
	f.IntVar(&c.Size.Products, "products", 0, "")
	f.IntVar(&c.Size.Days, "days", 0, "")
	f.StringVar(&clock, "clock", "", "")
	f.StringVar(&order, "order", "", "")
	err := f.Parse(args)
	if err != nil {
		return err
	}
	if clock != "" {
		if c.Start, err = time.Parse(time.RFC3339, clock); err != nil {
			return err
		}
	}
	c.Readings.Order = storefake.Order(order)
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
	fmt.Fprintf(stdout, "ready %s http://%s %d %d\n", fake.BaseURL(), listener.Addr(), fake.Count(storefake.Orders), fake.Count(storefake.OrderItems))
	if err := control.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// touches changes n rows of a resource, spread over the table, in one transaction: GET /RESOURCE/N answers when they are visible. GET /requests says how
// many requests for rows were answered so far.
func touches(fake *storefake.Fake) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("/requests", func(w http.ResponseWriter, _ *http.Request) {
		n := 0
		for resource, byStatus := range fake.Counts() {
			for _, count := range byStatus {
				if resource != "key" {
					n += count
				}
			}
		}
		fmt.Fprint(w, n)
	})
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
