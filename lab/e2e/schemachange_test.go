package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"math/big"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/storestream/storestream/internal/standins/storefake"
)

// Tests of docs/lifecycle.md, "Change a schema", with Apache Kafka and a schema registry that refuses
// incompatible schemas.

// realServers skips a test that is about Apache Kafka, or a real schema registry.
func realServers(t *testing.T) {
	t.Helper()
	if os.Getenv("E2E_BROKER") != "kafka" {
		t.Skip("make test-upgrade runs it: it takes Java and Maven")
	}
}

const (
	channel = `{"name": "channel", "type": ["null", "string"], "default": null}`
	coupon  = `{"name": "coupon", "type": ["null", "string"], "default": null}`
	etag    = `{"name": "_etag", "type": ["null", "string"], "default": null}`
)

// schemaWith is the built-in schema of a resource with more fields.
func (s *stack) schemaWith(resource string, fields ...string) string {
	s.t.Helper()
	text, errs, code := s.do("schema", "show", resource)
	if code != 0 {
		s.t.Fatalf("schema show: %s", errs)
	}
	var schema map[string]any
	if err := json.Unmarshal([]byte(text), &schema); err != nil {
		s.t.Fatal(err)
	}
	for _, f := range fields {
		schema["fields"] = append(schema["fields"].([]any), json.RawMessage(f))
	}
	with, err := json.Marshal(schema)
	if err != nil {
		s.t.Fatal(err)
	}
	return string(with)
}

// schemaFolder is a schemas.dir with these files, as an option.
func (s *stack) schemaFolder(name string, files map[string]string) []string {
	s.t.Helper()
	if err := os.Mkdir(filepath.Join(s.dir, name), 0o700); err != nil {
		s.t.Fatal(err)
	}
	for file, text := range files {
		s.write(filepath.Join(name, file), text)
	}
	return []string{"--set", "schemas.dir=" + filepath.Join(s.dir, name)}
}

// roll ends each of the running instances, one after the other, and starts another one of program in its
// place. Between them it waits for traffic.
func (s *stack) roll(running []*process, program string, args ...string) {
	s.t.Helper()
	for i := range running {
		running[i].stop()
		running[i] = s.spawnOf(program, slices.Concat([]string{"run"}, args)...)
		share(running...)
		running[i].isReady()
		s.changes(100)
	}
}

// sql is a statement of the service's owner.
func (s *stack) sql(statement string) {
	s.t.Helper()
	if err := s.fake.Exec(context.Background(), statement); err != nil {
		s.t.Fatal(err)
	}
}

// unknownFields lets the service's rows over REST have fields that the built-in schemas do not know, such as
// _etag, or takes them out.
func (s *stack) unknownFields(there bool) {
	s.t.Helper()
	if err := s.fake.SetReadings(func(r *storefake.Readings) { r.ExtraFields = there }); err != nil {
		s.t.Fatal(err)
	}
}

// firstOrders are the orders that the service has at the start, or fewer.
const firstOrders = 400

// withChannel is what a topic shows of orders with the column channel, which addChannel made, and of users
// with the field _etag.
func withChannel(resource string, row storefake.Row) storefake.Row {
	switch {
	case resource == storefake.Users:
		row["_etag"] = `W/"1"`
	case resource == storefake.Orders && row.ID() <= firstOrders && row.ID()%2 == 0:
		row["channel"] = "shop"
	case resource == storefake.Orders:
		row["channel"] = "web"
	}
	return row
}

// addChannel adds a column with a default, and fills it as a migration does: no row's updated_at says so.
func (s *stack) addChannel() {
	s.t.Helper()
	s.sql("ALTER TABLE orders ADD COLUMN channel text DEFAULT 'web'")
	s.sql(fmt.Sprintf("UPDATE orders SET channel = 'shop' WHERE id <= %d AND id %% 2 = 0", firstOrders))
	s.wroteAnew = func(id int64) bool { return id <= firstOrders && id%2 == 0 }
}

