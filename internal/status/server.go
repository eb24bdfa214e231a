package status

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"go.uber.org/zap"

	"github.com/storestream/storestream/internal/rotation"
	"github.com/storestream/storestream/internal/terminal"
)

//go:embed page
var page embed.FS

const (
	// readTimeout is how long a client may take for a TLS handshake, and for a request.
	readTimeout = 10 * time.Second
	// writeTimeout is how long a reader may take for one answer or event before the server drops it.
	writeTimeout = 10 * time.Second
	// maxHeader bounds the first line and the headers of a request, in bytes. net/http lets headerSlack more
	// pass than it is asked for.
	maxHeader   = 16 << 10
	headerSlack = 4 << 10
)

// Config has the address of a Server, and the readers that it answers: the section http of the configuration.
type Config struct {
	Addr string // host:port
	// Hosts are names that the server is known by, beside those of loopback, Addr's own, and the address that a
	// connection leads to. "*" allows any name.
	Hosts []string
	// Token is the token that readers need for all paths but /healthz and /readyz. If it is not set, they need
	// none.
	Token rotation.Secret
	// CertFile and KeyFile are for HTTPS. If they are empty, the Server speaks HTTP. They are read again for
	// each connection.
	CertFile, KeyFile string
	// Rotation, if set, watches the certificate and masks secrets in the text of others.
	Rotation *rotation.Set
	Log      *zap.Logger // may be nil

	read time.Duration // zero means readTimeout. A test sets it so that it need not wait
}

// Server answers on one port: the page, /status.json, /events, /metrics, /healthz, /readyz.
type Server struct {
	board    *Board
	secrets  *rotation.Set
	guard    *guard
	listener net.Listener
	http     *http.Server
	stop     context.CancelFunc // ends the event streams, which Shutdown would wait for
	ended    chan struct{}
}

// Listen takes the port and answers from then on. For "127.0.0.1:0" the system chooses the port, see Addr.
func Listen(c Config, board *Board, metrics prometheus.Gatherer) (*Server, error) {
	c.Log = cmp.Or(c.Log, zap.NewNop())
	c.read = cmp.Or(c.read, readTimeout)
	var secure *tls.Config
	if c.CertFile != "" {
		var err error
		if secure, err = encryption(c); err != nil {
			return nil, err
		}
	}
	listener, err := net.Listen("tcp", c.Addr)
	if err != nil {
		return nil, fmt.Errorf("status server: http.listen %s: %w: set another port or address of this machine "+
			"(http.listen, STORESTREAM_HTTP__LISTEN, or --set http.listen=127.0.0.1:0 for any free port)", c.Addr, err)
	}
	if secure != nil {
		listener = tls.NewListener(listener, secure)
	}
	open, stop := context.WithCancel(context.Background())
	s := &Server{
		board: board, secrets: cmp.Or(c.Rotation, &rotation.Set{}), guard: newGuard(c.Addr, c.Hosts, c.Token),
		listener: listener, stop: stop, ended: make(chan struct{}),
	}
	s.http = &http.Server{
		Handler:           s.routes(promhttp.HandlerFor(metrics, promhttp.HandlerOpts{})),
		BaseContext:       func(net.Listener) context.Context { return open },
		ReadHeaderTimeout: c.read,
		ReadTimeout:       c.read,
		WriteTimeout:      writeTimeout,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    maxHeader - headerSlack,
		ConnState:         evictOldest(maxConnections),
		ErrorLog:          newErrorLog(c.Log),
		// net/http answers OPTIONS * by itself, without a look at the host and the token.
		DisableGeneralOptionsHandler: true,
	}
	go func() {
		defer close(s.ended)
		_ = s.http.Serve(listener) // http.ErrServerClosed: only Close ends it
	}()
	return s, nil
}

// Addr returns the address that the Server listens on.
func (s *Server) Addr() string { return s.listener.Addr().String() }

// Close ends all connections, gives unfinished answers a second, and returns when all of its goroutines have
// ended.
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

