package status

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/storestream/storestream/internal/health"
	"github.com/storestream/storestream/internal/rotation"
	"github.com/storestream/storestream/internal/standins/servers"
	"github.com/storestream/storestream/internal/watermark"
)

const secretError = "failed to connect to user=student_ro database=store: db.internal refused"

// failing is a board of an instance that fails in every way that has a text.
func failing() *Board {
	board := New("a-1", "v0")
	board.Provide(func() Snapshot {
		return Snapshot{
			Waiting: "broker " + secretError, Notices: []string{secretError},
			Resources: []health.Resource{{Name: "orders", Owned: true,
				Trouble:  &watermark.Trouble{Why: secretError, Failing: true},
				Policies: watermark.Policies{"fingerprint of student_ro"},
				Sweep:    &watermark.Sweep{Failure: secretError},
				Sweeping: &health.Sweeping{Error: secretError},
				Settling: &health.Settling{Days: []health.Days{{From: "2026-11-20", State: "not_closed",
					Why: secretError}}}}},
		}
	})
	return board
}

func listen(t *testing.T, c Config, board *Board) *Server {
	t.Helper()
	if c.Addr == "" {
		c.Addr = "127.0.0.1:0"
	}
	s, err := Listen(c, board, prometheus.NewRegistry())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		http.DefaultClient.CloseIdleConnections()
	})
	return s
}

// from is what a client at remote gets for a path, which reached the server at 10.1.2.3. host and
// authorization are headers of the request.
func (s *Server) from(remote, path, host, authorization string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodGet, path, http.NoBody)
	r.Host = host
	if authorization != "" {
		r.Header.Set("Authorization", authorization)
	}
	end := &net.TCPAddr{IP: net.IPv4(10, 1, 2, 3), Port: 8080}
	r = r.WithContext(context.WithValue(r.Context(), http.LocalAddrContextKey, net.Addr(end)))
	r.RemoteAddr = net.JoinHostPort(remote, "40000")
	w := httptest.NewRecorder()
	s.http.Handler.ServeHTTP(w, r)
	return w
}

func TestAHostThatIsNotTheServersIsRefusedAndNotRepeated(t *testing.T) {
	for _, test := range []struct {
		host  string
		hosts []string
		code  int
	}{
		{"127.0.0.1:8080", nil, 200},
		{"127.8.8.8", nil, 200},
		{"localhost:9", nil, 200},
		{"LocalHost.", nil, 200},
		{"[::1]:8080", nil, 200},
		{"10.1.2.3:8080", nil, 200}, // the connection's own address, as a kubelet's probe has it
		{"10.1.2.4:8080", nil, 421},
		{"[::ffff:10.1.2.3]:8080", nil, 200},
		{"evil.example", nil, 421},
		{"evil.example:8080", []string{"status.shop.example"}, 421},
		{"localhost.evil.example", nil, 421},
		{"status.shop.example:443", []string{"other", "Status.Shop.Example"}, 200},
		{"10.1.2.4:8080", []string{"10.1.2.4"}, 200},
		{"evil.example", []string{"*"}, 200},
		{"", nil, 200},
	} {
		s := listen(t, Config{Hosts: test.hosts}, New("a-1", "v0"))
		for _, path := range []string{"/healthz", "/status.json", "/metrics", "/"} {
			w := s.from("10.9.9.9", path, test.host, "")
			if w.Code != test.code {
				t.Errorf("%s with Host %q and http.hosts %q: %d, expected %d", path, test.host, test.hosts, w.Code,
					test.code)
			}
			body := w.Body.String()
			if w.Code == 421 && (!strings.Contains(body, "http.hosts") || strings.Contains(body, "evil")) {
				t.Errorf("%q: expected a text that names http.hosts and nothing of the request", body)
			}
		}
	}
}