// A column, and a field over REST, come while the shop trades. Instances are restarted one after the other
// with the new schema; consumers of the old schema and of the new one read on through all of it. Rows that do
// not change afterwards get the new field by a sweep, which publishes those alone.
func TestAFieldThatIsAddedReachesConsumersOfTheOldSchemaAndTheNew(t *testing.T) {
	t.Parallel()
	realServers(t)
	s := start(t, setup{apicurio: true, fake: smallShop(60), yaml: quick + "sweep: {interval: 0s}\n"})
	s.fake.StartTraffic(30)
	running := []*process{s.spawn("run"), s.spawn("run")}
	share(running...)
	for _, p := range running {
		p.isReady()
	}
	oldOrders := s.follow(storefake.Orders, s.schemaWith(storefake.Orders))
	oldUsers := s.follow(storefake.Users, s.schemaWith(storefake.Users))
	newOrders := s.follow(storefake.Orders, s.schemaWith(storefake.Orders, channel))
	newUsers := s.follow(storefake.Users, s.schemaWith(storefake.Users, etag))

	s.changes(100)
	s.addChannel()
	s.unknownFields(true)
	s.changes(100)
	schemas := s.schemaFolder("added", map[string]string{
		"Order.avsc": s.schemaWith(storefake.Orders, channel), "User.avsc": s.schemaWith(storefake.Users, etag)})
	s.expect(0, []string{"store.orders-value", "not registered; compatible"},
		append([]string{"schema", "check"}, schemas...)...)
	s.roll(running, program, schemas...)

	s.fake.StartTraffic(0)
	s.fake.Quiesce()
	for _, f := range []*follower{oldOrders, oldUsers} {
		f.holds(s, nil)
	}
	lack := 0
	for _, r := range newestOf(s.topic(storefake.Orders)) {
		if r.value["channel"] == nil {
			lack++
		}
	}
	if lack == 0 {
		t.Fatal("every order was published again before anybody asked: the test shows nothing")
	}
	before := len(s.topic(storefake.Orders))
	s.expect(0, nil, "sweep", storefake.Orders, storefake.Users, "--yes", "--wait")
	if n := len(s.topic(storefake.Orders)) - before; n != lack {
		t.Errorf("the sweep published %d orders; %d had no channel yet", n, lack)
	}
	s.sees = withChannel
	s.quiet()
	newOrders.holds(s, withChannel)
	newUsers.holds(s, withChannel)
	for _, f := range []*follower{oldOrders, oldUsers} {
		f.holds(s, nil) // which read the sweep's records too
	}
	s.expect(0, []string{"Identical"}, append([]string{"verify"}, schemas...)...)
}

// newestOf is the newest record of each row.
func newestOf(records []record) map[int64]record {
	newest := map[int64]record{}
	for _, r := range records {
		newest[r.id] = r
	}
	return newest
}

