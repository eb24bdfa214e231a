package main

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/storestream/storestream/cmd/storestream/internal/row"
	"github.com/storestream/storestream/cmd/storestream/internal/stage"
	"github.com/storestream/storestream/internal/standins/storefake"
	"github.com/storestream/storestream/schemas"
)

// lookAtUser runs `row users ID -o json` and reads what it says.
func (s *scene) lookAtUser(code int, id int64, more ...string) row.Report {
	s.t.Helper()
	c := s.do(append([]string{"row", "users", strconv.FormatInt(id, 10), "-o", "json"}, more...)...).
		expect(s.t, code)
	var r row.Report
	if err := json.Unmarshal([]byte(c.stdout.String()), &r); err != nil {
		s.t.Fatalf("%v:\n%s\n%s", err, c.stdout, c.stderr)
	}
	return r
}

func idsOf(fake *storefake.Fake, resource string) []int64 {
	return slices.Sorted(maps.Keys(fake.Rows(resource)))
}

func rowArg(id int64) string { return strconv.FormatInt(id, 10) }

func TestRowSaysThatARowIsEqualAndShowsBothSides(t *testing.T) {
	s, fake := loaded(t)
	id := idsOf(fake, storefake.Users)[3]
	email := fake.Rows(storefake.Users)[id]["email"].(string)
	c := s.do("row", "users", rowArg(id)).expect(t, exitDone, fmt.Sprintf("users %d", id),
		"topic        store.users, partition ", "service      rest, asked ", "FIELD", "TOPIC", "SERVICE",
		"Identical.")
	if strings.Count(c.stdout.String(), email) != 2 || strings.Contains(c.stdout.String(), "differs") {
		t.Errorf("expected %s on both sides, and no difference:\n%s", email, c.stdout)
	}

	text := s.do("row", "users", rowArg(id), "-o", "json").expect(t, exitDone).stdout.String()
	var got map[string]any
	if err := json.Unmarshal([]byte(text), &got); err != nil {
		t.Fatal(err)
	}
	names := []string{"dead_letter", "differs", "id", "in_service", "in_topic", "notes", "resource", "source",
		"topic", "verdict"}
	if keys := slices.Sorted(maps.Keys(got)); !slices.Equal(keys, names) {
		t.Errorf("names %q, promised are %q", keys, names)
	}
	reference, err := os.ReadFile("../../docs/reference.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"unpublishable", "tombstone", "unreadable"} {
		if !strings.Contains(string(reference), "`"+name+"`") {
			t.Errorf("reference.md does not tell of %q", name)
		}
	}
	inTopic := got["in_topic"].(map[string]any)
	if got["verdict"] != "identical" || inTopic["state"] != "row" ||
		inTopic["value"].(map[string]any)["email"] != email {
		t.Errorf("%s", text)
	}

	c = s.do("row", "users", rowArg(id), "--mask").expect(t, exitDone, `"***"`)
	masked := s.do("row", "users", rowArg(id), "--mask", "-o", "json").expect(t, exitDone, `"email": "***"`)
	if all := c.stdout.String() + masked.stdout.String(); strings.Contains(all, email) {
		t.Errorf("--mask shows %s:\n%s", email, all)
	}
}

func TestRowNamesTheFieldsThatDifferAndSaysWhatRepairsThem(t *testing.T) {
	s, fake := loaded(t)
	id := idsOf(fake, storefake.Orders)[0]
	s.Publish("orders", []schemas.Record{s.Order(id, "Forged")}, nil, nil)
	c := s.do("row", "orders", rowArg(id)).expect(t, exitDifferent, "DIFFERENT: ", "status",
		fmt.Sprintf("storestream: different from the service: orders %d", id))
	if n := strings.Count(c.stdout.String(), "differs\n"); n != 5 {
		t.Errorf("%d fields differ, expected all but the id:\n%s", n, c.stdout)
	}

	// A change that leaves updated_at alone is one that no poll meets.
	users := idsOf(fake, storefake.Users)
	err := fake.Update(t.Context(), storefake.Users, users[2], func(r storefake.Row) {
		r["updated_at"] = r.Time("updated_at").Add(time.Nanosecond)
		r["city"] = "Nirgends"
	})
	if err != nil {
		t.Fatal(err)
	}
	r := s.lookAtUser(exitDifferent, users[2])
	if !slices.Equal(r.Differs, []string{"city"}) {
		t.Errorf("%+v", r)
	}
	s.do("row", "users", rowArg(users[2])).expect(t, exitDifferent, "DIFFERENT: city.", "no poll meets it again",
		"`storestream sweep users` repairs it", "no instance polls it")
}

