package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/storestream/storestream/internal/standins/storefake"
)

// What somebody on call does who has only the README, docs/operations.md and --help.

func TestWhetherEverythingIsUpToDateCanBeFoundOut(t *testing.T) {
	t.Parallel()
	furtherScenario(t)
	s := start(t, setup{yaml: quick, fake: smallShop(21)})
	s.expect(4, []string{"NOT up to date", "nothing is published yet, and no instance polls it"}, "watermark",
		"list")
	s.expect(0, []string{
		"is not there yet, and `run` can create it", "has 0 instances", "Nothing fails",
	}, "check")
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
	s.expect(0, []string{"has 1 instance", "can be taken over",
		"Nothing fails"}, "check")
	p.kill()
	s.eventuallySays("no instance polls it", "watermark", "list") // once the group has noticed
	s.expect(4, []string{"none (last ", "NOT up to date"}, "watermark", "list")
}

// eventuallySays runs a command until it says text.
func (s *stack) eventuallySays(text string, args ...string) {
	s.t.Helper()
	eventually(s.t, fmt.Sprintf("%v says %q", args, text), func() (bool, string) {
		out, errs, _ := s.do(args...)
		return strings.Contains(out+errs, text), out + errs
	})
}

// One command asks for a replay. The topic, the list and the log show it, and the instance goes on.
func TestADayOfOrdersIsReplayedAndSeenToBe(t *testing.T) {
	t.Parallel()
	furtherScenario(t)
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
	before := s.mark(storefake.Orders)
	s.expect(0, []string{"Every row with updated_at at or after " + day, "orders: asked for a replay"},
		"watermark", "reset", "orders", "--to", day, "--yes")
	for _, id := range ids {
		tailed.says(fmt.Sprintf(`{"resource":"orders","id":%d,`, id))
	}
	s.done(storefake.Orders, before)
	s.eventuallySays("Everything is up to date", "watermark", "list")
	if out, _, _ := s.do("watermark", "list"); strings.Contains(out, "replaying") ||
		strings.Contains(out, "waits") {
		t.Errorf("the replay is finished, and the list says\n%s", out)
	}
	// The log has the beginning and the end, each with the day.
	for _, line := range []string{
		`"request accepted","resource":"orders",.*"kind":"reset",.*"to":"` + day,
		`"replay finished","resource":"orders","kind":"reset",.*"from":"` + day,
	} {
		p.saysThat(line, regexp.MustCompile(line).MatchString)
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

// PostgreSQL stops: page, log, check and metrics say what is wrong, the rest goes on, and it all recovers
// without a restart.
func TestAStoppedDatabaseIsToldEverywhereAndComesBackByItself(t *testing.T) {
	t.Parallel()
	furtherScenario(t)
	s := start(t, setup{yaml: quick, fake: smallShop(23)})
	p := s.spawn("run")
	p.isReady()
	s.converge()
	if err := s.postgres.Shutdown(); err != nil {
		t.Fatal(err)
	}
	// PgBouncer lets a statement wait for the server before it refuses it, so either resource may be the first
	// to fail.
	var failing string
	eventually(t, "/status.json says that a resource of the database fails", func() (bool, string) {
		for _, failing = range []string{storefake.Orders, storefake.OrderItems} {
			if r := p.resource(failing); r.State == "failing" && r.Why != "" && !r.Since.IsZero() {
				return true, ""
			}
		}
		return false, fmt.Sprintf("%+v", p.resource(failing))
	})
	for _, r := range []string{storefake.Orders, storefake.OrderItems} {
		eventually(t, r+" is not called up to date, whether its statement was refused or waits in the pooler",
			func() (bool, string) {
				shown := p.resource(r)
				return shown.State == "failing" || shown.State == "behind", fmt.Sprintf("%+v", shown)
			})
	}
	if r := p.resource(failing); strings.Contains(r.Why, studentPassword+"@") {
		t.Errorf("the error shows the password: %s", r.Why)
	}
	warning := regexp.MustCompile(`"level":"(warn|error)".*"resource":"` + failing + `"`)
	if said, _ := p.out.read(); !warning.MatchString(said) {
		t.Errorf("the log does not warn of %s", failing)
	}
	s.expect(1, []string{
		"FAIL  database", "no server for it", "ok    service products",
	}, "check")
	s.eventuallySays(failing+": failing for ", "watermark", "list")
	s.expect(4, []string{"NOT up to date"}, "watermark", "list")
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
	eventually(t, "/status.json says that all is well", func() (bool, string) {
		r := p.resource(failing)
		return r.State == "following" && p.metric("storestream_freshness_lag_seconds",
			failing) < 3, fmt.Sprintf("%+v", r)
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