// Two columns go. One goes from the schema first, as it should: nothing stands still. The other goes from the
// table first: the resource is blocked, says which column it is, and publishes nothing, until a schema
// without it is there. So it is with a field over REST. Consumers of the old schema read on and find null.
func TestAFieldThatIsRemovedGoesFromTheSchemaFirstOrHoldsTheResource(t *testing.T) {
	t.Parallel()
	realServers(t)
	s := start(t, setup{apicurio: true, fake: smallShop(61), yaml: quick + "sweep: {interval: 0s}\n"})
	s.addChannel()
	s.sql("ALTER TABLE orders ADD COLUMN coupon text DEFAULT 'none'")
	s.unknownFields(true)
	both := s.schemaFolder("both", map[string]string{
		"Order.avsc": s.schemaWith(storefake.Orders, channel, coupon),
		"User.avsc":  s.schemaWith(storefake.Users, etag)})
	s.fake.StartTraffic(30)
	run := append([]string{"run"}, both...)
	running := []*process{s.spawn(run...), s.spawn(run...)}
	share(running...)
	for _, p := range running {
		p.isReady()
	}
	old := s.follow(storefake.Orders, s.schemaWith(storefake.Orders, channel, coupon))
	s.changes(100)

	withoutCoupon := s.schemaFolder("without-coupon", map[string]string{
		"Order.avsc": s.schemaWith(storefake.Orders, channel), "User.avsc": s.schemaWith(storefake.Users, etag)})
	s.roll(running, program, withoutCoupon...)
	s.sql("ALTER TABLE orders DROP COLUMN coupon")
	s.changes(100)
	for _, p := range running {
		for _, r := range p.resources() {
			if r.State == "failing" || r.State == "blocked" {
				t.Errorf("a column went that no schema has: %+v", r)
			}
		}
	}

	s.sql("ALTER TABLE orders DROP COLUMN channel")
	s.unknownFields(false)
	s.eventuallySays("has no column channel any more", "watermark", "list")
	s.eventuallySays("the service's rows have lost _etag", "watermark", "list")
	held := map[string]int{}
	for _, resource := range []string{storefake.Orders, storefake.Users} {
		held[resource] = len(s.topic(resource))
	}
	others := len(s.topic(storefake.OrderItems))
	s.changes(200)
	eventually(t, "other resources go on", func() (bool, string) {
		return len(s.topic(storefake.OrderItems)) > others, ""
	})
	for resource, n := range held {
		if now := len(s.topic(resource)); now != n {
			t.Errorf("%s is blocked, and %d records came", resource, now-n)
		}
	}

	s.roll(running, program) // with the built-in schemas
	s.fake.StartTraffic(0)
	s.fake.Quiesce()
	asWritten := newestOf(s.topic(storefake.Orders))
	s.sees = func(resource string, row storefake.Row) storefake.Row {
		// What did not change since has the columns still that were there when it was written.
		for _, field := range []string{"channel", "coupon"} {
			if value, there := asWritten[row.ID()].value[field]; there && resource == storefake.Orders {
				row[field] = value
			}
		}
		return row
	}
	eventually(t, "orders are published again", func() (bool, string) {
		asWritten = newestOf(s.topic(storefake.Orders))
		found := s.differences(storefake.Orders, s.topic(storefake.Orders))
		return len(found) == 0, summary(found)
	})
	inOrder(t, storefake.Orders, s.topic(storefake.Orders))
	old.holds(s, func(resource string, row storefake.Row) storefake.Row {
		row["channel"], row["coupon"] = asWritten[row.ID()].value["channel"], asWritten[row.ID()].value["coupon"]
		return row
	})
	s.eventuallySays("Everything is up to date", "watermark", "list")
	s.expect(0, []string{"Identical"}, "verify") // a field that the schema does not have is no difference
}