func TestTheListenAddressesOwnNameIsKnown(t *testing.T) {
	g := newGuard("status.shop.example:8080", nil, rotation.Secret{})
	r := httptest.NewRequest(http.MethodGet, "http://status.shop.example/", http.NoBody)
	if !g.knows(r) {
		t.Error("the name that it listens on is refused")
	}
	g = newGuard("0.0.0.0:8080", nil, rotation.Secret{})
	if r.Host = "0.0.0.0:8080"; g.knows(r) {
		t.Error("0.0.0.0 is nobody's name")
	}
}

func TestPagesWithATokenAreForWhoeverHasIt(t *testing.T) {
	s := listen(t, Config{Token: rotation.Literal("0123456789abcdef")}, failing())
	for _, test := range []struct {
		path, authorization string
		code                int
	}{
		{"/healthz", "", 200},
		{"/readyz", "", 503},
		{"/", "", 401},
		{"/status.json", "", 401},
		{"/events", "", 401},
		{"/metrics", "", 401},
		{"/metrics", "Bearer 0123456789abcdeg", 401},
		{"/metrics", "Bearer ", 401},
		{"/metrics", "Bearer", 401},
		{"/metrics", "0123456789abcdef", 401},
		{"/metrics", "Bearer 0123456789abcdef", 200},
		{"/metrics", "bearer 0123456789abcdef", 200},
		{"/status.json", "Basic " + basic("anybody:0123456789abcdef"), 200}, // as a browser sends it
		{"/status.json", "Basic " + basic("0123456789abcdef:"), 401},
	} {
		w := s.from("127.0.0.1", test.path, "127.0.0.1", test.authorization)
		if w.Code != test.code {
			t.Errorf("%s with %q: %d, expected %d", test.path, test.authorization, w.Code, test.code)
		}
		asks := strings.Join(w.Result().Header.Values("WWW-Authenticate"), ", ")
		if w.Code == 401 && (!strings.Contains(asks, "Bearer") || !strings.Contains(asks, "Basic")) {
			t.Errorf("WWW-Authenticate %q: a browser would not ask for the token", asks)
		}
	}
}

// ServeMux redirects such paths by itself, before anybody asks for a token.
func TestAPathThatIsNotWrittenAsOursIsAskedForTheTokenAndNeverRedirected(t *testing.T) {
	const token = "0123456789abcdef"
	s := listen(t, Config{Token: rotation.Literal(token)}, failing())
	open := listen(t, Config{}, failing())
	for _, path := range []string{"//status.json", "/./status.json", "/x/../status.json", "/status.json/..",
		"//evil.example/..", "/%2fevil.example/%2e%2e", "//", "///", "/uplot//uPlot.min.css", "/metrics//",
		"//healthz", "/x/../readyz", "/.."} {
		stranger := s.from("10.9.9.9", path, "localhost", "")
		reader := s.from("10.9.9.9", path, "localhost", "Bearer "+token)
		anybody := open.from("10.9.9.9", path, "localhost", "")
		if stranger.Code != 401 || reader.Code != 404 || anybody.Code != 404 {
			t.Errorf("%s: %d, with the token %d, where there is none %d; expected 401, 404, 404", path,
				stranger.Code, reader.Code, anybody.Code)
		}
		for _, w := range []*httptest.ResponseRecorder{stranger, reader, anybody} {
			if to := w.Header().Get("Location"); to != "" {
				t.Errorf("%s leads to %s", path, to)
			}
		}
	}
	for _, path := range []string{"/", "/status.json", "/page.js"} {
		if w := s.from("10.9.9.9", path, "localhost", "Bearer "+token); w.Code != 200 {
			t.Errorf("%s: %d", path, w.Code)
		}
	}
}

