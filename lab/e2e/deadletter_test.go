package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/storestream/storestream/internal/standins/storefake"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// letters are the dead letters as they stand now, by key, and how many records the topic has.
func (s *stack) letters() (map[string]*kgo.Record, int) {
	s.t.Helper()
	now := map[string]*kgo.Record{}
	all := s.read(s.prefix + "dead_letters")
	for _, rec := range all {
		now[string(rec.Key)] = rec
		if rec.Value == nil {
			delete(now, string(rec.Key))
		}
	}
	return now, len(all)
}

func header(rec *kgo.Record, key string) string {
	for _, h := range rec.Headers {
		if h.Key == key {
			return string(h.Value)
		}
	}
	return ""
}

// silent fails the test where a process wrote something that must stay private.
func (p *process) silent(texts ...string) {
	p.t.Helper()
	said, _ := p.out.read()
	for _, text := range texts {
		if at := strings.Index(said, text); at >= 0 {
			p.t.Errorf("storestream wrote %q:\n%s", text, said[max(0, at-300):min(len(said), at+len(text)+100)])
		}
	}
}

// Each row that breaks the contract becomes a dead letter and nothing else. A restart does not repeat it.
// Once the row is good its letter is taken out.
func TestARowThatBreaksTheContractIsADeadLetterUntilItIsGood(t *testing.T) {
	t.Parallel()
	s := start(t, setup{noPostgres: true, yaml: quick, fake: smallShop(20)})
	breaches := map[int64]storefake.Garbling{1: storefake.BadTimestamp, 2: storefake.NoTimestamp,
		3: storefake.HugeMoney, 4: storefake.WordMoney,
		5: storefake.NoID, 6: storefake.TextID, 7: storefake.NotAnObject}
	fields := map[int64]string{1: "updated_at", 2: "updated_at", 3: "cost", 4: "cost"}
	for id, g := range breaches {
		s.fake.Garble(storefake.Products, id, g)
	}
	first := s.spawn("run")
	first.isReady()
	var found map[string]*kgo.Record
	var records int
	eventually(t, "a letter for each row", func() (bool, string) {
		found, records = s.letters()
		return len(found) == len(breaches), fmt.Sprint(len(found))
	})
	nameless := 0
	for key, rec := range found {
		var came any
		if err := json.Unmarshal(rec.Value, &came); err != nil {
			t.Errorf("%s is no JSON: %s", key, rec.Value)
		}
		row, _ := came.(map[string]any) // one of them came as something else
		if header(rec, "resource") != "products" || header(rec, "source") != "rest" || header(rec, "error") == "" {
			t.Errorf("headers of %s: %v", key, rec.Headers)
		}
		var id int64
		if _, err := fmt.Sscanf(key, "products/%d", &id); err == nil && id < 8 && len(key) < 12 {
			if header(rec, "field") != fields[id] {
				t.Errorf("%s: field %q, want %q", key, header(rec, "field"), fields[id])
			}
			if name := s.fake.Rows(storefake.Products)[id]["name"]; row["name"] != name {
				t.Errorf("%s: name %v, the row has %v", key, row["name"], name)
			}
		} else {
			nameless++
		}
	}
	if nameless != 3 {
		t.Errorf("%d letters of rows without a usable id, want 3", nameless)
	}
	first.stop()

	second := s.spawn("run")
	second.isReady()
	s.shop(30)
	second.owns(storefake.Products)
	for id := range breaches {
		s.fake.Garble(storefake.Products, id, storefake.NotGarbled)
		if err := s.fake.Touch(context.Background(), storefake.Products, id); err != nil {
			t.Fatal(err)
		}
	}
	s.quiet()
	eventually(t, "the letters of rows with an id are taken out", func() (bool, string) {
		left, _ := s.letters()
		return len(left) == nameless, fmt.Sprint(left)
	})
	if _, now := s.letters(); now != records+4 {
		t.Errorf("%d records in dead letters, want the %d from before and 4 that take one out", now, records)
	}
}

