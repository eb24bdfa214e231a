package main

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/storestream/storestream/cmd/storestream/internal/stage"
	"github.com/storestream/storestream/internal/standins/servers"
	"github.com/storestream/storestream/internal/standins/storefake"
	"github.com/storestream/storestream/internal/watermark"
	"github.com/storestream/storestream/schemas"
)

// loaded is a scene with a service whose rows are published. The test runs beside others from then on: a
// first load mostly waits, and so does a command that asks a service which does not answer.
func loaded(t *testing.T) (*scene, *storefake.Fake) {
	t.Helper()
	t.Parallel()
	s := newScene(t)
	fake := s.Serve(nil)
	s.Settings = append(s.Settings, "store.max_requests_per_second=1000")
	s.do("run", "--once").expect(t, exitDone)
	return s, fake
}

func (s *scene) forget(resource string, ids ...int64) { s.Publish(resource, nil, ids, nil) }

func TestVerifySaysThatTopicsAreIdentical(t *testing.T) {
	s, _ := loaded(t)
	s.do("verify").expect(t, exitDone, "RESOURCE", "SERVICE", "IN FLIGHT", "FIRST IDS", "shipments",
		"Identical:", "of 5 resources, row by row")
	s.do("verify", "--set", "resources.orders.enabled=false").expect(t, exitDone, "of 4 resources")
	s.do("verify", "users", "users").expect(t, exitDone, "of 1 resource,")
	// With another registry nobody can decode them, whoever has their schemas cached.
	s.do("verify", "users", "--set", "registry.url="+servers.RegistryForTest(t).URL).expect(t, exitFailed,
		"users: topic store.users: the schema id of its ", "which this registry does not have")
}

// A batch of another program that is too large to be read may hold any row's key: nobody can say that the
// topic is right. Every other command reads past it.
func TestABatchThatIsTooLargeToBeReadHoldsUpNoCommand(t *testing.T) {
	s, fake := loaded(t)
	cl, err := kgo.NewClient(kgo.SeedBrokers(s.Broker.Brokers()...), kgo.ProducerBatchMaxBytes(64<<20),
		kgo.MaxBufferedBytes(64<<20), kgo.ProducerBatchCompression(kgo.ZstdCompression()))
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	for _, topic := range []string{"users", "watermarks", "dead_letters", "requests"} {
		bomb := &kgo.Record{Topic: "store." + topic, Key: []byte("users"), Value: make([]byte, 16<<20)}
		if err := cl.ProduceSync(t.Context(), bomb).FirstErr(); err != nil {
			t.Fatal(err)
		}
	}
	id := slices.Min(slices.Collect(maps.Keys(fake.Rows(storefake.Users))))
	s.do("verify", "users").expect(t, exitFailed, "too large to be read (1)", "A batch that was stepped over")
	s.do("row", "users", fmt.Sprint(id)).expect(t, exitFailed, "too large to be read (1)")
	s.do("tail", "users", "-n", "1").expect(t, exitDone)
	s.do("watermark", "list").expect(t, exitLate, "users")
	s.do("check").expect(t, exitDone)
	s.do("run", "--once").expect(t, exitDone)
}

