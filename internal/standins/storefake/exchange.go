package storefake

import (
	"cmp"
	"encoding/json"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/storestream/storestream/internal/wait"
)

// exchange is one request and its answer.
type exchange struct {
	server *Server
	w      *recorder
	r      *http.Request
	read   Readings // in force when the request came

	// Of a data request.
	fault  Fault
	faults Faults
	number uint64 // of the request
}

// listed is one page of a listing, ready to be written.
type listed struct {
	page
	asked params
	more  bool
}

func (x *exchange) route() {
	res, data := x.server.paths[x.r.URL.Path]
	key := x.r.URL.Path == x.server.base+"/store-api-keys"
	switch {
	case x.r.URL.Path == "/elsewhere":
		x.w.entry.Resource = "elsewhere"
		x.w.Header().Set("Content-Type", "text/html")
		_, _ = x.w.Write([]byte("<html><body>Please sign in.</body></html>\n"))
		return
	case !key && !data:
		notFound.write(x.w)
		return
	case key:
		x.w.entry.Resource = "key"
	default:
		x.w.entry.Resource = res.name
	}
	if x.r.Method != http.MethodGet {
		x.w.Header().Set("Allow", http.MethodGet)
		methodNotAllowed.write(x.w)
		return
	}
	if d := x.server.limit.wait(x.read.Limit); d > 0 {
		refuse(x.w, x.read.Limit, d, x.server.clock.Now())
		return
	}
	if key {
		x.serveKey()
		return
	}
	x.serveData(res)
}

func (x *exchange) serveKey() {
	key := x.server.keys.current(x.read.Keys)
	body, _ := json.Marshal(map[string]string{"api_key": key}) // of strings: cannot fail
	x.w.Header().Set("Content-Type", "application/json")
	_, _ = x.w.Write(append(body, '\n'))
}

func (x *exchange) serveData(res *resource) {
	s := x.server
	x.fault, x.faults, x.number = s.behaviour.draw(x.r)
	x.w.entry.Fault = x.fault
	if x.failFirst() {
		return
	}
	if !s.keys.admit(x.r) {
		unauthorized.write(x.w)
		return
	}
	x.read.turnPages(x.number, s.seed)
	asked, f := parseParams(res, x.r.URL.Query(), &x.read, s.tables.words)
	if f != nil {
		f.write(x.w)
		return
	}
	x.w.Header().Set("Content-Type", "application/json")
	if x.fault == NoFault {
		if a, age, ok := s.cache.find(x.r, x.read.Cache, s.clock.age()); ok {
			a.head(x.w.Header(), age, x.read.Cache)
			x.w.entry.Rows, x.w.entry.Cached = a.rows, true
			x.send(a.body)
			return
		}
	}
	x.complete(&asked.query)
	made := s.clock.age() // before the rows are looked at: an answer is not younger than it seems
	l := x.list(res, asked)
	if l == nil {
		pastEnd(x.w, x.read.PastEnd)
		return
	}
	x.w.entry.Rows = len(l.rows)
	r := renderer{words: s.tables.words, read: &x.read, garbled: s.behaviour.garbling(x.faults.GarbledRows),
		seed: s.seed}
	body := r.appendListing(nil, res, l.page, l.asked, l.more)
	if x.fault == NoFault {
		s.cache.keep(x.r, x.read.Cache, cached{made, x.w.Header().Get("Date"), body, len(l.rows)})
	}
	x.send(body)
}

// list finds the rows of a page. It returns nil if the page lies past the end and the service refuses such
// pages.
func (x *exchange) list(res *resource, asked params) *listed {
	tables, place := x.server.replicas.answering(&x.read, x.number)
	x.w.entry.Replica = place
	reach := reachOf(&x.read, x.server.seed, asked.pageSize)
	look := func() (page, int) { // the page, and the number of the row at which it ends
		at := boundsOf(&x.read, x.server.seed, asked.page, asked.pageSize)
		return tables.page(res, asked.query, at.from, max(0, min(at.rows, reach-at.from))), at.from + at.rows
	}
	p, to := look()
	end := min(p.total, reach)
	from := boundsOf(&x.read, x.server.seed, asked.page, asked.pageSize).from
	switch past := asked.page > 0 && from >= end && x.fault != MoreForever; {
	case !past || x.read.PastEnd == PastEndEmpty:
	case x.read.PastEnd == PastEndLast:
		asked.page = lastPage(&x.read, x.server.seed, end, asked.pageSize)
		p, to = look()
	default:
		return nil
	}
	more := to < end || x.fault == MoreForever || x.read.HasMore == MoreAlways ||
		x.read.HasMore == MoreFull && len(p.rows) == asked.pageSize
	return &listed{p, asked, more}
}

// complete adds the readings to the query of the client.
func (x *exchange) complete(q *query) {
	q.sort, q.before, q.salt = x.read.Order, x.server.queryableBefore(&x.read), x.server.seed
	q.ties = x.read.PermuteTies && (q.sort == ByUpdated || q.sort == ByUpdatedDesc)
	if q.ties || q.sort == ByShuffle {
		q.salt = x.server.seed ^ uint64(mix(int64(x.number), 1))
	}
}

// failFirst answers a request whose fault replaces the whole answer.
func (x *exchange) failFirst() bool {
	w := x.w
	switch x.fault {
	case ServerError:
		internalError.write(w)
	case ServerErrorHTML:
		internalError.writeHTML(w)
	case TooMany:
		refuse(w, x.read.Limit, time.Second, x.server.clock.Now())
	case Unauthorized:
		unauthorized.write(w)
	case Revoke:
		x.server.keys.revoke()
		unauthorized.write(w)
	case Redirect:
		http.Redirect(w, x.r, cmp.Or(x.faults.RedirectTo, "/elsewhere"), http.StatusFound)
	case Hang:
		<-x.r.Context().Done()
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

// send writes a body, or the part of it that the fault lets through.
func (x *exchange) send(body []byte) {
	w := x.w
	switch x.fault {
	case WrongDate:
		if w.Header().Get("Date") != "" {
			wrong := x.server.clock.Now().Add(cmp.Or(x.faults.DateOff, time.Hour))
			w.Header().Set("Date", wrong.Format(http.TimeFormat))
		}
	case Cut:
		body = body[:len(body)/2]
	case Endless:
		sendEndless(w)
		return
	}
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	switch x.fault {
	case Truncated:
		_, _ = w.Write(body[:len(body)/2])
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	case Slow:
		x.sendSlowly(body)
	default:
		_, _ = w.Write(body)
	}
}

// sendEndless repeats an object in the data array until the client hangs up.
func sendEndless(w http.ResponseWriter) {
	row := []byte(`{"id":1,"pad":"` + strings.Repeat("x", 1000) + `"},`)
	_, err := w.Write([]byte(`{"data":[`))
	for err == nil {
		_, err = w.Write(row)
	}
	panic(http.ErrAbortHandler)
}

// sendSlowly writes a body in twenty drops over a time of the machine's clock.
func (x *exchange) sendSlowly(body []byte) {
	over := cmp.Or(x.faults.SlowFor, 5*time.Second)
	const drops = 20
	for i := range drops {
		_, err := x.w.Write(body[len(body)*i/drops : len(body)*(i+1)/drops])
		if err != nil || http.NewResponseController(x.w).Flush() != nil ||
			wait.For(x.r.Context(), over/drops) != nil {
			return
		}
	}
}
