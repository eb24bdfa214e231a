package e2e

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"path"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/storestream/storestream/internal/standins/storefake"
)

// The least container that is promised to do, and how operations.md says to divide it: a tenth is left, and
// what polls and sweeps remember lies outside of Go's heap.
const (
	leastContainer = 256 << 20
	leastGo        = "GOMEMLIMIT=170MiB"
	leastMemory    = "\npoll: {memory: 8MiB}\nsweep: {memory: 16MiB}\n"
)

// hostileService is the service, until it is told to attack.
type hostileService struct {
	*httptest.Server
	attack atomic.Pointer[http.HandlerFunc] // nil: none
}

func (s *stack) hostileService() *hostileService {
	h := &hostileService{}
	h.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if attack := h.attack.Load(); attack != nil {
			(*attack)(w, r)
			return
		}
		s.fake.ServeHTTP(w, r)
	}))
	s.t.Cleanup(h.Close)
	return h
}

// leastOf starts `run` in the least container.
func (s *stack) leastOf(g *cgroup, args ...string) *process {
	s.t.Helper()
	program, err := released()
	if err != nil {
		s.t.Fatal(err)
	}
	cmd := g.command(program, append([]string{"run", "--config", s.config}, args...)...)
	cmd.Env = []string{leastGo}
	return s.begin(cmd)
}

// lived fails the test where the kernel had to kill for want of memory.
func (p *process) lived(g *cgroup) {
	p.t.Helper()
	if n := g.killed(); n != "0" {
		p.t.Errorf("%s processes were killed for want of memory", n)
	}
	select {
	case <-p.exited:
		p.t.Fatalf("storestream ended: %v", p.cmd.ProcessState)
	default:
	}
	p.t.Logf("the group had %d MiB at most, of %d MiB", g.mostBytes()>>20, leastContainer>>20)
}

// suffers waits until every resource says this error; aLetter: until each has a dead letter.
func (p *process) suffers(want string) {
	p.t.Helper()
	for _, name := range storefake.Names() {
		eventually(p.t, name+": "+want, func() (bool, string) {
			select {
			case <-p.exited:
				p.t.Fatalf("storestream ended: %v", p.cmd.ProcessState)
			default:
			}
			if want == aLetter {
				_, metrics := p.get("/metrics")
				return regexp.MustCompile(`storestream_dead_letters_total\{reason="\w+",resource="` + name + `"`).
					MatchString(metrics), ""
			}
			r := p.resource(name)
			return strings.Contains(r.Why, want), r.Why
		})
	}
}

// pour writes text again and again, times times; less than 0: until nobody reads.
func pour(w io.Writer, text string, times int) {
	block := []byte(strings.Repeat(text, max(1, (64<<10)/len(text))))
	for left := int64(times) * int64(len(text)); times < 0 || left > 0; left -= int64(len(block)) {
		if times >= 0 {
			block = block[:min(int64(len(block)), left)]
		}
		if _, err := w.Write(block); err != nil {
			return
		}
	}
}

func zipped(text string) []byte {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	_, _ = io.WriteString(z, text) // into memory
	_ = z.Close()
	return b.Bytes()
}

const (
	tooLong = "longer than 32 MiB"
	noMore  = "in it is an object, expected true or false"
)

// aLetter stands for an attack of which no more is said than that a row became a dead letter.
const aLetter = "a dead letter"

const page = `],"meta":{"page":0,"page_size":1000,"count":1,"has_more":false}}`

// attack is what a service may answer, and what storestream says of it.
type attack struct {
	says   string
	answer http.HandlerFunc
}