// A page whose figures are masked is a page that is not drawn.
func TestAFigureThatReadsLikeASecretIsShown(t *testing.T) {
	hidden := rotation.NewHidden("")
	hidden.Add("registry.password", "47114711")
	board := New("a-1", "v0")
	board.Provide(func() Snapshot {
		return Snapshot{Waiting: "sent 47114711", Resources: []health.Resource{{Name: "orders", Rows: 47114711}}}
	})
	s := listen(t, Config{Rotation: &rotation.Set{Hidden: hidden}}, board)
	var got Snapshot
	body := s.from("127.0.0.1", "/status.json", "localhost", "").Body.Bytes()
	if err := json.Unmarshal(body, &got); err != nil || got.Resources[0].Rows != 47114711 ||
		got.Waiting != "sent "+rotation.Mask {
		t.Errorf("%v: %s", err, body)
	}
}

func basic(pair string) string {
	r := &http.Request{Header: http.Header{}}
	user, password, _ := strings.Cut(pair, ":")
	r.SetBasicAuth(user, password)
	return strings.TrimPrefix(r.Header.Get("Authorization"), "Basic ")
}

func TestAStrangerLearnsThatSomethingFailsAndNotWhichHostUserOrDatabase(t *testing.T) {
	for _, test := range []struct {
		token, authorization, remote string
		sees                         bool
	}{
		{"", "", "10.9.9.9", false},
		{"", "", "127.0.0.1", true},
		{"0123456789abcdef", "Bearer 0123456789abcdef", "10.9.9.9", true},
	} {
		s := listen(t, Config{Token: rotation.Literal(test.token)}, failing())
		for _, path := range []string{"/status.json", "/readyz"} {
			body := s.from(test.remote, path, "127.0.0.1", test.authorization).Body.String()
			if got := strings.Contains(body, "student_ro"); got != test.sees {
				t.Errorf("%s from %s with %q shows the error: %v\n%s", path, test.remote, test.authorization, got, body)
			}
			if !test.sees && !strings.Contains(body, hidden) {
				t.Errorf("%s does not say that something is hidden:\n%s", path, body)
			}
		}
	}
}

// streamed is a reader who goes after the first events.
type streamed struct {
	*httptest.ResponseRecorder
	goes context.CancelFunc
}

func (streamed) SetReadDeadline(time.Time) error  { return nil }
func (streamed) SetWriteDeadline(time.Time) error { return nil }
func (s streamed) Flush()                         { s.goes() }

func TestAStreamToAStrangerHidesWhatThePageHides(t *testing.T) {
	s := listen(t, Config{}, failing())
	ctx, goes := context.WithCancel(t.Context())
	r := httptest.NewRequestWithContext(ctx, http.MethodGet, "http://127.0.0.1/events", http.NoBody)
	r.RemoteAddr = "10.9.9.9:40000"
	w := streamed{httptest.NewRecorder(), goes}
	s.http.Handler.ServeHTTP(w, r)
	if body := w.Body.String(); strings.Contains(body, "student_ro") || !strings.Contains(body, hidden) {
		t.Error(body)
	}
}

// answered sends text over a connection, and returns what comes back up to the body.
func answered(t *testing.T, conn net.Conn, text string) *http.Response {
	t.Helper()
	t.Cleanup(func() { _ = conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(20 * time.Second)); err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(conn, text); err != nil {
		t.Fatal(err)
	}
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatalf("%.200q: %v", text, err)
	}
	return resp
}

func dial(t *testing.T, addr string) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	return conn
}

func TestHeadersOfMoreThan16KiBAreRefused(t *testing.T) {
	addr := listen(t, Config{}, New("a-1", "v0")).Addr()
	for size, code := range map[int]int{16 << 10: http.StatusOK,
		16<<10 + 1: http.StatusRequestHeaderFieldsTooLarge} {
		const frame = "GET /healthz HTTP/1.1\r\nHost: localhost\r\nX-A: %s\r\n\r\n"
		text := fmt.Sprintf(frame, strings.Repeat("x", size-len(frame)+len("%s")))
		if resp := answered(t, dial(t, addr), text); resp.StatusCode != code {
			t.Errorf("%d bytes: %d, expected %d", len(text), resp.StatusCode, code)
		}
	}
}

