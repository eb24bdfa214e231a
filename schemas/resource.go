package schemas

import "slices"

// Declaration is the line by which a resource is declared. Its fields are in avsc/<RecordName>.avsc.
type Declaration struct {
	Name       string // "orders": configuration, metrics, the end of the topic's name
	RecordName string // "Order": the Avro record
	Path       string // "/store-orders": the REST endpoint below base_url
	Table      string // "orders"; "" if the database does not offer it
}

// declared is every resource. To add one, add its line here and its .avsc file.
var declared = []Declaration{
	{Name: "orders", RecordName: "Order", Path: "/store-orders", Table: "orders"},
	{Name: "order_items", RecordName: "OrderItem", Path: "/store-order-items", Table: "order_items"},
	{Name: "products", RecordName: "Product", Path: "/store-products"},
	{Name: "users", RecordName: "User", Path: "/store-users"},
	{Name: "shipments", RecordName: "Shipment", Path: "/store-shipments"},
}

// Declared returns every resource's declaration, in the order in which people read them.
func Declared() []Declaration { return slices.Clone(declared) }

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
	Declaration

	// Fields in the order of the schema. Fields[0] is id.
	Fields []Field

	valueSchema string
	index       map[string]int // field name -> place in Fields
	updatedAt   int            // places of the two timestamps that every row has
	createdAt   int

	key         []byte // of PolicyHash
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

// Columns returns the names to select, in the order of the schema.
func (r *Resource) Columns() []string {
	names := make([]string, len(r.Fields))
	for i := range r.Fields {
		names[i] = r.Fields[i].Name
	}
	return names
}

// PersonalInClear returns those of PersonalFields that are published as they are.
func (r *Resource) PersonalInClear() []string {
	return slices.DeleteFunc(r.PersonalFields(),
		func(name string) bool { return r.Fields[r.index[name]].Policy != "" })
}

// PersonalFields returns the names of the fields that hold personal data, in the order of the schema.
func (r *Resource) PersonalFields() []string {
	var names []string
	for i := range r.Fields {
		if r.Fields[i].PII {
			names = append(names, r.Fields[i].Name)
		}
	}
	return names
}

// protects reports whether any field is personal or has a policy.
func (r *Resource) protects() bool {
	return slices.ContainsFunc(r.Fields, func(f Field) bool { return f.PII || f.Policy != "" })
}
