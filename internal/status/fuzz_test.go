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
)

// FuzzRequests throws bytes at the port. Whatever they are, nothing panics, no answer is a 5xx but /readyz's
// 503 (and net/http's own 501 and 505 to codings and versions that HTTP/1.1 does not have), and none repeats
// a body.
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
		"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
		"\x16\x03\x01\x00\xa5\x01\x00\x00",
	} {
		f.Add([]byte(seed))
	}
	board := New("a-1", "v0")
	board.Provide(func() Snapshot { return Snapshot{Resources: []Resource{{Name: "orders", Owned: true}}} })
	core, lines := observer.New(zap.DebugLevel)
	s, err := Listen(Config{Addr: "127.0.0.1:0", Log: zap.New(core)}, board, prometheus.NewRegistry())
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { _ = s.Close() })
	f.Fuzz(func(t *testing.T, request []byte) {
		conn, err := net.Dial("tcp", s.Addr())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		if err := conn.SetDeadline(time.Now().Add(20 * time.Second)); err != nil {
			t.Fatal(err)
		}
		_, _ = conn.Write(request) // an answer may come before its end
		_ = conn.(*net.TCPConn).CloseWrite()
		answers := bufio.NewReader(conn)
		for {
			resp, err := http.ReadResponse(answers, nil)
			if err != nil {
				break // the end, or what answers a HEAD
			}
			text, _ := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
			_ = resp.Body.Close()
			own := resp.Header.Get("Content-Security-Policy") != "" // not net/http's
			if own && resp.StatusCode >= 500 && !strings.HasPrefix(string(text), "not ready") {
				t.Errorf("%d %s", resp.StatusCode, text)
			}
			if bytes.Contains(text, []byte(body)) && !bytes.Contains(request, []byte("?")) {
				t.Errorf("the answer repeats the body: %s", text)
			}
		}
		for _, line := range lines.TakeAll() {
			if strings.Contains(line.Message+line.ContextMap()["said"].(string), "panic") {
				t.Error(line)
			}
		}
	})
}