// A row that was changed a moment ago is under way.
func TestRowSaysThatAYoungChangeMayBeUnderWay(t *testing.T) {
	s, fake := loaded(t)
	id := idsOf(fake, storefake.Users)[4]
	if err := fake.Update(t.Context(), storefake.Users, id,
		func(r storefake.Row) { r["city"] = "Anderswo" }); err != nil {
		t.Fatal(err)
	}
	s.do("row", "users", rowArg(id)).expect(t, exitDifferent, "DIFFERENT: city, updated_at.",
		"it may be under way: ask again after the next poll", "the overlap (5m0s)")
	s.do("run", "--once").expect(t, exitDone)
	s.do("row", "users", rowArg(id)).expect(t, exitDone, "Identical.")
}

func TestRowFindsWhatOneSideLacks(t *testing.T) {
	s, fake := loaded(t)
	users := idsOf(fake, storefake.Users)
	s.Publish("users", nil, []int64{users[5]}, nil)
	r := s.lookAtUser(exitDifferent, users[5])
	if r.InTopic.State != row.Tombstone || r.InService.State != row.Present ||
		string(r.InTopic.Value) != "null" {
		t.Errorf("a row of which the topic has a tombstone: %+v", r)
	}
	if err := fake.Delete(t.Context(), storefake.Users, users[6]); err != nil {
		t.Fatal(err)
	}
	s.do("row", "users", rowArg(users[6])).expect(t, exitDifferent, ": none",
		"DIFFERENT.", "The service does not show it now",
		fmt.Sprintf("`storestream erase users %d`", users[6]))
	s.Publish("users", nil, []int64{users[6]}, nil)
	s.do("row", "users", rowArg(users[6])).expect(t, exitDone, ": tombstone",
		"Identical.")
	s.do("row", "users", "4711000").expect(t, exitDone, "store.users: none", "Identical.")
}

// Nothing in the topic tells on which day to look.
func TestRowFindsARowOfWhichTheTopicKnowsNothing(t *testing.T) {
	s, fake := loaded(t)
	s.Settings = append(s.Settings, "kafka.topic_prefix=other.")
	s.Publish("users", nil, nil, nil)
	users := idsOf(fake, storefake.Users)
	for _, id := range []int64{users[0], users[len(users)-1]} {
		r := s.lookAtUser(exitDifferent, id)
		if r.InTopic.State != row.Absent || r.InService.State != row.Present || r.Topic != "other.users" {
			t.Errorf("%+v", r)
		}
	}
	s.do("row", "users", rowArg(users[0])).expect(t, exitDifferent, "other.users: none",
		"DIFFERENT.", "The resource: no instance polls it")
}

// A service whose days begin elsewhere has rows on a neighbor of the day that their created_at tells.
func TestRowFindsRowsOfAServiceThatCutsDaysElsewhere(t *testing.T) {
	for _, offset := range []time.Duration{-11 * time.Hour, 11 * time.Hour} {
		t.Run(offset.String(), func(t *testing.T) {
			t.Parallel()
			s := newScene(t)
			fake := s.Serve(func(c *storefake.Config) { c.Readings.DayOffset = offset })
			s.Settings = append(s.Settings, "store.max_requests_per_second=1000")
			s.do("run", "--once").expect(t, exitDone)
			for _, id := range idsOf(fake, storefake.Users) {
				if r := s.lookAtUser(exitDone, id); r.InService.State != row.Present {
					t.Errorf("%+v", r)
				}
			}
		})
	}
}