// Where nothing of a page can be published the cause is not in its rows. The resource is blocked and says so,
// the others go on, and it heals by itself.
func TestAPageOfWhichNothingCanBePublishedBlocksItsResourceAndHealsByItself(t *testing.T) {
	t.Parallel()
	furtherScenario(t)
	s := start(t, setup{noPostgres: true, yaml: quick, fake: storefake.Config{Seed: 21,
		Size: storefake.Size{Users: 200, Orders: 800, Products: 150, Days: 1}}})
	for id := range s.fake.Rows(storefake.Products) {
		s.fake.Garble(storefake.Products, id, storefake.WordMoney)
	}
	p := s.spawn("run")
	eventually(t, "the others are ready, products says why not", func() (bool, string) {
		code, why := p.get("/readyz")
		return code == http.StatusServiceUnavailable && strings.Count(why, "\n") == 2 &&
			strings.Contains(why, "products") && strings.Contains(why, "cost"), why
	})
	// Shortly before midnight most rows are of today, and the few of yesterday are a page of their own: too few
	// to say anything of a page.
	if left, _ := s.letters(); len(left) >= 20 {
		t.Errorf("%d letters", len(left))
	}
	eventually(t, "watermark list has products alone blocked, and says why", func() (bool, string) {
		list, _, _ := s.do("watermark", "list", "-o", "json")
		var all []struct {
			Resource, State, Why string
		}
		if err := json.Unmarshal([]byte(list), &all); err != nil {
			return false, list
		}
		right := len(all) == 5
		for _, r := range all {
			isIt := r.Resource == storefake.Products
			right = right && isIt == (r.State == "blocked" && strings.Contains(r.Why, "cost"))
		}
		return right, list
	})
	for id := range s.fake.Rows(storefake.Products) {
		s.fake.Garble(storefake.Products, id, storefake.NotGarbled)
	}
	left, _ := s.letters()
	for key := range left {
		id, err := strconv.ParseInt(strings.TrimPrefix(key, "products/"), 10, 64)
		if err == nil {
			err = s.fake.Touch(context.Background(), storefake.Products, id)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	p.isReady()
	s.quiet()
}

// A row too large for the topic becomes a dead letter. Of a letter that is too large itself the id stays. The
// log holds no value of a row.
func TestARecordTooLargeForTheTopicIsADeadLetterWithoutItsRow(t *testing.T) {
	t.Parallel()
	s := start(t, setup{noPostgres: true, yaml: quick, fake: smallShop(22)})
	cl, err := kgo.NewClient(kgo.SeedBrokers(s.brokers...))
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	if _, err := kadm.NewClient(cl).CreateTopic(context.Background(), 3, 1,
		map[string]*string{"cleanup.policy": kadm.StringPtr("compact"),
			"max.message.bytes": kadm.StringPtr("3000")}, s.prefix+"users"); err != nil {
		t.Fatal(err)
	}
	const planted = "Eulalia-Planted"
	street := strings.Repeat(planted+" Street ", 300)
	usual := s.fake.Rows(storefake.Users)[7]["street_address"]
	change := func(id int64, to any) {
		if err := s.fake.Update(context.Background(), storefake.Users, id,
			func(r storefake.Row) { r["first_name"], r["street_address"] = planted, to }); err != nil {
			t.Fatal(err)
		}
	}
	change(7, street)
	change(8, usual) // planted too, and published
	s.fake.Garble(storefake.Users, 8, storefake.BadTimestamp)
	p := s.spawn("run", "--set", "log.level=debug")
	p.isReady()
	var letter *kgo.Record
	eventually(t, "its letter", func() (bool, string) {
		left, _ := s.letters()
		letter = left["users/7"]
		return letter != nil && left["users/8"] != nil, fmt.Sprint(len(left))
	})
	got, why := string(letter.Value), header(letter, "error")
	if !strings.HasPrefix(got, `{"id":7,"bytes":`) || !strings.Contains(why, "max.message.bytes") {
		t.Errorf("a letter of %d bytes, because of %q", len(got), why)
	}
	if strings.Contains(got, planted) {
		t.Error("the letter shows the row")
	}
	change(7, usual)
	s.fake.Garble(storefake.Users, 8, storefake.NotGarbled)
	s.quiet()
	eventually(t, "both are taken out", func() (bool, string) {
		left, _ := s.letters()
		return len(left) == 0, fmt.Sprint(left)
	})
	_, status := p.get("/status.json")
	_, metrics := p.get("/metrics")
	if strings.Contains(status+metrics, planted) {
		t.Error("the status page or the metrics show a personal value")
	}
	p.silent(planted, fmt.Sprint(usual))
}
