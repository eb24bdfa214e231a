package status

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"time"
)

// stream sends events to one page.
type stream struct {
	clean   io.Writer // to the page
	control *http.ResponseController
	board   *Board
	shown   func(Snapshot) Snapshot // what of a snapshot is for this reader
	// The versions that the page has.
	history, latest int
}

// round sends the changes. It fails if the reader has gone or is too slow.
func (t *stream) round() error {
	if err := t.control.SetWriteDeadline(time.Now().Add(writeTimeout)); err != nil {
		return err
	}
	if err := t.send("status", t.shown(t.board.Snapshot())); err != nil {
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
	_, err = fmt.Fprintf(t.clean, "event: %s\ndata: %s\n\n", event, text)
	return err
}
