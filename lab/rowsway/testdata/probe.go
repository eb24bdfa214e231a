// This file is laid over the program's main package while the lab compiles it (go build -overlay). It lets
// the test look into the program: where its goroutines stand, and which of its code has run.

package config

import (
	"net"
	"net/http"
	"os"
	"runtime"
	"runtime/coverage"
)

func init() {
	listener, err := net.Listen("unix", os.Getenv("ROWSWAY_SOCKET"))
	if err != nil {
		panic(err)
	}
	answer := func(w http.ResponseWriter, err error) {
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
		}
	}
	http.HandleFunc("/stacks", func(w http.ResponseWriter, _ *http.Request) {
		text := make([]byte, 1<<22)
		_, err := w.Write(text[:runtime.Stack(text, true)])
		answer(w, err)
	})
	http.HandleFunc("/clear", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, coverage.ClearCounters())
	})
	http.HandleFunc("/counters", func(w http.ResponseWriter, r *http.Request) {
		if err := coverage.WriteMetaDir(r.FormValue("dir")); err != nil {
			answer(w, err)
			return
		}
		answer(w, coverage.WriteCountersDir(r.FormValue("dir")))
	})
	go func() { panic(http.Serve(listener, nil)) }()
}
