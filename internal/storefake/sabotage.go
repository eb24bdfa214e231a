package storefake

import (
	"net"
	"net/http"
	"strconv"
	"time"
)

// failFirst answers a request whose fault leaves nothing of it to serve.
func (s *Server) failFirst(w http.ResponseWriter, r *http.Request, fault Fault, faults *Faults, read *Readings) bool {
	switch fault {
	case ServerError:
		internalError.write(w)
	case ServerErrorHTML:
		internalError.writeHTML(w)
	case TooMany:
		refuse(w, read.Limit, time.Second, s.store.clock.Now())
	case Unauthorized:
		unauthorized.write(w)
	case Revoke:
		s.keys.revoke()
		unauthorized.write(w)
	case Redirect:
		to := faults.RedirectTo
		if to == "" {
			to = "/elsewhere"
		}
		http.Redirect(w, r, to, http.StatusFound)
	case Hang:
		<-r.Context().Done()
		panic(http.ErrAbortHandler)
	case Reset:
		reset(w)
	default:
		return false
	}
	return true
}

// reset closes the connection so that the client sees it reset, not ended.
func reset(w http.ResponseWriter) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0) // without it the connection ends in good order, which is a fault too
	}
	_ = conn.Close()
}

// send writes a body, or what the fault leaves of it.
func (s *Server) send(w http.ResponseWriter, r *http.Request, body []byte, fault Fault, faults *Faults) {
	switch fault {
	case Cut:
		body = body[:len(body)/2]
	case Endless:
		sendEndless(w)
		return
	}
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	switch fault {
	case Truncated:
		_, _ = w.Write(body[:len(body)/2])
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	case Slow:
		sendSlowly(w, r, body, faults.SlowFor)
	default:
		_, _ = w.Write(body)
	}
}

// sendEndless repeats an object in the data array until the client hangs up.
func sendEndless(w http.ResponseWriter) {
	row := append([]byte(`{"id":1,"pad":"`), make([]byte, 0, 1024)...)
	for len(row) < 1000 {
		row = append(row, 'x')
	}
	row = append(row, `"},`...)
	_, err := w.Write([]byte(`{"data":[`))
	for err == nil {
		_, err = w.Write(row)
	}
	panic(http.ErrAbortHandler)
}

// sendSlowly writes a body in twenty drops over a time of the machine's clock.
func sendSlowly(w http.ResponseWriter, r *http.Request, body []byte, over time.Duration) {
	if over == 0 {
		over = 5 * time.Second
	}
	const drops = 20
	for i := range drops {
		_, err := w.Write(body[len(body)*i/drops : len(body)*(i+1)/drops])
		if err != nil || http.NewResponseController(w).Flush() != nil {
			return
		}
		select {
		case <-time.After(over / drops):
		case <-r.Context().Done():
			return
		}
	}
}
