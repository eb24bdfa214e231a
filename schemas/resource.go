package schemas

import "slices"

// Declaration is the line by which a resource is declared. Its fields are in avsc/<RecordName>.avsc.
type Declaration struct {
	Name       string // "orders": configuration, metrics, the end of the topic's name
	RecordName string // "Order": the Avro record
	Path       string // "/store-orders": the REST endpoint below base_url
	Table      string // "orders"; "" where the database does not offer it
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

// newResource is the resource that d declares, with the fields of s.
func newResource(d Declaration, s *schemaFile) *Resource {
	r := &Resource{Declaration: d, Fields: s.fields, valueSchema: schemaText(s), index: map[string]int{}}
	for i := range r.Fields {
		r.index[r.Fields[i].Name] = i
	}
	r.updatedAt, r.createdAt = r.index["updated_at"], r.index["created_at"]
	return r
}

// ValueSchema is the text to register for values. The same schema file always gives the same text, whatever
// its layout.
func (r *Resource) ValueSchema() string { return r.valueSchema }

// KeySchema is the text to register for keys.
//
// It never changes: not a doc, not an attribute. A key's bytes hold its schema's id, and compaction compares
// bytes: under a new id the same row would have two keys, and the topic would keep both.
func (r *Resource) KeySchema() string {
	return `{"type":"record","name":"` + r.RecordName + `Key","namespace":"` + namespace +
		`","fields":[{"name":"id","type":"long"}]}`
}

// Columns are the names to select, in the order of the schema.
func (r *Resource) Columns() []string {
	names := make([]string, len(r.Fields))
	for i := range r.Fields {
		names[i] = r.Fields[i].Name
	}
	return names
}

// PersonalInClear are those of PersonalFields that are published as they are.
func (r *Resource) PersonalInClear() []string {
	return slices.DeleteFunc(r.PersonalFields(),
		func(name string) bool { return r.Fields[r.index[name]].Policy != "" })
}

// PersonalFields are the names of the fields that hold personal data, in the order of the schema.
func (r *Resource) PersonalFields() []string {
	var names []string
	for i := range r.Fields {
		if r.Fields[i].PII {
			names = append(names, r.Fields[i].Name)
		}
	}
	return names
}

// room returns how many bytes a record takes beside those of its values in either source: a header, and of
// each field a branch, and a hash or 20 bytes of another value.
func (r *Resource) room() int { return HeaderSize + (1+hashSize)*len(r.Fields) }

// protects reports whether any field is personal or has a policy.
func (r *Resource) protects() bool {
	return slices.ContainsFunc(r.Fields, func(f Field) bool { return f.PII || f.Policy != "" })
}