func TestVerifyNamesTheFirstRowsThatDifferAndWhatRepairsThem(t *testing.T) {
	s, fake := loaded(t)
	ids := slices.Sorted(maps.Keys(fake.Rows(storefake.Users)))
	s.forget("users", ids[:7]...)
	orders := slices.Sorted(maps.Keys(fake.Rows(storefake.Orders)))
	s.Publish("orders", []schemas.Record{s.Order(orders[0], "Forged"), s.Order(100_000, "Forged")}, nil, nil)
	c := s.do("verify", "users", "orders", "products").expect(t, exitDifferent, "missing 1, 2, 3, 4, 5, ...",
		"stale 1; extra 100000", "DIFFERENT: users, orders.",
		"users: `storestream sweep users`", "orders: `storestream sweep orders`", "users: no instance polls it",
		"storestream: different from the service: users, orders")
	if strings.Contains(c.stdout.String(), "products: no instance") {
		t.Errorf("products are identical, whoever polls them:\n%s", c.stdout)
	}

	s.do("verify", "users", "orders", "--set", "sweep.deletes=report").expect(t, exitDifferent,
		"orders: `storestream sweep orders`", "orders: extra rows stay, because sweep.deletes is report")

	c = s.do("verify", "users", "orders", "products", "-o", "json").expect(t, exitDifferent)
	var got struct {
		Verdict   string
		Resources []map[string]any
	}
	if err := json.Unmarshal([]byte(c.stdout.String()), &got); err != nil {
		t.Fatalf("%v:\n%s", err, c.stdout)
	}
	names := []string{"as_of", "dead_letters", "extra", "extra_ids", "foreign", "in_flight", "missing",
		"missing_ids", "notes", "resource", "seconds", "source", "source_rows", "stale",
		"stale_ids", "topic", "topic_rows", "unknown", "unknown_ids", "verdict"}
	if keys := slices.Sorted(maps.Keys(got.Resources[2])); !slices.Equal(keys, names) {
		t.Errorf("names %q, promised are %q", keys, names)
	}
	reference, err := os.ReadFile("../../docs/reference.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"identical", "incomplete", "different", "unknown"} {
		if !strings.Contains(string(reference), "`"+name+"`") {
			t.Errorf("reference.md does not tell of %q", name)
		}
	}
	if users := got.Resources[0]; got.Verdict != "different" || users["verdict"] != "different" ||
		users["missing"] != 7.0 || len(users["missing_ids"].([]any)) != 7 ||
		users["source_rows"] != 20.0 || users["topic_rows"] != 13.0 || users["topic"] != "store.users" ||
		users["source"] != "rest" {
		t.Errorf("users: %v", users)
	}
}

// Consumers meet what no row answers for, and the rows are right all the same.
func TestRecordsOfOtherProgramsAreNamed(t *testing.T) {
	s, fake := loaded(t)
	cl, err := kgo.NewClient(kgo.SeedBrokers(s.Broker.Brokers()...),
		kgo.RecordPartitioner(kgo.ManualPartitioner()))
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	write := func(partition int32, key, value []byte) {
		t.Helper()
		if err := cl.ProduceSync(t.Context(), &kgo.Record{Topic: "store.users", Partition: partition, Key: key,
			Value: value}).FirstErr(); err != nil {
			t.Fatal(err)
		}
	}
	write(0, []byte("by hand"), []byte("x"))
	write(1, nil, []byte("x"))
	s.do("verify", "users").expect(t, exitDone, "Identical: 20 rows",
		"users: 2 records in the topic with a key that is no row's")

	id := slices.Min(slices.Collect(maps.Keys(fake.Rows(storefake.Users))))
	key := schemas.AppendKey(nil, id)
	schemas.SetSchemaID(key, 1)
	for partition := range int32(2) { // in one of the two it belongs
		write(partition, key, []byte("x"))
	}
	s.do("verify", "users").expect(t, exitDifferent, fmt.Sprintf("stale %d", id), "users: no instance polls it",
		"users: 2 records in the topic", "users: 1 row of those that differ: another program wrote")
	s.Publish("users", nil, nil, func(w *watermark.Watermark) { w.Pause = &watermark.Pause{By: "ann@desk"} })
	c := s.do("verify", "users").expect(t, exitDifferent, "users: it is paused, so rows that changed since then")
	if strings.Contains(c.stdout.String()+c.stderr.String(), "storestream sweep users") {
		t.Errorf("it advises a sweep, which waits in a pause:\n%s", c.stdout)
	}
}

// A dead letter is a row of which is known that it is not there.
func TestDeadLettersAreNoDifferences(t *testing.T) {
	s, fake := loaded(t)
	ids := slices.Sorted(maps.Keys(fake.Rows(storefake.Users)))
	fake.Garble(storefake.Users, ids[3], storefake.BadTimestamp)
	s.forget("users", ids[3])
	says := "\nIdentical but for 1 row with dead letters: 19 rows of 1 resource"
	s.do("verify", "users").expect(t, exitDifferent, says, "too many rows have dead letters: users",
		"users: 1 row cannot be published, see the dead letters")
	out := s.do("verify", "users", "products", "-o", "json").expect(t, exitDifferent).stdout.String()
	if strings.Count(out, `"verdict": "incomplete"`) != 2 || strings.Count(out, `"verdict": "identical"`) != 1 {
		t.Errorf("expected users and the whole to be incomplete, and products identical:\n%s", out)
	}

	// Good, and too large for the topic.
	err := fake.Update(t.Context(), storefake.Users, ids[4], func(row storefake.Row) {
		row["city"] = strings.Repeat("Llanfair", 300_000)
	})
	if err != nil {
		t.Fatal(err)
	}
	s.do("verify", "users").expect(t, exitDifferent, "\nIdentical but for 2 rows with dead letters: 18 rows",
		"users: 2 rows cannot be published, see the dead letters")
}