func TestRowShowsWhyARowCannotBePublished(t *testing.T) {
	s, fake := loaded(t)
	users := idsOf(fake, storefake.Users)
	fake.Garble(storefake.Users, users[3], storefake.BadTimestamp)
	s.do("row", "users", rowArg(users[3])).expect(t, exitDifferent, ": unpublishable: updated_at: ",
		"The next poll that meets it writes a dead letter")
	s.Settings = append(s.Settings, "kafka.topic_prefix=other.")
	s.do("run", "--once").expect(t, exitLate, "not up to date: users: the topic lacks 1 row")
	c := s.do("row", "users", rowArg(users[3])).expect(t, exitDifferent, "other.users: none",
		": updated_at: ", "It cannot be published as the service has it.")
	email := fake.Rows(storefake.Users)[users[3]]["email"].(string)
	if strings.Contains(c.stdout.String(), email) {
		t.Errorf("a dead letter's row is masked unless dead_letters.rows is full:\n%s", c.stdout)
	}
	r := s.lookAtUser(exitDifferent, users[3])
	if r.DeadLetter == nil || r.DeadLetter.Field != "updated_at" || string(r.DeadLetter.Row) == "null" ||
		r.InService.State != row.Unpublishable {
		t.Errorf("%+v", r)
	}
	if r := s.lookAtUser(exitDifferent, users[3], "--mask"); string(r.DeadLetter.Row) != "null" {
		t.Errorf("--mask shows the row of a dead letter: %s", r.DeadLetter.Row)
	}
	if r := s.lookAtUser(exitDone, users[0]); r.DeadLetter != nil {
		t.Errorf("%+v", r.DeadLetter)
	}
}

// A row is compared as it would be published: what a policy keeps back is no difference, and is not shown.
func TestRowShowsAndComparesFieldsByThePolicy(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	fake := s.Serve(nil)
	const key = "f3a9c1d27e5b48608d14b7e20c6f93a5185bd0472fe69c3be8417a05d62c9f30"
	s.Settings = append(s.Settings, "store.max_requests_per_second=1000", "privacy.key="+key,
		"privacy.fields=users.email=hash,users.last_name=mask,users.street_address=drop")
	s.do("run", "--once").expect(t, exitDone)
	id := idsOf(fake, storefake.Users)[3]
	change := func(field, value string) { // no poll meets it
		t.Helper()
		if err := fake.Update(t.Context(), storefake.Users, id, func(r storefake.Row) {
			r["updated_at"], r[field] = r.Time("updated_at").Add(time.Nanosecond), value
		}); err != nil {
			t.Fatal(err)
		}
	}
	hidden := []string{key}
	look := func(code int, texts ...string) {
		t.Helper()
		user := fake.Rows(storefake.Users)[id]
		for _, field := range []string{"email", "last_name", "street_address"} {
			hidden = append(hidden, user[field].(string))
		}
		for _, format := range []string{"table", "json", "json masked"} {
			args := []string{"row", "users", rowArg(id)}
			if strings.HasPrefix(format, "json") {
				args = append(args, "-o", "json")
			}
			if strings.HasSuffix(format, "masked") {
				args = append(args, "--mask")
			}
			c := s.do(args...).expect(t, code)
			if format == "table" {
				c.expect(t, code, texts...)
			}
			for _, value := range hidden {
				if all := c.stdout.String() + c.stderr.String(); strings.Contains(all, value) {
					t.Errorf("%s: %q is not to be seen:\n%s", format, value, all)
				}
			}
		}
	}
	sum := func(key []byte, text string) []byte {
		mac := hmac.New(sha256.New, key)
		_, _ = mac.Write([]byte(text))
		return mac.Sum(nil)
	}
	hashOf := func(text string) string {
		bytes, _ := hex.DecodeString(key)
		return `"` + hex.EncodeToString(sum(sum(bytes, "users.email"), text)) + `"`
	}

	user := fake.Rows(storefake.Users)[id]
	email := hashOf(user["email"].(string))
	look(exitDone, "Identical.")
	r := s.lookAtUser(exitDone, id)
	var value map[string]json.RawMessage
	if err := json.Unmarshal(r.InTopic.Value, &value); err != nil ||
		!bytes.Equal(r.InTopic.Value, r.InService.Value) || string(value["email"]) != email ||
		string(value["street_address"]) != "null" || strings.Trim(string(value["last_name"]), `x"`) != "" {
		t.Errorf("%v: %+v", err, r)
	}

	change("street_address", "Am Graben 4711")
	change("last_name", strings.Repeat("q", len([]rune(user["last_name"].(string)))))
	look(exitDone, "Identical.")
	change("last_name", "Ganz-Anders")
	look(exitDifferent, "DIFFERENT: last_name.", `"xxxx-xxxxxx"`)
	change("email", "neue.adresse@example.org")
	look(exitDifferent, "DIFFERENT: last_name, email.", email, hashOf("neue.adresse@example.org"))

	fake.Garble(storefake.Users, id, storefake.BadTimestamp)
	s.Settings = append(s.Settings, "kafka.topic_prefix=other.")
	s.do("run", "--once").expect(t, exitLate, "not up to date: users: the topic lacks 1 row")
	look(exitDifferent, "other.users: none", ": updated_at: ")
	if r := s.lookAtUser(exitDifferent, id); r.DeadLetter == nil ||
		!strings.Contains(string(r.DeadLetter.Row), hashOf("neue.adresse@example.org")) {
		t.Errorf("%+v", r.DeadLetter)
	}
}

