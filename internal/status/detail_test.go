package status

import (
	"encoding/json"
	"io"
	"net/http"
	"reflect"
	"testing"
	"time"
)

func TestDetailHasTheLastPollsAndSweepsOfOneResource(t *testing.T) {
	at := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	var orders Resource
	board := New("a-1", "v0")
	board.Provide(func() Snapshot { return Snapshot{Resources: []Resource{orders}} })
	orders = Resource{Name: "orders", Polls: []Poll{{Began: at, Rows: 7, Outcome: "ok"},
		{Began: at.Add(time.Second), Seconds: 0.5, Outcome: "failed"}},
		LatestLetters: []DeadLetter{{ID: "7", At: at, Field: "status", Error: "expected a text"}},
		Settling:      &Settling{Settled: at, Days: []Days{{From: "2026-11-20", State: DayOpen}}}}
	for n := range 2 * mostSweeps {
		orders.Sweep = &Sweep{Ended: at.Add(time.Duration(n) * time.Hour), Missing: n}
		board.note(board.ask(), false)
		board.note(board.ask(), false)
	}
	s := listen(t, Config{}, board)
	answer, err := http.Get("http://" + s.Addr() + "/resources/orders.json")
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, _ := io.ReadAll(answer.Body)
	var d Detail
	if err := json.Unmarshal(text, &d); err != nil || answer.StatusCode != 200 {
		t.Fatalf("%d, %v: %s", answer.StatusCode, err, text)
	}
	if d.Resource != "orders" || len(d.Polls) != 2 || d.Polls[0].Outcome != "failed" || d.Polls[1].Rows != 7 {
		t.Errorf("polls, the newest first: %+v", d.Polls)
	}
	if len(d.Sweeps) != mostSweeps || d.Sweeps[0].Missing != 2*mostSweeps-1 ||
		d.Sweeps[9].Missing != mostSweeps {
		t.Errorf("the last %d sweeps, the newest first: %+v", mostSweeps, d.Sweeps)
	}
	if len(d.DeadLetters) != 1 || d.DeadLetters[0] != orders.LatestLetters[0] {
		t.Errorf("dead letters: %+v", d.DeadLetters)
	}
	if !reflect.DeepEqual(d.Settling, orders.Settling) {
		t.Errorf("settling: %+v", d.Settling)
	}
	for _, path := range []string{"/resources/orders", "/resources/users.json", "/resources/"} {
		answer, err := http.Get("http://" + s.Addr() + path)
		if err != nil {
			t.Fatal(err)
		}
		if answer.Body.Close(); answer.StatusCode != 404 {
			t.Errorf("%s: %d", path, answer.StatusCode)
		}
	}
}
