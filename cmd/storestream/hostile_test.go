package main

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/storestream/storestream/cmd/storestream/internal/stage"
	"github.com/storestream/storestream/internal/terminal"
	"github.com/storestream/storestream/schemas"
)

// What a terminal would obey: clear the screen, set its title, C1's CSI, a bidirectional override, and
// a carriage return that begins the line anew.
const obeyed = "\x1b[2J\x1b]0;owned\x07\u009b31m\u202e\rplanted"

// harmless fails the test where a terminal would obey something in text.
func harmless(t *testing.T, what, text string) {
	t.Helper()
	if !strings.Contains(text, "planted") {
		t.Errorf("%s: the hostile text is not in it at all:\n%s", what, text)
	}
	if terminal.Escape(text) != text {
		t.Errorf("%s: control characters of others: %q", what, text)
	}
}

func TestTextOfAHostileServiceAndRegistryBringsNoControlCharacters(t *testing.T) {
	for _, form := range []string{"console", "json"} {
		hostile := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusBadRequest)
			_ = json.NewEncoder(w).Encode(map[string]any{"error_code": 42201, "message": obeyed, "error": obeyed})
		}))
		t.Cleanup(hostile.Close)
		s := newScene(t)
		s.Settings = append(s.Settings, "store.base_url="+hostile.URL+"/v1", "registry.url="+hostile.URL,
			"log.format="+form, "log.level=debug", "store.api_key=k")
		out, interrupt := s.start("run")
		url := "http://" + address(t, out)
		stage.Eventually(t, "somebody's text is logged", func() bool {
			return strings.Contains(out.stderr.String(), "planted")
		})
		for _, path := range []string{"/readyz", "/status.json"} {
			resp, err := http.Get(url + path)
			if err != nil {
				t.Fatal(err)
			}
			body, err := io.ReadAll(resp.Body)
			_ = resp.Body.Close()
			if err != nil || terminal.Escape(string(body)) != string(body) {
				t.Errorf("%s: %v, %q", path, err, body)
			}
		}
		http.DefaultClient.CloseIdleConnections()
		interrupt()
		harmless(t, "run with log.format "+form, out.stdout.String()+out.stderr.String())
		check := s.do("check")
		harmless(t, "check", check.stdout.String()+check.stderr.String())
		register := s.do("schema", "register")
		harmless(t, "schema register", register.stdout.String()+register.stderr.String())
	}
}

func TestRowsThatHoldControlCharactersBringNoneToATerminal(t *testing.T) {
	s := newScene(t)
	s.Publish("orders", []schemas.Record{s.Order(1, "\u009b31m\u202eplanted")}, nil, nil)
	for _, args := range [][]string{{"tail", "orders", "--from-beginning", "-n", "1"},
		{"tail", "orders", "--from-beginning", "-n", "1", "-o", "json"}} {
		c := s.do(args...)
		harmless(t, strings.Join(args, " "), c.stdout.String()+c.stderr.String())
	}
}
