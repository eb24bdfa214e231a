package status

import (
	"context"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

//go:embed page
var page embed.FS

const (
	// maxWatchers bounds how many pages get events at a time. Each costs a goroutine and some kilobytes a
	// second.
	maxWatchers = 64
	// writeTimeout is how long a reader may take for one answer or event before the server drops it.
	writeTimeout = 10 * time.Second
)

// Server answers on one port: the page, /status.json, /events, /metrics, /healthz, /readyz.
type Server struct {
	board    *Board
	listener net.Listener
	http     *http.Server
	closing  <-chan struct{} // ends the event streams, which Shutdown would wait for
	stop     context.CancelFunc
	watchers chan struct{}
	ended    chan struct{}
}

// Listen takes the port and answers from then on. For "127.0.0.1:0" the system chooses the port, see Addr.
func Listen(addr string, board *Board, metrics prometheus.Gatherer) (*Server, error) {
	listener, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("status server: http.listen %s: %w: "+
			"expected an address of this machine with a free port", addr, err)
	}
	sampling, stop := context.WithCancel(context.Background())
	s := &Server{
		board: board, listener: listener, closing: sampling.Done(), stop: stop,
		watchers: make(chan struct{}, maxWatchers), ended: make(chan struct{}),
	}
	s.http = &http.Server{
		Handler:           s.routes(metrics),
		ReadHeaderTimeout: writeTimeout,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    16 << 10,
	}
	sampled := make(chan struct{})
	go func() { defer close(sampled); board.sample(sampling) }()
	go func() {
		defer close(s.ended)
		_ = s.http.Serve(listener) // http.ErrServerClosed: only Close ends it
		<-sampled
	}()
	return s, nil
}

// Addr is where it listens.
func (s *Server) Addr() string { return s.listener.Addr().String() }

// Close ends all connections, gives unfinished answers a second, and returns when nothing is left running.
func (s *Server) Close() error {
	s.stop()
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	err := s.http.Shutdown(ctx)
	if errors.Is(err, context.DeadlineExceeded) {
		err = s.http.Close()
	}
	<-s.ended
	return err
}

func (s *Server) routes(metrics prometheus.Gatherer) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, http.StatusOK, "ok")
	})
	mux.HandleFunc("GET /readyz", s.ready)
	mux.HandleFunc("GET /status.json", s.status)
	mux.HandleFunc("GET /events", s.events)
	mux.Handle("GET /metrics", promhttp.HandlerFor(metrics, promhttp.HandlerOpts{}))
	files, err := fs.Sub(page, "page")
	if err != nil {
		panic(err) // the name is valid
	}
	mux.Handle("GET /", onlyFiles(http.FileServerFS(files)))
	return safe(mux)
}

// onlyFiles serves the page and its files, and lists no folders.
func onlyFiles(files http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/" && strings.HasSuffix(r.URL.Path, "/") {
			http.NotFound(w, r)
			return
		}
		files.ServeHTTP(w, r)
	})
}

// safe tells the browser with every answer that the page loads nothing from elsewhere, that no other page may
// frame it, and not to keep it.
func safe(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", "default-src 'none'; img-src data:; script-src 'self'; style-src 'self'; "+
			"connect-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'")
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cache-Control", "no-store")
		next.ServeHTTP(w, r)
	})
}

func answer(w http.ResponseWriter, code int, lines ...string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(code)
	_, _ = fmt.Fprintln(w, strings.Join(lines, "\n")) // a reader that has gone does not matter
}

func (s *Server) ready(w http.ResponseWriter, _ *http.Request) {
	snapshot := s.board.Snapshot()
	if ok, why := snapshot.Ready(); !ok {
		answer(w, http.StatusServiceUnavailable, append([]string{"not ready"}, why...)...)
		return
	}
	answer(w, http.StatusOK, append([]string{"ready"}, snapshot.Unpolled()...)...)
}

func (s *Server) status(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	_ = enc.Encode(s.board.Document()) // a reader that has gone does not matter
}

// events sends one page its events: "status" at once and then every second (a Snapshot), "latest" when rows
// were published ([]Upsert) and "history" when it has grown (a History).
func (s *Server) events(w http.ResponseWriter, r *http.Request) {
	select {
	case s.watchers <- struct{}{}:
		defer func() { <-s.watchers }()
	default:
		answer(w, http.StatusServiceUnavailable, fmt.Sprintf("%d pages are open already", maxWatchers))
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	stream := &stream{w: w, control: http.NewResponseController(w), board: s.board, history: -1, latest: -1}
	ticker := time.NewTicker(time.Second)
	defer ticker.Stop()
	for stream.round() == nil {
		select {
		case <-r.Context().Done():
			return
		case <-s.closing:
			return
		case <-ticker.C:
		}
	}
}