func TestABodyIsRefusedUnreadAndItsConnectionCloses(t *testing.T) {
	addr := listen(t, Config{}, New("a-1", "v0")).Addr()
	for _, head := range []string{
		"POST /status.json HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000000000\r\n\r\nplanted",
		"GET /metrics HTTP/1.1\r\nHost: localhost\r\nContent-Length: 7\r\n\r\n",
		"PUT / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n",
		"GET /healthz HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n",
	} {
		conn := dial(t, addr)
		resp := answered(t, conn, head) // and no more: the answer must not wait for the rest
		body, err := io.ReadAll(resp.Body)
		if err != nil || resp.StatusCode != http.StatusRequestEntityTooLarge || !resp.Close ||
			strings.Contains(string(body), "planted") {
			t.Errorf("%q: %v, %d, closes %v: %s", head, err, resp.StatusCode, resp.Close, body)
		}
		if n, err := conn.Read(make([]byte, 1)); err == nil {
			t.Errorf("%q: %d bytes behind the answer", head, n)
		}
	}
}

// Each attack holds more connections than the server keeps, from the address that the probes come from too.
func TestNoClientKeepsTheProbesFromTheirAnswers(t *testing.T) {
	for _, attack := range []struct {
		name, sends string
	}{
		{"announces a body and stops", "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\n"},
		{"drips headers", "GET / HTTP/1.1\r\nHost: localhost\r\nX-A: "},
		{"says nothing", ""},
		{"opens event streams", "GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n"},
		{"does not read its answers", strings.Repeat("GET /page.js HTTP/1.1\r\nHost: localhost\r\n\r\n", 200)},
	} {
		t.Run(attack.name, func(t *testing.T) {
			board := New("a-1", "v0")
			board.Provide(func() Snapshot { return Snapshot{} })
			s := listen(t, Config{read: time.Hour}, board) // which ends none of them
			oldest := dial(t, s.Addr())
			_, _ = io.WriteString(oldest, attack.sends)
			var conns sync.WaitGroup
			for range maxConnections + 20 {
				conns.Go(func() {
					conn, err := net.Dial("tcp", s.Addr())
					if err != nil {
						t.Error(err)
						return
					}
					t.Cleanup(func() { _ = conn.Close() })
					_, _ = io.WriteString(conn, attack.sends) // the server may have closed it by now
				})
			}
			conns.Wait()
			ends(t, oldest)
			for _, path := range []string{"/healthz", "/readyz", "/metrics", "/status.json"} {
				if code, body, _ := get(t, "http://"+s.Addr()+path); code != http.StatusOK {
					t.Errorf("%s: %d %s", path, code, body)
				}
			}
			resp := answered(t, dial(t, s.Addr()), "GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n")
			if resp.StatusCode != http.StatusOK {
				t.Fatalf("a page: %v", resp)
			}
			if line, err := bufio.NewReader(resp.Body).ReadString('\n'); line != "event: status\n" {
				t.Errorf("a page gets %q, %v", line, err)
			}
		})
	}
}

// ends reads until the server has closed a connection.
func ends(t *testing.T, conn net.Conn) {
	t.Helper()
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(20 * time.Second)); err != nil { // for a server that never does
		t.Fatal(err)
	}
	if _, err := io.Copy(io.Discard, conn); errors.Is(err, os.ErrDeadlineExceeded) {
		t.Error("the server keeps the connection")
	}
}

func TestHalfARequestEndsWithTheTimeThatItMayTake(t *testing.T) {
	s := listen(t, Config{read: 50 * time.Millisecond}, New("a-1", "v0"))
	for _, half := range []string{"", "GET / HT", "GET / HTTP/1.1\r\nHost: localhost\r\nX-A: "} {
		conn := dial(t, s.Addr())
		if _, err := io.WriteString(conn, half); err != nil {
			t.Fatal(err)
		}
		ends(t, conn)
	}
}

