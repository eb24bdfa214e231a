package schemas

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/twmb/avro"
)

// specified lists the resources of the service's document: their fields in its order, "?" for nullable, "!"
// for personal data. It repeats the .avsc files on purpose, because a slip in one changes the topics. A
// resource that is added later need not be in it.
var specified = map[string]string{
	"orders": "Order /store-orders orders: id long, user_id long?, status string?, total_amount decimal?, " +
		"created_at timestamp, updated_at timestamp",
	"order_items": "OrderItem /store-order-items order_items: id long, order_id long?, product_id long?, " +
		"sale_price decimal?, quantity long?, amount decimal?, created_at timestamp, updated_at timestamp",
	"products": "Product /store-products : id long, cost decimal?, category string?, name string?, " +
		"brand string?, retail_price decimal?, department string?, sku string?, " +
		"created_at timestamp, updated_at timestamp",
	"users": "User /store-users : id long, first_name string?!, last_name string?!, email string?!, " +
		"age long?!, gender string?!, state string?, street_address string?!, postal_code string?!, " +
		"city string?!, country string?, latitude double?!, longitude double?!, traffic_source string?, " +
		"created_at timestamp, updated_at timestamp",
	"shipments": "Shipment /store-shipments : id long, order_id long?, shipped_at timestamp?, " +
		"delivered_at timestamp?, returned_at timestamp?, created_at timestamp, updated_at timestamp",
}

func TestTheBuiltInSchemasAreTheSpecification(t *testing.T) {
	set := load(t)
	kinds := map[*codec]string{longCodec: "long", timeCodec: "timestamp", doubleCodec: "double",
		textCodec: "string"}
	const money = `{"type":"bytes","logicalType":"decimal","precision":38,"scale":18}`
	for name, want := range specified {
		r := set.Get(name)
		if r == nil {
			t.Errorf("%s is not declared", name)
			continue
		}
		var fields []string
		for _, f := range r.Fields {
			kind := kinds[f.codec]
			if f.codec.avroType == money {
				kind = "decimal"
			}
			s := f.Name + " " + kind
			if f.Nullable {
				s += "?"
			}
			if f.PII {
				s += "!"
			}
			fields = append(fields, s)
			if f.Doc == "" {
				t.Errorf("%s.%s has no doc", name, f.Name)
			}
		}
		if got := r.RecordName + " " + r.Path + " " + r.Table + ": " + strings.Join(fields, ", "); got != want {
			t.Errorf("%s:\n got %s\nwant %s", name, got, want)
		}
	}
	if set.Get("customers") != nil {
		t.Error("found a resource that does not exist")
	}
}

func TestTheKeySchemaNeverChanges(t *testing.T) {
	for name, record := range map[string]string{"orders": "OrderKey", "order_items": "OrderItemKey",
		"products": "ProductKey", "users": "UserKey", "shipments": "ShipmentKey"} {
		r := load(t).Get(name)
		want := `{"type":"record","name":"` + record +
			`","namespace":"storestream","fields":[{"name":"id","type":"long"}]}`
		if r.KeySchema() != want {
			t.Errorf("%s: the key schema is %s; under a new id every row would have a second key", r.Name,
				r.KeySchema())
		}
		key := AppendKey(nil, -12345678901)
		SetSchemaID(key, 77)
		schemaID, id, err := ReadKey(key)
		if schemaID != 77 || id != -12345678901 || err != nil {
			t.Errorf("read %d, %d, %v", schemaID, id, err)
		}
		var got map[string]any
		if rest, err := avro.MustParse(r.KeySchema()).Decode(key[HeaderSize:], &got); err != nil || len(rest) > 0 ||
			got["id"] != id {
			t.Errorf("twmb/avro reads %v, %v from the key", got, err)
		}
	}
	for _, bad := range [][]byte{nil, {0, 0, 0, 0}, {1, 0, 0, 0, 1, 2}, {0, 0, 0, 0, 1}, {0, 0, 0, 0, 1, 2, 2},
		{0, 0, 0, 0, 1, 0x80}} {
		if _, _, err := ReadKey(bad); err == nil {
			t.Errorf("% x was read as a key", bad)
		}
	}
}

func TestTheRegistryLearnsDocsAndPersonalData(t *testing.T) {
	text := load(t).Get("users").ValueSchema()
	const email = `{"name":"email","type":["null","string"],"default":null,"confluent:tags":["PII"],` +
		`"doc":"Email address; not unique."}`
	if !strings.Contains(text, email) {
		t.Error(text)
	}
	personal := []string{"first_name", "last_name", "email", "age", "gender", "street_address", "postal_code",
		"city", "latitude", "longitude"}
	if got := load(t).Get("users").PersonalInClear(); !slices.Equal(got, personal) {
		t.Error(got)
	}
	columns := []string{"id", "user_id", "status", "total_amount", "created_at", "updated_at"}
	if got := load(t).Get("orders").Columns(); !slices.Equal(got, columns) {
		t.Error(got)
	}
}

const head = `{"type": "record", "name": "Order", "namespace": "storestream", "fields": [
	{"name": "id", "type": "long"}, `

const tail = `{"name": "created_at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
	{"name": "updated_at", "type": {"type": "long", "logicalType": "timestamp-millis"}}]}`