// Rows of other policies differ in every field that they concern, and no sweep of an instance that goes by
// those repairs that.
func TestRowSaysThatTheTopicHoldsRowsOfOtherPolicies(t *testing.T) {
	s, fake := loaded(t)
	// What changed today is met again by a poll, with other content at the same updated_at: it is published
	// after a second look. This is about what only a sweep meets.
	users := fake.Rows(storefake.Users)
	updated := func(id int64) time.Time { return users[id]["updated_at"].(time.Time) }
	id := slices.MinFunc(idsOf(fake, storefake.Users), func(a, b int64) int {
		return updated(a).Compare(updated(b))
	})
	s.Settings = append(s.Settings, "privacy.fields=users.email=mask", "resources.users.overlap=0s",
		"resources.users.interval=100ms")
	s.do("row", "users", rowArg(id)).expect(t, exitDifferent, "DIFFERENT: email.",
		"published under other policies for fields than privacy.fields says here",
		"Once all instances run with this configuration, `storestream sweep users` repairs it")
	s.do("run", "--once").expect(t, exitDone)
	s.do("row", "users", rowArg(id)).expect(t, exitDifferent, "DIFFERENT: email.",
		"`storestream sweep users` repairs it")
}

// A row without a usable id may be any.
func TestRowDoesNotTakeARowForDeletedThatMayBeOneWithoutAnID(t *testing.T) {
	s, fake := loaded(t)
	users := idsOf(fake, storefake.Users)
	fake.Garble(storefake.Users, users[3], storefake.NoID)
	s.do("row", "users", rowArg(users[3])).expect(t, exitDifferent, "DIFFERENT.",
		"shows 1 row without a usable one (in the dead letters)")
	s.do("row", "users", "4711000").expect(t, exitFailed, "store.users: none", "Could not tell.",
		"the service shows 1 row without a usable id, and this may be one")
}

// keyOf is the key of a row as the topic holds it.
func (s *scene) keyOf(resource string, id int64) []byte {
	s.t.Helper()
	cl, err := kgo.NewClient(kgo.SeedBrokers(s.Broker.Brokers()...), kgo.ConsumeTopics("store."+resource))
	if err != nil {
		s.t.Fatal(err)
	}
	defer cl.Close()
	for {
		fetches := cl.PollFetches(s.t.Context())
		if err := fetches.Err(); err != nil {
			s.t.Fatal(err)
		}
		for _, record := range fetches.Records() {
			if _, found, err := schemas.ReadKey(record.Key); err == nil && found == id {
				return record.Key
			}
		}
	}
}