// routes answers /healthz and /readyz to everybody, and the rest to readers that have the token. It compares
// paths itself: a ServeMux redirects paths with an empty element or dots before any handler sees them. So it
// would tell readers without a token which paths there are, and lead browsers to a stranger's link.
//
// Every answer tells the browser that the page loads nothing from elsewhere, that no other page may frame it,
// and not to keep it.
func (s *Server) routes(metrics http.Handler) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", "default-src 'none'; img-src data:; script-src 'self'; style-src 'self'; "+
			"connect-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'")
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cache-Control", "no-store")
		if s.guard.refuses(w, r) {
			return
		}
		switch path := r.URL.Path; {
		case r.Method != http.MethodGet && r.Method != http.MethodHead:
			h.Set("Allow", "GET, HEAD")
			answer(w, http.StatusMethodNotAllowed, "expected GET")
		case path == "/healthz":
			answer(w, http.StatusOK, "ok")
		case path == "/readyz":
			s.ready(w, r)
		case s.guard.asksForToken(w, r):
		case path == "/status.json":
			s.status(w, r)
		case path == "/events":
			s.events(w, r)
		case path == "/metrics":
			metrics.ServeHTTP(w, r)
		default:
			file(w, r)
		}
	}
}

// file answers with a file of the page.
func file(w http.ResponseWriter, r *http.Request) {
	name := "page" + r.URL.Path
	if r.URL.Path == "/" {
		name = "page/index.html"
	}
	content, err := page.ReadFile(name)
	if err != nil {
		http.NotFound(w, r)
		return
	}
	http.ServeContent(w, r, name, time.Time{}, bytes.NewReader(content))
}

func answer(w http.ResponseWriter, code int, lines ...string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(code)
	text := strings.TrimSuffix(strings.Join(lines, "\n"), "\n")
	_, _ = fmt.Fprintln(w, terminal.Escape(text)) // a reader that has gone does not matter
}

func (s *Server) ready(w http.ResponseWriter, r *http.Request) {
	ok, lines := s.shown(r, s.board.Snapshot()).Ready()
	code, word := http.StatusOK, "ready"
	if !ok {
		code, word = http.StatusServiceUnavailable, "not ready"
	}
	answer(w, code, word, s.secrets.Hide(strings.Join(lines, "\n")))
}

// shown returns the part of a snapshot that the sender of r may see.
func (s *Server) shown(r *http.Request, snapshot Snapshot) Snapshot {
	if s.guard.trusts(r) {
		return snapshot
	}
	return snapshot.public()
}

// clean returns a writer to w that escapes control characters in the text of others, which may be read on a
// terminal, and masks the secrets in it.
func (s *Server) clean(w io.Writer) io.Writer {
	return &terminal.Writer{W: w, Hide: s.secrets.HideJSON}
}

func (s *Server) status(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	enc := json.NewEncoder(s.clean(w))
	enc.SetIndent("", "  ")
	_ = enc.Encode(s.shown(r, s.board.Document())) // a reader that has gone does not matter
}

// events sends one page its events: "status" at once and then every second (a Snapshot), and "latest" when
// rows were published ([]Upsert). It ends when the reader has gone or is too slow.
func (s *Server) events(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/event-stream")
	page, control := s.clean(w), http.NewResponseController(w)
	if control.SetReadDeadline(time.Time{}) != nil { // the server would take its own for the reader's end
		return
	}
	send := func(event string, what any) error {
		text, err := json.Marshal(what)
		if err == nil {
			_, err = fmt.Fprintf(page, "event: %s\ndata: %s\n\n", event, text)
		}
		return err
	}
	ticker := time.NewTicker(time.Second)
	defer ticker.Stop()
	hasLatest := -1         // the version that the page has
	for s.guard.admits(r) { // the token may have been replaced meanwhile
		err := errors.Join(control.SetWriteDeadline(time.Now().Add(writeTimeout)),
			send("status", s.shown(r, s.board.Snapshot())))
		if latest, version := s.board.feed.latest(); version != hasLatest {
			err, hasLatest = errors.Join(err, send("latest", latest)), version
		}
		if errors.Join(err, control.Flush()) != nil {
			return
		}
		select {
		case <-r.Context().Done(): // the reader has gone, or the server closes
			return
		case <-ticker.C:
		}
	}
}