// Schemas that the registry finds incompatible: `schema check` and `check` say so before. An instance that
// starts with them all the same publishes nothing of the resources that the group gives it, registers
// nothing, and says which subject refused what. What the instance with the schemas of before has goes on, and
// once the other is stopped it has all again.
func TestIncompatibleSchemasAreRefusedAndNothingIsPublishedUnderThem(t *testing.T) {
	t.Parallel()
	realServers(t)
	s := start(t, setup{apicurio: true, fake: smallShop(62), yaml: quick + "sweep: {interval: 0s}\n"})
	s.fake.StartTraffic(30)
	p := s.spawn("run")
	p.isReady()
	files, versions := map[string]string{}, map[string][]int{}
	for _, resource := range storefake.Names() {
		schema := s.schemaWith(resource)
		was, is := `["null","string"]`, `["null","long"]`
		if !strings.Contains(schema, was) {
			was, is = is, was
		}
		files[resource+".avsc"] = strings.Replace(schema, was, is, 1)
		if files[resource+".avsc"] == schema {
			t.Fatalf("the schema has another form: %s", schema)
		}
		versions[resource] = s.versions(resource)
	}
	wrong := s.schemaFolder("wrong", files)
	s.expect(1, []string{"store.orders-value", "refused", "change the schema file"},
		append([]string{"schema", "check"}, wrong...)...)
	s.expect(1, []string{"store.orders-value: it would be incompatible"}, append([]string{"check"}, wrong...)...)

	other := s.spawn(append([]string{"run"}, wrong...)...)
	eventually(t, "the group gives it something", func() (bool, string) { return len(other.owned()) > 0, "" })
	share(p, other)
	refused := other.owned()
	for _, resource := range refused {
		other.reports(s.prefix+resource+"-value", "refuses the schema")
	}
	before := map[string]int{}
	for _, resource := range storefake.Names() {
		before[resource] = len(s.topic(resource))
	}
	for _, resource := range storefake.Names() {
		if !slices.Contains(refused, resource) {
			eventually(t, resource+" goes on", func() (bool, string) {
				s.shop(5)
				return len(s.topic(resource)) > before[resource], ""
			})
		} else if now := len(s.topic(resource)); now != before[resource] {
			t.Errorf("%d records of %s were published under a schema that was refused", now-before[resource],
				resource)
		}
		if now := s.versions(resource); !slices.Equal(now, versions[resource]) {
			t.Errorf("the registry had versions %v of %s, and has %v", versions[resource], resource, now)
		}
	}
	other.stop()
	p.owns(storefake.Names()...)
	s.quiet()
}

// Where the subject's rule is taken away, a field may get another type in the same topic. What is written
// under the new schema has it, and a sweep publishes every row that cannot be read as that.
func TestAFieldThatIsGivenAnotherTypeIsPublishedAnewByASweep(t *testing.T) {
	t.Parallel()
	realServers(t)
	s := start(t, setup{apicurio: true, fake: smallShop(67), yaml: quick + "sweep: {interval: 0s}\n"})
	s.fake.StartTraffic(30)
	p := s.spawn("run")
	p.isReady()
	s.changes(60)
	p.stop()
	const decimal = `{"logicalType":"decimal","precision":38,"scale":18,"type":"bytes"}`
	schema := strings.Replace(s.schemaWith(storefake.Orders), decimal, `"double"`, 1)
	double := s.schemaFolder("double", map[string]string{"Order.avsc": schema})
	s.expect(1, []string{"store.orders-value", "refused"}, append([]string{"schema", "check"}, double...)...)
	// By Confluent's path NONE takes Apicurio's rule away, and the global one holds.
	rules := strings.Replace(s.registry, "ccompat/v7", "registry/v2/groups/default/artifacts", 1) +
		"/store.orders-value/rules"
	resp, err := http.Post(rules, "application/json",
		strings.NewReader(`{"type": "COMPATIBILITY", "config": "NONE"}`))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusNoContent {
		t.Fatalf("the registry answers %d", resp.StatusCode)
	}
	s.spawn(append([]string{"run"}, double...)...).isReady()
	s.changes(60)
	s.expect(0, nil, "sweep", storefake.Orders, "--yes", "--wait")
	s.sees = func(resource string, row storefake.Row) storefake.Row {
		if amount, is := row["total_amount"].(storefake.Money); is && resource == storefake.Orders {
			exact, _ := new(big.Rat).SetString(string(amount))
			row["total_amount"], _ = exact.Float64()
		}
		return row
	}
	s.quiet()
	s.expect(0, []string{"Identical"}, append([]string{"verify"}, double...)...)
}

// versions are those that the registry has of a resource's values.
func (s *stack) versions(resource string) (versions []int) {
	s.t.Helper()
	resp, err := http.Get(s.registry + "/subjects/" + s.prefix + resource + "-value/versions")
	if err != nil {
		s.t.Fatal(err)
	}
	defer resp.Body.Close()
	if err := json.NewDecoder(resp.Body).Decode(&versions); err != nil {
		s.t.Fatal(err)
	}
	return versions
}
