package storefake

import (
	"cmp"
	"encoding/json"
	"math"
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

// listed is the content of a page of a listing.
type listed struct {
	page
	asked params
	more  bool
}

func (x *exchange) route() {
	path := x.r.URL.Path
	if x.read.Habits.Slash {
		path = strings.TrimSuffix(path, "/")
	}
	res, data := x.server.paths[path]
	key := path == x.server.base+"/store-api-keys"
	switch {
	case x.r.URL.Path == "/elsewhere":
		x.w.entry.Resource = "elsewhere"
		x.w.Header().Set("Content-Type", "text/html")
		_, _ = x.w.Write([]byte("<html><body>Please sign in.</body></html>\n"))
		return
	case !key && !data:
		x.fail(notFound)
		return
	case key:
		x.w.entry.Resource = "key"
	default:
		x.w.entry.Resource = res.name
	}
	if x.r.Method != http.MethodGet {
		x.w.Header().Set("Allow", http.MethodGet)
		x.fail(methodNotAllowed)
		return
	}
	if x.read.Habits.Slash && path == x.r.URL.Path {
		x.addSlash()
		return
	}
	if d := x.server.limit.wait(x.read.Limit); d > 0 {
		x.refuse(d)
		return
	}
	x.tellRate()
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
	_, _ = x.w.Write(append(x.read.Habits.begin(nil), append(body, '\n')...))
}

// addSlash sends the client on to the path with a slash at its end.
func (x *exchange) addSlash() {
	to := *x.r.URL
	to.Path += "/"
	x.w.Header().Set("Location", to.RequestURI())
	x.w.WriteHeader(http.StatusMovedPermanently)
}

func (x *exchange) serveData(res *resource) {
	s := x.server
	x.fault, x.faults, x.number = s.behaviour.draw(x.r)
	x.w.entry.Fault = x.fault
	if x.failFirst() {
		return
	}
	if !s.keys.admit(x.r) {
		x.fail(unauthorized)
		return
	}
	x.read.turnPages(x.number, s.seed)
	asked, f := parseParams(res, x.r.URL.Query(), &x.read, s.tables.words)
	if f != nil {
		x.fail(f)
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
		x.fail(pastEnd(x.read.PastEnd))
		return
	}
	if f := x.refusal(res, l); f != nil {
		x.fail(f)
		return
	}
	r := renderer{words: s.tables.words, read: &x.read, garbled: s.behaviour.garbling(x.faults.GarbledRows),
		seed: s.seed}
	x.w.entry.Rows = len(l.rows)
	body := r.appendListing(nil, res, l.page, l.asked, l.more)
	if x.fault == NoFault {
		s.cache.keep(x.r, x.read.Cache, cached{made, x.w.Header().Get("Date"), body, len(l.rows)})
	}
	x.send(body)
}

// list looks at the rows. It returns nil if the page lies past the end and the service refuses such pages.
func (x *exchange) list(res *resource, asked params) *listed {
	tables, place := x.server.replicas.answering(&x.read, x.number)
	x.w.entry.Replica = place
	reach := reachOf(&x.read, x.server.seed, asked.pageSize)
	look := func() (page, int) { // the rows of the page, and where it ends
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

// complete adds the readings' settings to the client's query.
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
		x.fail(internalError)
	case ServerErrorHTML:
		internalError.writeHTML(w)
	case TooMany:
		x.refuse(time.Second)
	case Unauthorized:
		x.fail(unauthorized)
	case Revoke:
		x.server.keys.revoke()
		x.fail(unauthorized)
	case Redirect:
		http.Redirect(w, x.r, cmp.Or(x.faults.RedirectTo, "/elsewhere"), http.StatusFound)
	case Hang:
		x.hang()
	case Reset:
		reset(w)
	default:
		return false
	}
	return true
}

// hang gives no answer until the client gives up.
func (x *exchange) hang() {
	<-x.r.Context().Done()
	panic(http.ErrAbortHandler)
}

// tellRate tells the limit as frameworks do, also in answers that are not refused.
func (x *exchange) tellRate() {
	rules := x.read.Limit
	if !x.read.Habits.RateHeaders || rules.PerSecond == 0 {
		return
	}
	head := x.w.Header()
	head.Set("X-RateLimit-Limit", strconv.Itoa(rules.burst()))
	head.Set("X-RateLimit-Remaining", strconv.Itoa(x.server.limit.left()))
}

// refuse answers a request that must wait, in the form that the readings say.
func (x *exchange) refuse(wait time.Duration) {
	w, rules, now := x.w, x.read.Limit, x.server.clock.Now()
	f := &failure{429, "rate_limited", "too many requests", ""}
	switch rules.Status {
	case 0:
	case 503:
		f = &failure{503, "unavailable", "the service is busy", ""}
	default:
		f.status = rules.Status
	}
	seconds := math.Ceil(wait.Seconds())
	if x.read.Habits.RateHeaders {
		w.Header().Set("X-RateLimit-Remaining", "0")
		w.Header().Set("X-RateLimit-Reset", strconv.FormatInt(now.Unix()+int64(seconds), 10))
	}
	switch rules.RetryAfter {
	case RetryAfterSeconds:
		w.Header().Set("Retry-After", strconv.Itoa(int(seconds)))
	case RetryAfterDate:
		w.Header().Set("Retry-After", now.Add(time.Duration(seconds)*time.Second).Format(http.TimeFormat))
	case RetryAfterZero:
		w.Header().Set("Retry-After", "0")
	}
	if rules.HTML {
		f.writeHTML(w)
		return
	}
	x.fail(f)
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

// send writes a body, or the part of it that the fault leaves.
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