// A dead letter says that a row could not be published once. Another program may have written it, or the
// service may have put the row right since.
func TestARowThatCanBePublishedDiffersThoughItHasADeadLetter(t *testing.T) {
	s, fake := loaded(t)
	ids := slices.Sorted(maps.Keys(fake.Rows(storefake.Users)))
	letter := watermark.DeadLetter{Key: fmt.Sprintf("users/%d", ids[4]), Row: []byte("{}"), Source: "rest",
		Err: "the record takes 2000000 bytes"}
	s.Commit("users", watermark.Transaction{Deletes: ids[4:5], DeadLetters: []watermark.DeadLetter{letter}}, nil)
	s.do("verify", "users").expect(t, exitDifferent, fmt.Sprintf("missing %d", ids[4]))
}

func TestVerifySaysWhyItCouldNotTell(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.do("verify", "orders").expect(t, exitFailed, "could not tell", "orders: topic store.orders does not exist",
		"Could not tell: ")
	do(t, "verify", "--set", "kafka.brokers="+stage.Nowhere(t)).expect(t, exitFailed, "does not answer: ")
	s.Publish("users", nil, nil, nil)
	s.Publish("products", nil, nil, nil)
	s.Serve(nil)
	cl, err := kgo.NewClient(kgo.SeedBrokers(s.Broker.Brokers()...))
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	if _, err := kadm.NewClient(cl).CreatePartitions(t.Context(), 1, "store.products"); err != nil {
		t.Fatal(err)
	}
	s.do("verify", "products").expect(t, exitFailed, "products: topic store.products: the number of "+
		"partitions is 3, expected 2", "delete the topic")
	c := s.do("verify", "users", "-o", "json", "--set", "store.base_url=http://"+stage.Nowhere(t)+"/v1", "--set",
		"store.request_timeout=1s").expect(t, exitFailed, "connection refused")
	if !strings.Contains(c.stdout.String(), `"verdict": "unknown"`) {
		t.Errorf("stdout:\n%s", c.stdout)
	}
}

// remake deletes a topic and creates it again, empty, as a person does by hand.
func (s *scene) remake(topic string, partitions int32) {
	s.t.Helper()
	cl, err := kgo.NewClient(kgo.SeedBrokers(s.Broker.Brokers()...))
	if err != nil {
		s.t.Fatal(err)
	}
	defer cl.Close()
	admin, compacted := kadm.NewClient(cl), map[string]*string{"cleanup.policy": kadm.StringPtr("compact")}
	if _, err := admin.DeleteTopics(s.t.Context(), topic); err != nil {
		s.t.Fatal(err)
	}
	if _, err := admin.CreateTopic(s.t.Context(), partitions, 1, compacted, topic); err != nil {
		s.t.Fatal(err)
	}
}

