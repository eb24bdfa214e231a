package schemas

import "slices"

// declared is every resource, without its fields. To add one, add its line at the end and its .avsc file: in
// the consumer group a resource stands under its place (producer/sharing.go), and two releases share a group
// during an upgrade.
var declared = []Resource{
	{Name: "orders", RecordName: "Order", Path: "/store-orders", Table: "orders"},
	{Name: "order_items", RecordName: "OrderItem", Path: "/store-order-items", Table: "order_items"},
	{Name: "products", RecordName: "Product", Path: "/store-products"},
	{Name: "users", RecordName: "User", Path: "/store-users"},
	{Name: "shipments", RecordName: "Shipment", Path: "/store-shipments"},
}

// Declared returns every resource without its fields, in the order in which people read them.
func Declared() []Resource { return slices.Clone(declared) }

// Names returns every resource's name, in the order of Declared.
func Names() []string {
	names := make([]string, len(declared))
	for i, d := range declared {
		names[i] = d.Name
	}
	return names
}

// Resource is one of the service's kinds of row.
type Resource struct {
	Name       string // "orders": configuration, metrics, the end of the topic's name
	RecordName string // "Order": the Avro record, and the name of its file in avsc
	Path       string // "/store-orders": the REST endpoint below base_url
	Table      string // "orders"; "" if the database does not offer it

	// Fields in the order of the schema. Fields[0] is id.
	Fields []Field

	valueSchema string
	index       map[string]int // field name -> place in Fields
	updatedAt   int            // places of the two timestamps that every row has
	createdAt   int

	keyID       string // see KeyID
	fullRejects bool   // Privacy.FullRejects
}

// ValueSchema returns the text to register for values: that of the schema file, without white space.
func (r *Resource) ValueSchema() string { return r.valueSchema }

// KeySchema returns the text to register for keys.
//
// It never changes, not even by a doc or an attribute. A key's bytes hold its schema's id, and compaction
// compares bytes. Under a new id the same row would have two keys, and the topic would keep both.
func (r *Resource) KeySchema() string {
	return `{"type":"record","name":"` + r.RecordName + `Key","namespace":"` + namespace +
		`","fields":[{"name":"id","type":"long"}]}`
}

// Columns returns the names of all fields, in the order of the schema.
func (r *Resource) Columns() []string {
	return r.names(func(*Field) bool { return true })
}

// PersonalInClear returns the names of the fields with personal data that are published as they are.
func (r *Resource) PersonalInClear() []string {
	return r.names(func(f *Field) bool { return f.PII && f.Policy == "" })
}

func (r *Resource) names(of func(*Field) bool) (names []string) {
	for i := range r.Fields {
		if of(&r.Fields[i]) {
			names = append(names, r.Fields[i].Name)
		}
	}
	return names
}

// protects reports whether any field is personal or has a policy.
func (r *Resource) protects() bool {
	return slices.ContainsFunc(r.Fields, func(f Field) bool { return f.PII || f.Policy != "" })
}
