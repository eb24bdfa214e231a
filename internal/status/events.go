package status

import (
	"encoding/json"
	"fmt"
	"net/http"
	"time"
)

// events feeds one page with server-sent events: "status" at once and then every second (a Snapshot), "latest" when rows have passed ([]Upsert) and
// "history" when it has grown (a History).
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

// stream is what one page is fed.
type stream struct {
	w       http.ResponseWriter
	control *http.ResponseController
	board   *Board
	// The versions of what the page has.
	history, latest int
}

// round sends what is new. An error means that the reader has gone, or is too slow.
func (t *stream) round() error {
	if err := t.control.SetWriteDeadline(time.Now().Add(writeTimeout)); err != nil {
		return err
	}
	if err := t.send("status", t.board.Snapshot()); err != nil {
		return err
	}
	if history, version := t.board.History(); version != t.history {
		if err := t.send("history", history); err != nil {
			return err
		}
		t.history = version
	}
	if latest, version := t.board.feed.latest(); version != t.latest {
		if err := t.send("latest", latest); err != nil {
			return err
		}
		t.latest = version
	}
	return t.control.Flush()
}

func (t *stream) send(event string, what any) error {
	text, err := json.Marshal(what)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(t.w, "event: %s\ndata: %s\n\n", event, text)
	return err
}
