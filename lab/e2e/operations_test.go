package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/storestream/storestream/internal/storefake"
)

// What somebody on call does who has only the README, docs/operations.md and --help.

func TestWhetherEverythingIsUpToDateCanBeFoundOut(t *testing.T) {
	s := start(t, setup{yaml: quick, fake: smallShop(21)})
	s.expect(0, []string{"NOT up to date", "nothing is published yet, and no instance polls it"}, "watermark", "list")
	s.expect(0, []string{"is not there yet, and `run` can create it", "no instance runs", "Nothing fails"}, "check")
	p := s.spawn("run")
	p.isReady()
	s.eventuallySays("Everything is up to date", "watermark", "list")
	out, _, _ := s.do("watermark", "list", "-o", "json")
	var states []struct {
		Resource, Owner string
		Lag             *float64 `json:"lag_seconds"`
		Rows            int64
	}
	if err := json.Unmarshal([]byte(out), &states); err != nil || len(states) != len(storefake.Names()) {
		t.Fatalf("%v:\n%s", err, out)
	}
	for _, state := range states {
		if state.Owner == "" || state.Lag == nil || state.Rows < int64(s.fake.Count(state.Resource)) {
			t.Errorf("%+v, and the service has %d", state, s.fake.Count(state.Resource))
		}
	}
	s.expect(0, []string{"has order_items, orders, products, shipments, users", "key and value are registered", "Nothing fails"}, "check")
	p.kill()
	s.eventuallySays("no instance polls it", "watermark", "list") // once the group has noticed
	s.expect(0, []string{"none (last ", "NOT up to date"}, "watermark", "list")
}

// eventuallySays runs a command until it says text.
func (s *stack) eventuallySays(text string, args ...string) {
	s.t.Helper()
	eventually(s.t, fmt.Sprintf("%v says %q", args, text), func() (bool, string) {
		out, errs, _ := s.do(args...)
		return strings.Contains(out+errs, text), out + errs
	})
}

// A replay is asked for with one command, and seen in the topic, in the list and in the log, while the instance goes on.
func TestADayOfOrdersIsReplayedAndSeenToBe(t *testing.T) {
	s := start(t, setup{yaml: quick, fake: smallShop(22)})
	p := s.spawn("run")
	p.isReady()
	s.converge()
	day, ids := s.busiestDay()
	tailed := s.spawn("tail", "orders", "-o", "json")
	eventually(t, "tail has begun to read", func() (bool, string) {
		s.shop(1)
		said, _ := tailed.out.read()
		return said != "", said
	})
	s.expect(0, []string{"Every row with updated_at at or after " + day, "RECORDS SINCE", "orders: request 0"}, "watermark", "reset", "orders", "--to", day, "--yes")
	for _, id := range ids {
		tailed.says(fmt.Sprintf(`{"resource":"orders","id":%d,`, id))
	}
	p.says(`"msg":"replay begins"`)
	p.says(`"msg":"replay finished"`)
	s.eventuallySays("Everything is up to date", "watermark", "list")
	if out, _, _ := s.do("watermark", "list"); strings.Contains(out, "replaying") || strings.Contains(out, "waits") {
		t.Errorf("the replay is finished, and the list says\n%s", out)
	}
	tailed.stop()
}

// busiestDay is the day of the most orders, and their ids.
func (s *stack) busiestDay() (day string, ids []int64) {
	byDay := map[string][]int64{}
	for id, row := range s.fake.Rows(storefake.Orders) {
		at := row.Time("updated_at").UTC().Format(time.DateOnly)
		byDay[at] = append(byDay[at], id)
	}
	for at, all := range byDay {
		if len(all) > len(ids) || len(all) == len(ids) && at > day {
			day, ids = at, all
		}
	}
	return day, ids
}

