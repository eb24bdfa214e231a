package schemas

import "slices"

// Resource is one of the service's kinds of row.
type Resource struct {
	Name       string // "orders": configuration, metrics, the end of the topic's name
	RecordName string // "Order": the Avro record
	Path       string // "/store-orders": the REST endpoint below base_url
	Table      string // "orders"; "" where the database does not offer it

	// Fields in the order of the schema. Fields[0] is id.
	Fields []Field

	valueSchema string
	index       map[string]int // field name -> place in Fields
	updatedAt   int            // places of the two timestamps that every row has
	createdAt   int
}

// declared is where a resource is declared: one line each. Its fields are in avsc/<RecordName>.avsc.
var declared = []Resource{
	{Name: "orders", RecordName: "Order", Path: "/store-orders", Table: "orders"},
	{Name: "order_items", RecordName: "OrderItem", Path: "/store-order-items", Table: "order_items"},
	{Name: "products", RecordName: "Product", Path: "/store-products"},
	{Name: "users", RecordName: "User", Path: "/store-users"},
	{Name: "shipments", RecordName: "Shipment", Path: "/store-shipments"},
}

// Set is the resources in force, in the order in which they are declared.
type Set struct{ resources []*Resource }

// Get returns the resource of that name, nil if there is none.
func (s *Set) Get(name string) *Resource {
	for _, r := range s.resources {
		if r.Name == name {
			return r
		}
	}
	return nil
}

// All returns every resource.
func (s *Set) All() []*Resource { return slices.Clone(s.resources) }

// ValueSchema is the text to register for values. It is deterministic: the same schema file gives the same text, whatever its layout.
func (r *Resource) ValueSchema() string { return r.valueSchema }

// Columns are the names to select, in the order of the schema.
func (r *Resource) Columns() []string {
	names := make([]string, len(r.Fields))
	for i := range r.Fields {
		names[i] = r.Fields[i].Name
	}
	return names
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

// with is r with these fields.
func (r Resource) with(s *avsc) *Resource {
	r.Fields = s.fields
	r.valueSchema = s.text()
	r.index = make(map[string]int, len(r.Fields))
	for i := range r.Fields {
		r.index[r.Fields[i].Name] = i
	}
	r.updatedAt, r.createdAt = r.index["updated_at"], r.index["created_at"]
	return &r
}
