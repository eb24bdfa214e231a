package status

import (
	"bufio"
	"bytes"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/storestream/storestream/internal/health"
	"github.com/storestream/storestream/internal/rotation"
)

// FuzzRequests throws bytes at the port. Whatever they are, nothing panics, no answer is a 5xx but /readyz's
// 503 (and net/http's own 501 and 505 to codings and versions that HTTP/1.1 does not have), none repeats a
// body, whoever names another host is refused, and without the token only probes are answered.
func FuzzRequests(f *testing.F) {
	const body = "planted-in-a-body"
	for _, seed := range []string{
		"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
		"GET /readyz HTTP/1.0\r\n\r\n",
		"HEAD /metrics HTTP/1.1\r\nHost: localhost\r\nAccept-Encoding: gzip\r\n\r\n",
		"GET /status.json?a=" + body + " HTTP/1.1\r\nHost: evil.example\r\n\r\n",
		"POST /events HTTP/1.1\r\nHost: localhost\r\nContent-Length: 17\r\n\r\n" + body,
		"POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n11\r\n" + body + "\r\n0\r\n\r\n",
		"GET / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: gzip\r\n\r\n",
		"GET /../../etc/passwd HTTP/1.1\r\nHost: localhost\r\n\r\n",
		"GET /%00%ff/.. HTTP/1.1\r\nHost: localhost\r\n\r\n",
		"GET //evil.example/%2e%2e HTTP/1.1\r\nHost: localhost\r\n\r\n",
		"GET /page.js HTTP/1.1\r\nHost: localhost\r\nRange: bytes=5-1,0-0,-9\r\nIf-Range: x\r\n\r\n",
		"GET /page.js HTTP/1.1\r\nHost: [::1\r\nIf-Modified-Since: never\r\n\r\n",
		"GET http://localhost/ HTTP/1.1\r\nHost: other\r\nAuthorization: Basic !!!\r\n\r\n",
		"CONNECT localhost:1 HTTP/1.1\r\nHost: localhost:1\r\n\r\n",
		"OPTIONS * HTTP/1.1\r\nHost: localhost\r\n\r\n",
		"GET http://evil.example/ HTTP/1.1\r\nHost: localhost\r\n\r\n",
		"GET /metrics HTTP/1.1\r\nHost: localhost.evil.example\r\nX-Forwarded-Host: localhost\r\n\r\n",
		"GET /metrics HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer \r\nAuthorization: Basic Og==\r\n\r\n",
		"GET /status.json?token= HTTP/1.1\r\nHost: localhost\r\nAuthorization: bearer\r\nCookie: token=\r\n\r\n",
		"GET /healthz/../metrics HTTP/1.1\r\nHost: localhost\r\n\r\n",
		"GET /%68ealthz HTTP/1.1\r\nHost: localhost\r\n\r\nHEAD /readyz HTTP/1.1\r\nHost: localhost\r\n\r\n" +
			"GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n",
		"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
		"\x16\x03\x01\x00\xa5\x01\x00\x00",
	} {
		f.Add([]byte(seed))
	}
	board := New("a-1", "v0")
	board.Provide(func() Snapshot {
		return Snapshot{Resources: []health.Resource{{Name: "orders", Owned: true}}}
	})
	core, lines := observer.New(zap.DebugLevel)
	const token = "0123456789abcdef0123456789abcdef"
	var all []*Server // the first one is open
	for _, token := range []rotation.Secret{{}, rotation.Literal(token)} {
		s, err := Listen(Config{Addr: "127.0.0.1:0", Token: token, Log: zap.New(core)}, board,
			prometheus.NewRegistry())
		if err != nil {
			f.Fatal(err)
		}
		f.Cleanup(func() { _ = s.Close() })
		all = append(all, s)
	}
	f.Fuzz(func(t *testing.T, request []byte) {
		if bytes.Contains(request, []byte(token)) {
			return
		}
		for i, s := range all {
			for _, a := range exchange(t, s.Addr(), request) {
				if a.own && a.status >= 500 && !strings.HasPrefix(a.text, "not ready") && !(a.probe && a.head) {
					t.Errorf("%d %s", a.status, a.text)
				}
				if strings.Contains(a.text, body) && !bytes.Contains(request, []byte("?")) {
					t.Errorf("the answer repeats the body: %s", a.text)
				}
				if a.status < 400 && strings.Contains(a.host, "evil.example") {
					t.Errorf("%d to a request for %s: %s", a.status, a.host, a.text)
				}
				if open := i == 0; !open && a.status < 400 && !a.probe {
					t.Errorf("%d to whoever has no token: %s", a.status, a.text)
				}
			}
		}
		for _, line := range lines.TakeAll() {
			if strings.Contains(line.Message+line.ContextMap()["said"].(string), "panic") {
				t.Error(line)
			}
		}
	})
}

// exchanged is one answer, and what matters of the request that it is for.
type exchanged struct {
	status int
	text   string
	own    bool // not net/http's
	// host is the one that the request names, in lower case; probe: of a path that needs no token; head: the
	// answer has no body.
	host        string
	probe, head bool
}

// exchange sends a request, or several, or what is none, and returns the answers.
func exchange(t *testing.T, addr string, request []byte) (all []exchanged) {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(20 * time.Second)); err != nil {
		t.Fatal(err)
	}
	_, _ = conn.Write(request) // an answer may come before its end
	_ = conn.(*net.TCPConn).CloseWrite()
	answers, requests := bufio.NewReader(conn), bufio.NewReader(bytes.NewReader(request))
	for {
		var a exchanged
		asked, err := http.ReadRequest(requests)
		if err == nil {
			a.host, a.head = strings.ToLower(asked.Host), asked.Method == http.MethodHead
			a.probe = asked.URL.Path == "/healthz" || asked.URL.Path == "/readyz"
		} else {
			asked = nil
		}
		resp, err := http.ReadResponse(answers, asked)
		if err != nil {
			return all
		}
		text, _ := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
		_ = resp.Body.Close()
		a.status, a.text, a.own = resp.StatusCode, string(text), resp.Header.Get("Content-Security-Policy") != ""
		all = append(all, a)
	}
}