// PostgreSQL stops: page, log, check and metrics say what is wrong, the rest goes on, and it all recovers without a restart.
func TestAStoppedDatabaseIsToldEverywhereAndComesBackByItself(t *testing.T) {
	s := start(t, setup{yaml: quick, fake: smallShop(23)})
	p := s.spawn("run")
	p.isReady()
	s.converge()
	if err := s.postgres.Shutdown(); err != nil {
		t.Fatal(err)
	}
	// PgBouncer lets a statement wait for the server before it refuses it, so that the first of the two resources to say so is either.
	var failing string
	eventually(t, "/status.json says that a resource of the database fails", func() (bool, string) {
		for _, failing = range []string{storefake.Orders, storefake.OrderItems} {
			if r := p.resource(failing); r.State == "failing" && r.Error != "" && !r.FailedSince.IsZero() {
				return true, ""
			}
		}
		return false, fmt.Sprintf("%+v", p.resource(failing))
	})
	for _, r := range []string{storefake.Orders, storefake.OrderItems} {
		eventually(t, r+" is not called up to date, whether its statement was refused or waits in the pooler", func() (bool, string) {
			shown := p.resource(r)
			return shown.State == "failing" || shown.State == "behind", fmt.Sprintf("%+v", shown)
		})
	}
	if r := p.resource(failing); strings.Contains(r.Error, studentPassword+"@") {
		t.Errorf("the error shows the password: %s", r.Error)
	}
	p.says(`"msg":"failing","resource":"` + failing + `"`)
	s.expect(1, []string{"FAIL  database", "start the database or its pooler; `run` waits for it", "ok    service products"}, "check")
	eventually(t, "its lag grows", func() (bool, string) {
		lag := p.metric("storestream_freshness_lag_seconds", failing)
		return lag > 3, fmt.Sprint(lag)
	})
	if failed := p.metric("storestream_polls_total", failing, `outcome="failed"`); failed < 1 {
		t.Errorf("%v failed polls are counted", failed)
	}
	if lag := p.metric("storestream_freshness_lag_seconds", storefake.Products); lag > 3 {
		t.Errorf("the products' lag is %v s: they do not come from the database", lag)
	}

	if err := s.postgres.Start(context.Background()); err != nil {
		t.Fatal(err)
	}
	p.says(`"msg":"working again","resource":"` + failing + `"`)
	eventually(t, "/status.json says that all is well", func() (bool, string) {
		r := p.resource(failing)
		return r.State == "following" && r.Error == "" && p.metric("storestream_freshness_lag_seconds", failing) < 3, fmt.Sprintf("%+v", r)
	})
	s.expect(0, []string{"Nothing fails"}, "check")
	s.shop(20)
	s.converge()
	select {
	case <-p.exited:
		t.Error("storestream did not live through it")
	default:
	}
}

// shown is what /status.json says of a resource.
type shown struct {
	Name, State, Error string
	FailedSince        time.Time `json:"failed_since"`
}

func (p *process) resource(name string) shown {
	p.t.Helper()
	_, body := p.get("/status.json")
	var status struct{ Resources []shown }
	if err := json.Unmarshal([]byte(body), &status); err != nil {
		p.t.Fatalf("/status.json: %v\n%s", err, body)
	}
	for _, r := range status.Resources {
		if r.Name == name {
			return r
		}
	}
	p.t.Fatalf("/status.json has no %s:\n%s", name, body)
	return shown{}
}

// metric is the value of a resource's series that has all of the labels.
func (p *process) metric(name, resource string, labels ...string) float64 {
	p.t.Helper()
	_, body := p.get("/metrics")
	for _, line := range regexp.MustCompile(`(?m)^`+name+`\{[^}]*\} .*$`).FindAllString(body, -1) {
		has := strings.Contains(line, `resource="`+resource+`"`)
		for _, label := range labels {
			has = has && strings.Contains(line, label)
		}
		if !has {
			continue
		}
		value, err := strconv.ParseFloat(line[strings.LastIndexByte(line, ' ')+1:], 64)
		if err != nil {
			p.t.Fatalf("/metrics: %s: %v", line, err)
		}
		return value
	}
	p.t.Fatalf("/metrics has no %s of %s with %v", name, resource, labels)
	return 0
}
