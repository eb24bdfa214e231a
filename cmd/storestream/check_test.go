package main

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/storestream/storestream/cmd/storestream/internal/preflight"
	"github.com/storestream/storestream/cmd/storestream/internal/stage"
	"github.com/storestream/storestream/internal/storefake"
)

func TestCheckPrintsALineForEachFindingOneBelowTheOther(t *testing.T) {
	s := newScene(t)
	s.Serve(nil)
	c := s.do("check").expect(t, exitDone, "Nothing fails",
		"ok    service products", "ok    registry store.order_items  store.order_items-key",
		"ok    registry                    http://", "ok    status                      127.0.0.1:0 is free")
	if strings.Contains(c.stdout.String(), "\x1b[") {
		t.Errorf("colors where no terminal is:\n%s", c.stdout)
	}
}

func TestCheckPrintsJSONAndExitsWithOneWhereSomethingFails(t *testing.T) {
	s := newScene(t)
	s.Serve(func(c *storefake.Config) { c.Readings.NoDate = true })
	s.Settings = append(s.Settings, "registry.url=http://"+stage.Nowhere(t))
	c := s.do("check", "-o", "json").expect(t, exitFailed, "1 of 23 checks fail", "`run` waits for them")
	var found []preflight.Finding
	if err := json.Unmarshal([]byte(c.stdout.String()), &found); err != nil {
		t.Fatalf("%v:\n%s", err, c.stdout)
	}
	levels := map[preflight.Level]int{}
	for _, f := range found {
		levels[f.Level]++
	}
	if levels[preflight.Failure] != 1 || levels[preflight.Note] == 0 || levels[preflight.OK] == 0 {
		t.Errorf("%v:\n%s", levels, c.stdout)
	}
	s.do("check").expect(t, exitFailed, "FAIL  registry", " -> start it, or check registry.url")
}