// Equal was the topic that is gone.
func TestVerifyDoesNotCallATopicEqualThatWasMadeAnewMeanwhile(t *testing.T) {
	s, fake := loaded(t)
	hang := func(share float64) {
		t.Helper()
		err := fake.SetFaults(func(f *storefake.Faults) {
			f.Shares = map[storefake.Fault]float64{storefake.Hang: share}
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	hang(1)
	before := len(fake.Requests())
	_, _, wait := s.run("verify", "users")
	stage.Eventually(t, "it asks the service", func() bool { return len(fake.Requests()) > before })
	s.remake("store.users", 2) // it has read the topic before
	hang(0)
	wait().expect(t, exitFailed, "users: topic store.users was created anew while it was compared",
		"Could not tell: ")
}

// A topic that was made anew has what its partitions are, whatever the watermark of the one before tells.
func TestVerifyAndCheckSayThatATopicWasMadeAnewAndDoNotAdviseToDeleteIt(t *testing.T) {
	s, fake := loaded(t)
	s.remake("store.users", 3)
	c := s.do("verify", "users", "products").expect(t, exitDifferent, "the topic does not hold all that "+
		"was published: it was created anew", "a running instance fills it from the start")
	if all := c.stdout.String() + c.stderr.String(); strings.Contains(all, "delete the topic") ||
		strings.Contains(all, "storestream sweep users") {
		t.Errorf("advice that does not help:\n%s", all)
	}
	c = s.do("check")
	if all := c.stdout.String() + c.stderr.String(); !strings.Contains(all, "it does not hold all that was "+
		"published: it was created anew: it has another id") || strings.Contains(all, "delete the topic") {
		t.Errorf("check:\n%s", all)
	}
	s.do("run", "--once").expect(t, exitDone)
	s.do("verify", "users").expect(t, exitDone, "Identical")
	if c := s.do("check"); strings.Contains(c.stdout.String(), "created anew") {
		t.Errorf("check of %d users in it:\n%s", fake.Count(storefake.Users), c.stdout)
	}
}

// Neither side has a row, and nobody knows what the topic should hold.
func TestVerifyDoesNotCallATopicEqualThatLacksWhatWasPublished(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.Serve(func(c *storefake.Config) { c.Size = storefake.Size{Products: 10} })
	s.Publish("users", nil, nil, nil)
	s.do("verify", "users").expect(t, exitDone, "Identical: 0 rows")
	s.remake("store.users", 2)
	s.do("verify", "users").expect(t, exitFailed, "users: the topic does not hold all that was "+
		"published: it was created anew: it has another id: verify it again")
}

// For minutes nothing else would be seen of it, in a CronJob's log too.
func TestVerifySaysWhatItWaitsForAndUntilWhen(t *testing.T) {
	s, fake := loaded(t)
	s.Settings = append(s.Settings, "resources.users.interval=30s", "resources.users.overlap=5m")
	s.Join("b", "users")
	s.forget("users", slices.Min(slices.Collect(maps.Keys(fake.Rows(storefake.Users)))))
	hold := func(until *schemas.Instant) {
		t.Helper()
		s.Publish("users", nil, nil, func(w *watermark.Watermark) {
			w.AsOf, w.Trouble = schemas.InstantOf(time.Now()), nil
			if until != nil {
				w.Trouble = &watermark.Trouble{Why: "a row came back older than it was", Publishes: true, Until: until}
			}
		})
	}
	later := schemas.InstantOf(time.Now().Add(5 * time.Minute))
	hold(&later)
	out, _, ended := s.run("verify", "users", "-o", "json")
	says := func(pattern string) {
		t.Helper()
		stage.Eventually(t, "it says "+pattern, func() bool {
			return regexp.MustCompile(pattern).MatchString(out.stderr.String())
		})
	}
	says(`users: 1 row different so far, looked at again after rows that the running instance defers, and ` +
		`publishes after the overlap \(5m0s\), by \d\d:\d\d:\d\dZ at the latest\n`)
	hold(nil)
	says(`users: 1 row different so far, looked at again after the next poll, by \d\d:\d\d:\d\dZ at ` +
		`the latest\n`)
	hold(nil)
	c := ended().expect(t, exitDifferent)
	if n := strings.Count(c.stderr.String(), "different so far"); n != 2 {
		t.Errorf("%d lines of waits, expected one of each:\n%s", n, c.stderr)
	}
}

func TestVerifyEndsWhenItIsInterrupted(t *testing.T) {
	s, fake := loaded(t)
	hang := func(f *storefake.Faults) { f.Shares = map[storefake.Fault]float64{storefake.Hang: 1} }
	if err := fake.SetFaults(hang); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	c := s.call("verify", "users")
	c.args = append(c.args, "--set", "store.request_timeout=1m")
	before := len(fake.Requests())
	go func() {
		stage.Eventually(t, "it asks the service", func() bool { return len(fake.Requests()) > before })
		cancel()
	}()
	c.run(ctx).expect(t, exitFailed, "interrupted")
}
