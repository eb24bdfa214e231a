package main

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"
	"testing"

	"github.com/storestream/storestream/cmd/storestream/internal/stage"
)

// A service that keys a map by values makes names of them, and some look like a field's. No rule tells these
// from a name.
func TestTheNamesOfUnknownFieldsAreCountedAndShownToWhoeverAsksForThemAlone(t *testing.T) {
	t.Parallel()
	names := []string{"jane_shiftname_doe", "jane.doe@shop.example", "02079460958"}
	s := newScene(t)
	service, err := url.Parse(strings.TrimSuffix(s.Serve(nil).BaseURL(), "/v1"))
	if err != nil {
		t.Fatal(err)
	}
	inventive := httputil.NewSingleHostReverseProxy(service)
	inventive.ModifyResponse = func(r *http.Response) error {
		body, err := io.ReadAll(r.Body)
		if strings.HasSuffix(r.Request.URL.Path, "/store-users") {
			fields := `{"` + strings.Join(names, `":true,"`) + `":true,"id":`
			body = bytes.ReplaceAll(body, []byte(`{"id":`), []byte(fields))
		}
		r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
		r.Header.Del("Content-Length")
		return err
	}
	s.Settings = append(s.Settings, "store.base_url="+repeats(t, inventive.ServeHTTP)+"/v1", "log.level=debug",
		"resources.users.overlap=0s", "resources.users.interval=100ms")

	out, interrupt := s.start("run")
	shown := map[string]string{}
	for path, says := range map[string]string{"/status.json": `"unknown_fields": 3`,
		"/metrics": `storestream_unknown_fields_total{resource="users"} 3`, "/": "storestream"} {
		address := "http://" + address(t, out) + path
		stage.Eventually(t, path+" says "+says, func() bool {
			resp, err := http.Get(address)
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			body, err := io.ReadAll(resp.Body)
			shown[path] = string(body)
			return err == nil && strings.Contains(shown[path], says)
		})
	}
	s.do("sweep", "users", "--yes", "--wait").expect(t, exitDone) // its source meets the fields once more
	http.DefaultClient.CloseIdleConnections()
	interrupt()
	shown["the log"] = out.stderr.String()
	const logged = "the service sends fields that the schema does not know"
	log := shown["the log"]
	if n := strings.Count(log, logged); n != 1 || !strings.Contains(log, `"fields":3`) {
		t.Errorf("the log says %d times that there are some:\n%s", n, log)
	}
	for _, command := range []string{"check", "check -o json", "row users 1", "verify users"} {
		c := s.do(strings.Fields(command)...)
		shown[command] = c.stdout.String() + c.stderr.String()
	}
	const counted = "3 fields that the schema does not know, not published: `storestream check --names`"
	if !strings.Contains(shown["check"], counted) {
		t.Errorf("check: %s", shown["check"])
	}
	for what, text := range shown {
		for _, name := range names {
			if text == "" || strings.Contains(text, name) {
				t.Errorf("%s shows %s, or nothing:\n%s", what, name, text)
			}
		}
	}
	s.do("check", "--names").expect(t, exitDone, "not published: "+names[2]+", "+names[1]+", "+names[0])
}
