package rowsway

import (
	"bytes"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"sync"
	"testing"

	"github.com/storestream/storestream/internal/standins/servers"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// watcher sees what passes between the program and its servers.
type watcher interface {
	// answer sees data from the source, which goes on to the program when answer returns.
	answer(data []byte)
	// request sees a request to the broker, which handles it when request returns.
	request(r kmsg.Request)
}

// proxy stands before the service at base, and returns the address to take in its place.
func proxy(t *testing.T, base string, w watcher) string {
	t.Helper()
	target, err := url.Parse(base)
	if err != nil {
		t.Fatal(err)
	}
	path := target.Path
	target.Path = ""
	p := httputil.NewSingleHostReverseProxy(target)
	p.ModifyResponse = func(r *http.Response) error {
		body, err := io.ReadAll(r.Body)
		r.Body = io.NopCloser(bytes.NewReader(body))
		w.answer(body)
		return err
	}
	server := httptest.NewServer(p)
	t.Cleanup(server.Close)
	return server.URL + path
}

// relay stands before the server at address, and returns the address to take in its place.
func relay(t *testing.T, address string, w watcher) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var connections sync.WaitGroup
	t.Cleanup(func() {
		listener.Close()
		connections.Wait()
	})
	connections.Go(func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			server, err := net.Dial("tcp", address)
			if err != nil {
				client.Close()
				continue
			}
			connections.Go(func() {
				_, _ = io.Copy(server, client) // until one end closes
				server.Close()
			})
			connections.Go(func() {
				_, _ = io.Copy(client, io.TeeReader(server, answers{w}))
				client.Close()
			})
		}
	})
	return listener.Addr().String()
}

// answers is a writer that shows a watcher what it is given.
type answers struct{ watcher }

func (a answers) Write(data []byte) (int, error) {
	a.answer(data)
	return len(data), nil
}

// watch has the broker show its requests.
func watch(broker *servers.Broker, w watcher) {
	broker.Control(func(r kmsg.Request) (kmsg.Response, error, bool) {
		broker.KeepControl()
		w.request(r)
		return nil, nil, false
	})
}