// peer is a connection of a client.
type peer struct {
	net.Conn
	client string
	closed bool
}

func (p *peer) RemoteAddr() net.Addr { return &net.TCPAddr{IP: net.ParseIP(p.client), Port: 40000} }
func (p *peer) Close() error         { p.closed = true; return nil }

func TestWhereThereIsNoRoomTheClientWithTheMostConnectionsLosesItsOldest(t *testing.T) {
	var all []*peer
	state := evictOldest(4)
	comes := func(client string, closed ...int) {
		t.Helper()
		p := &peer{client: client}
		all = append(all, p)
		state(p, http.StateNew)
		for i, p := range all {
			if p.closed != slices.Contains(closed, i) {
				t.Errorf("after %d connections: connection %d of %s is closed: %v", len(all), i, p.client, p.closed)
			}
		}
	}
	comes("10.0.0.1")
	comes("10.0.0.2")
	comes("10.0.0.2")
	comes("10.0.0.3")
	comes("10.0.0.2", 1)
	state(all[1], http.StateClosed)
	comes("10.0.0.4", 1, 2)
	state(all[0], http.StateClosed) // by itself: there is room
	comes("10.0.0.5", 1, 2)
}

// Deadlines of a request must not end the stream that it asked for.
func TestAStreamOutlivesTheTimeThatARequestMayTake(t *testing.T) {
	s := listen(t, Config{read: 300 * time.Millisecond}, New("a-1", "v0"))
	resp, err := http.Get("http://" + s.Addr() + "/events")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	lines, events := bufio.NewScanner(resp.Body), 0
	for events < 3 && lines.Scan() {
		if lines.Text() == "event: status" {
			events++
		}
	}
	if events < 3 {
		t.Errorf("it ended after %d events: %v", events, lines.Err())
	}
}

func TestHTTPSAndACertificateThatIsRenewedWhileItRuns(t *testing.T) {
	a := servers.AuthorityForTest(t, t.TempDir())
	made := a.Issue(servers.CertificateConfig{})
	mount := servers.MountForTest(t, t.TempDir(), a.Files(made))
	c := Config{Addr: "127.0.0.1:0", CertFile: mount.Path("cert"), KeyFile: mount.Path("key")}
	s := listen(t, c, New("a-1", "v0"))
	shows := func(what string) {
		t.Helper()
		conn, err := tls.Dial("tcp", s.Addr(), &tls.Config{RootCAs: a.Pool, MinVersion: tls.VersionTLS12})
		if err != nil {
			t.Fatal(err)
		}
		if resp := answered(t, conn, "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"); resp.StatusCode != 200 {
			t.Fatal(resp.Status)
		}
		if !conn.ConnectionState().PeerCertificates[0].Equal(made.Pair.Leaf) {
			t.Errorf("another certificate is shown, expected %s", what)
		}
	}
	shows("its own")
	made = a.Issue(servers.CertificateConfig{})
	mount.Swap(a.Files(made))
	shows("the renewed one")
	broken := a.Files(a.Issue(servers.CertificateConfig{}))
	broken["key"] = "half written"
	mount.Swap(broken)
	shows("the last good one")
	_, err := Listen(c, New("a-1", "v0"), prometheus.NewRegistry())
	if err == nil || !strings.Contains(err.Error(), "http.tls") {
		t.Errorf("a start with a broken key: %v", err)
	}
}

func TestWhatStrangersMakeTheServerSayIsAFewLinesOfTheLog(t *testing.T) {
	core, lines := observer.New(zap.DebugLevel)
	to := newErrorLog(zap.New(core))
	for i := range 1000 {
		to.Printf("http: TLS handshake error from [2001:db8::%x]:40000: EOF %s", i, strings.Repeat("x", 5000))
	}
	all := lines.All()
	if len(all) < errorLines || len(all) > 2*errorLines { // a minute may end meanwhile
		t.Errorf("%d lines", len(all))
	}
	for _, line := range all {
		if said := fmt.Sprint(line.ContextMap()["said"]); len(said) > errorLength {
			t.Errorf("a line of %d bytes", len(said))
		}
	}
}