// folder writes files for Load.
func folder(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestAFileInTheFolderReplacesTheBuiltInSchemaOfItsRecord(t *testing.T) {
	set, err := Load(folder(t, map[string]string{"mine.avsc": head + `
		{"name": "total_amount", "default": null,
		 "confluent:tags": ["MONEY", {"b": 1, "a": 2}],
		 "type": ["null", {"scale": 2, "precision": 9, "logicalType": "decimal", "type": "bytes"}]},` + tail,
		"README": "not a schema"}))
	if err != nil {
		t.Fatal(err)
	}
	r := set.Get("orders")
	if got := r.Columns(); !slices.Equal(got, []string{"id", "total_amount", "created_at", "updated_at"}) {
		t.Error(got)
	}
	const want = `{"type":"record","name":"Order","namespace":"storestream","fields":[` +
		`{"name":"id","type":"long"},{"name":"total_amount",` +
		`"default":null,"confluent:tags":["MONEY",{"b":1,"a":2}],` +
		`"type":["null",{"scale":2,"precision":9,"logicalType":"decimal","type":"bytes"}]},` +
		`{"name":"created_at","type":{"type":"long","logicalType":"timestamp-millis"}},` +
		`{"name":"updated_at","type":{"type":"long","logicalType":"timestamp-millis"}}]}`
	if r.ValueSchema() != want {
		t.Errorf("the text to register is not the file's without white space:\n got %s\nwant %s", r.ValueSchema(),
			want)
	}
	if set.Get("users").ValueSchema() != load(t).Get("users").ValueSchema() {
		t.Error("the other schemas changed")
	}
}

func TestEveryMistakeInTheSchemaFilesIsNamedAtOnce(t *testing.T) {
	dir := folder(t, map[string]string{
		"Order.avsc": `{"type": "record", "name": "Order", "namespace": "shop", "fields": [
			{"name": "user_id", "type": ["null", "long"], "default": null, "pi": true},
			{"name": "id", "type": ["null", "long"], "default": null},
			{"name": "total_amount", "default": null,
			 "type": ["null", {"type": "bytes", "logicalType": "decimal", "precision": 39, "scale": 18}]},
			{"name": "fee", "default": null,
			 "type": ["null", {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 10}]},
			{"name": "status", "type": "string"},
			{"name": "status", "type": ["string", "null"], "default": "", "pii": "yes"},
			{"name": "9lives", "type": ["null", "string"], "default": null},
			{"name": "note", "type": ["null", "int"]},
			{"name": "tip", "default": null, "rounding": "half-even",
			 "type": ["null", {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}]},
			{"name": "created_at", "type": {"type": "long", "logicalType": "timestamp-micros"}}]}`,
		"again.avsc":  `{"type": "record", "name": "Order", "namespace": "storestream", "fields": []}`,
		"broken.avsc": `{"type": "record", `,
		"Cart.avsc":   strings.Replace(head+tail, `"Order"`, `"Cart"`, 1),
	})
	_, err := Load(dir)
	if err == nil {
		t.Fatal("expected mistakes")
	}
	for _, want := range []string{
		`Order.avsc: "record" in namespace "shop"`, `Order.avsc: field user_id: attribute "pi" is not known`,
		"Order.avsc: field id: expected type \"long\", not nullable",
		"Order.avsc: field id: stands after user_id", `Order.avsc: field total_amount: its type: expected "long"`,
		"Order.avsc: field number 4: ", "scale 10 exceeds precision 9",
		`Order.avsc: field tip: attribute "rounding" is not known`, "Order.avsc: field status: not nullable",
		"Order.avsc: field status: listed twice", `Order.avsc: field status: pii is yes`,
		`Order.avsc: field number 7: `, `field note: its type: expected "long"`,
		`field note: nullable: expected "default": null`,
		"Order.avsc: field created_at: its type", "Order.avsc: field updated_at: missing",
		"broken.avsc: expected a record", `Cart.avsc: record "Cart"`, "again.avsc: field id: missing",
		"again.avsc: record Order is in another file too",
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("not named: %s", want)
		}
	}
	if t.Failed() {
		t.Log(err)
	}
}

func TestASchemaFileThatIsAPipeOrADeviceIsRefused(t *testing.T) {
	for what, put := range map[string]func(path string) error{
		"a pipe":   func(path string) error { return syscall.Mkfifo(path, 0o600) },
		"a device": func(path string) error { return os.Symlink("/dev/zero", path) },
	} {
		dir := t.TempDir()
		if err := put(filepath.Join(dir, "Order.avsc")); err != nil {
			t.Fatal(err)
		}
		_, err := Load(dir)
		if err == nil || !strings.Contains(err.Error(), "Order.avsc: expected a regular file") {
			t.Errorf("%s: %v, expected that it is refused", what, err)
		}
	}
}

func TestAFolderThatHoldsNoSchemaIsAMistakeAndNotTheBuiltInOnes(t *testing.T) {
	for _, dir := range []string{t.TempDir(), filepath.Join(t.TempDir(), "none")} {
		if _, err := Load(dir); err == nil || !strings.Contains(err.Error(), dir) {
			t.Errorf("got %v", err)
		}
	}
	big := folder(t, map[string]string{"Order.avsc": strings.Repeat(" ", maxSchemaFile+1)})
	if _, err := Load(big); err == nil || !strings.Contains(err.Error(), "Order.avsc") {
		t.Errorf("got %v", err)
	}
}