// What another program wrote is told apart from the row, and from other rows.
func TestRowNamesRecordsOfOtherPrograms(t *testing.T) {
	s, fake := loaded(t)
	users := idsOf(fake, storefake.Users)
	cl, err := kgo.NewClient(kgo.SeedBrokers(s.Broker.Brokers()...),
		kgo.RecordPartitioner(kgo.ManualPartitioner()))
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	home := s.lookAtUser(exitDone, users[0]).InTopic.Partition
	key := s.keyOf("users", users[0])
	write := func(partition int32, value []byte) {
		t.Helper()
		if err := cl.ProduceSync(t.Context(), &kgo.Record{Topic: "store.users", Partition: partition, Key: key,
			Value: value}).FirstErr(); err != nil {
			t.Fatal(err)
		}
	}
	write(1-home, []byte("x"))
	r := s.lookAtUser(exitDifferent, users[0])
	if len(r.InTopic.Strays) != 1 || r.InTopic.Strays[0].Partition != 1-home || r.InTopic.State != row.Present ||
		len(r.Differs) != 0 || len(r.Notes) == 0 || !strings.Contains(r.Notes[0], "does not belong") {
		t.Errorf("a stray: %+v", r)
	}
	write(1-home, nil) // as a sweep does
	s.lookAtUser(exitDone, users[0])
	write(home, []byte("not Avro"))
	s.do("row", "users", rowArg(users[0])).expect(t, exitDifferent,
		"Another program wrote the topic's newest record of it", "`storestream sweep users` repairs it")
	s.lookAtUser(exitDone, users[1])
}

func TestRowShowsWhatTheTopicHoldsWhereTheServiceIsDown(t *testing.T) {
	s, fake := loaded(t)
	id := idsOf(fake, storefake.Users)[0]
	down := []string{"--set", "store.base_url=http://" + stage.Nowhere(t) + "/v1", "--set",
		"store.request_timeout=1s"}
	s.do(append([]string{"row", "users", rowArg(id)}, down...)...).expect(t, exitFailed, "FIELD", "email",
		": unknown\n", "Could not tell.", "connection refused")
	r := s.lookAtUser(exitFailed, id, down...)
	if r.Verdict != "unknown" || string(r.InTopic.Value) == "null" || r.InService.State != row.Unknown ||
		!strings.Contains(r.Error, "connection refused") {
		t.Errorf("%+v", r)
	}

	hang := func(f *storefake.Faults) { f.Shares = map[storefake.Fault]float64{storefake.Hang: 1} }
	if err := fake.SetFaults(hang); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	c := s.call("row", "users", rowArg(id), "--set", "store.request_timeout=1m")
	before := len(fake.Requests())
	go func() {
		stage.Eventually(t, "it asks the service", func() bool { return len(fake.Requests()) > before })
		cancel()
	}()
	c.run(ctx).expect(t, exitFailed, "email", "could not tell: users ")
}

func TestRowSaysWhatItExpects(t *testing.T) {
	s := newScene(t)
	s.do("row").expect(t, exitUsage, "expected a resource and ids of rows (1 at most), such as storestream row "+
		"users 123")
	s.do("row", "users", "1", "2").expect(t, exitUsage, "expected a resource and ids of rows (1 at most)")
	s.do("row", "user", "1").expect(t, exitUsage, "unknown resource")
	s.do("row", "users", "1x").expect(t, exitUsage, `"1x" is no id: expected a whole number`)
	s.do("row", "users", "1").expect(t, exitFailed,
		"topic store.users does not exist: `storestream run` creates and fills it")
	do(t, "row", "users", "1", "--set", "kafka.brokers="+stage.Nowhere(t)).
		expect(t, exitFailed, "does not answer: ")
}