// tooMuch are answers that are too long or too deep.
func tooMuch() map[string]attack {
	bomb := zipped(`{"data":[{"id":1,"status":"`)
	more := zipped(strings.Repeat("x", 1<<20))
	for range 1024 { // what follows a gzip stream goes on with it
		bomb = append(bomb, more...)
	}
	const deep = 1_000_000
	return map[string]attack{
		"one row of 200 MB": {tooLong, func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprint(w, `{"data":[{"id":1,"status":"`)
			pour(w, "x", 200<<20)
			fmt.Fprint(w, `"}`+page)
		}},
		"rows without end": {tooLong, func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprint(w, `{"data":[{"id":1}`)
			pour(w, `,{"id":1,"status":"x"}`, -1)
		}},
		"a row of 31 MB": {aLetter, func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprint(w, `{"data":[{"id":1,"updated_at":"never","status":"`)
			pour(w, "x", 31<<20)
			fmt.Fprint(w, `"}`+page)
		}},
		"a row of millions of fields": {aLetter, func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprint(w, `{"data":[{"id":1,"updated_at":"never"`)
			pour(w, `,"a":1`, 5_000_000)
			fmt.Fprint(w, `}`+page)
		}},
		"a row of a million nested arrays": {aLetter, func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprint(w, `{"data":[{"id":1,"updated_at":"never","status":`)
			pour(w, "[", deep)
			pour(w, "]", deep)
			fmt.Fprint(w, `}`+page)
		}},
		"an envelope of a million nested arrays": {noMore, func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprint(w, `{"data":[],"meta":`)
			pour(w, `{"has_more":`, deep)
			pour(w, "}", deep+1)
		}},
		"a gzip bomb": {tooLong, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Encoding", "gzip")
			_, _ = w.Write(bomb)
		}},
	}
}

// neverGood are answers that are none.
func neverGood(fake *storefake.Fake) map[string]attack {
	return map[string]attack{
		"a byte a second": {"no complete answer within 3s", func(w http.ResponseWriter, r *http.Request) {
			fmt.Fprint(w, `{"data":[`)
			tick := time.NewTicker(time.Second)
			defer tick.Stop()
			for {
				if http.NewResponseController(w).Flush() != nil {
					return
				}
				select {
				case <-tick.C:
					fmt.Fprint(w, " ")
				case <-r.Context().Done():
					return
				}
			}
		}},
		"20 MB of headers": {"header", func(w http.ResponseWriter, r *http.Request) {
			for i := range 20 {
				w.Header().Set(fmt.Sprint("X-", i), strings.Repeat("x", 1<<20))
			}
			fake.ServeHTTP(w, r)
		}},
		"errors without end": {"answered 500", func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusInternalServerError)
			fmt.Fprint(w, `{"error":`)
			pour(w, "[", -1)
		}},
		"keys without end": {tooLong, func(w http.ResponseWriter, r *http.Request) {
			if path.Base(r.URL.Path) != "store-api-keys" {
				w.WriteHeader(http.StatusUnauthorized)
				return
			}
			fmt.Fprint(w, `{"key":"`)
			pour(w, "x", -1)
		}},
	}
}

// Whatever the service answers, to five resources at once, storestream lives in the least container. When the
// service is good again, so are the topics.
func TestAHostileServiceDoesNotTakeStorestreamDown(t *testing.T) {
	t.Parallel()
	furtherScenario(t)
	newCgroup(t) // or skip it all
	shop := start(t, setup{noPostgres: true, yaml: quick + leastMemory, fake: smallShop(60)})
	n := 0
	attacks := tooMuch()
	maps.Copy(attacks, neverGood(shop.fake))
	for name, attack := range attacks {
		prefix := fmt.Sprintf("attack-%d.", n)
		n++
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := *shop
			s.t, s.prefix, s.topics = t, prefix, nil
			service, g := s.hostileService(), newCgroup(t)
			sets := []string{"--set", "store.base_url=" + service.URL + "/v1", "--set", "kafka.topic_prefix=" + prefix}
			p := s.leastOf(g, append(sets, "--set", "store.request_timeout=3s")...)
			p.isReady()
			service.attack.Store(&attack.answer)
			p.suffers(attack.says)
			p.lived(g)
			service.attack.Store(nil)
			p.isReady()
			s.converge()
			s.expect(0, []string{"Identical"}, append([]string{"verify"}, sets...)...)
			p.lived(g)
			p.stop()
		})
	}
}