func TestATokenThatIsRotatedIsAskedForAtOnceAndEndsOpenPages(t *testing.T) {
	const first, second = "0123456789abcdef", "fedcba9876543210"
	mount := servers.MountForTest(t, t.TempDir(), map[string]string{"token": first})
	token, err := rotation.Follow(nil, "http.token", mount.Path("token"), nil)
	if err != nil {
		t.Fatal(err)
	}
	s := listen(t, Config{Token: token}, failing())
	get := func(token, path string) *http.Response {
		t.Helper()
		return answered(t, dial(t, s.Addr()), "GET "+path+" HTTP/1.1\r\nHost: localhost\r\n"+
			"Authorization: Bearer "+token+"\r\n\r\n")
	}
	open := get(first, "/events")
	mount.Swap(map[string]string{"token": second})
	if old, now := get(first, "/status.json"), get(second, "/status.json"); old.StatusCode != 401 ||
		now.StatusCode != 200 {
		t.Errorf("the old token gets %d, the new one %d", old.StatusCode, now.StatusCode)
	}
	if _, err := io.Copy(io.Discard, open.Body); err != nil { // until the server ends it
		t.Errorf("a page that is open under the old token: %v", err)
	}
}

// Whoever empties or removes the file wants the token in it to end, and may not have a new one yet.
func TestATokenWhoseFileCannotBeUsedLetsNobodyInAndTheLogSaysSo(t *testing.T) {
	const first, second = "0123456789abcdef", "fedcba9876543210"
	for name, broken := range map[string]map[string]string{"missing": {}, "empty": {"token": ""},
		"blank": {"token": " \n"}, "half written": {"token": "0123456"}} {
		t.Run(name, func(t *testing.T) {
			mount := servers.MountForTest(t, t.TempDir(), map[string]string{"token": first})
			core, logs := observer.New(zap.InfoLevel)
			files := &rotation.Set{}
			files.Log = zap.New(core)
			token, err := rotation.Follow(files, "http.token", mount.Path("token"), func(text string) error {
				if len(text) < 16 {
					return errors.New("expected 16 characters or more")
				}
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
			s := listen(t, Config{Token: token, Rotation: files}, failing())
			get := func(authorization string) *http.Response {
				t.Helper()
				return answered(t, dial(t, s.Addr()), "GET /events HTTP/1.1\r\nHost: localhost\r\n"+
					authorization+"\r\n")
			}
			const bearer = "Authorization: Bearer "
			open := get(bearer + first + "\r\n")
			mount.Swap(broken)
			for _, authorization := range []string{bearer + first + "\r\n", bearer + "\r\n",
				"Authorization: Basic Og==\r\n", ""} { // a name and a password, both empty
				if r := get(authorization); r.StatusCode != http.StatusUnauthorized {
					t.Errorf("%q gets %d", authorization, r.StatusCode)
				}
			}
			if _, err := io.Copy(io.Discard, open.Body); err != nil { // until the server ends it
				t.Errorf("a page that is open: %v", err)
			}
			told := logs.FilterMessageSnippet("a file cannot be used").All()
			if len(told) != 1 || told[0].ContextMap()["setting"] != "http.token" {
				t.Errorf("the log has %v", logs.All())
			}
			mount.Swap(map[string]string{"token": second})
			if old, now := get(bearer+first+"\r\n"), get(bearer+second+"\r\n"); old.StatusCode != 401 ||
				now.StatusCode != 200 {
				t.Errorf("the old token gets %d, the new one %d", old.StatusCode, now.StatusCode)
			}
		})
	}
}
