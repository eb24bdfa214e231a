package storefake

import (
	"slices"
	"strings"
)

// The resources, by the names that the rest of this package takes.
const (
	Orders     = "orders"
	OrderItems = "order_items"
	Products   = "products"
	Users      = "users"
	Shipments  = "shipments"
)

// The states of an order that the document names.
const (
	Cancelled  = "Cancelled"
	Complete   = "Complete"
	Processing = "Processing"
	Returned   = "Returned"
	Shipped    = "Shipped"
)

// newStatuses are states that the document does not name (Readings.NewStatuses).
var newStatuses = []string{"Backordered", "On Hold", "Partially Shipped"}

type kind uint8

const (
	integer kind = iota
	instant
	money
	coordinate
	text
)

type field struct {
	name string
	kind kind
	key  string // the name as it stands in a JSON object: quoted, with its colon
}

// resource is the document's description of one kind of row. The first field is id, the last two are
// created_at and updated_at.
type resource struct {
	name   string
	path   string // below the base address
	table  string // in PostgreSQL, "" if the document offers no access
	filter string // the extra query parameter, "" if it has none
	fields []field
}

func (r *resource) width() int { return len(r.fields) }

// The places of the fields that every resource has.
func (r *resource) created() int { return len(r.fields) - 2 }
func (r *resource) updated() int { return len(r.fields) - 1 }

// index is the place of a field, -1 if there is none.
func (r *resource) index(name string) int {
	return slices.IndexFunc(r.fields, func(f field) bool { return f.name == name })
}

// fieldNamed is a field by its full name, such as users.city. A row without an id is another matter: see
// NoID.
func fieldNamed(name string) (res *resource, place int, ok bool) {
	resource, field, _ := strings.Cut(name, ".")
	for _, r := range resources {
		if i := r.index(field); r.name == resource && i > 0 {
			return r, i, true
		}
	}
	return nil, 0, false
}

// Places of fields that the code needs by name.
const (
	orderStatus = 2 // in orders
	rowOrderID  = 1 // in order_items and shipments
)

func declare(name, path, table, filter string, fields ...field) *resource {
	all := append([]field{{name: "id", kind: integer}}, fields...)
	all = append(all, field{name: "created_at", kind: instant}, field{name: "updated_at", kind: instant})
	for i := range all {
		all[i].key = `"` + all[i].name + `":`
	}
	return &resource{name: name, path: path, table: table, filter: filter, fields: all}
}

// resources is section 2 of the document.
var resources = []*resource{
	declare(Orders, "/store-orders", "orders", "status",
		field{name: "user_id", kind: integer},
		field{name: "status", kind: text},
		field{name: "total_amount", kind: money}),
	declare(OrderItems, "/store-order-items", "order_items", "order_id",
		field{name: "order_id", kind: integer},
		field{name: "product_id", kind: integer},
		field{name: "sale_price", kind: money},
		field{name: "quantity", kind: integer},
		field{name: "amount", kind: money}),
	declare(Products, "/store-products", "", "",
		field{name: "cost", kind: money},
		field{name: "category", kind: text},
		field{name: "name", kind: text},
		field{name: "brand", kind: text},
		field{name: "retail_price", kind: money},
		field{name: "department", kind: text},
		field{name: "sku", kind: text}),
	declare(Users, "/store-users", "", "",
		field{name: "first_name", kind: text},
		field{name: "last_name", kind: text},
		field{name: "email", kind: text},
		field{name: "age", kind: integer},
		field{name: "gender", kind: text},
		field{name: "state", kind: text},
		field{name: "street_address", kind: text},
		field{name: "postal_code", kind: text},
		field{name: "city", kind: text},
		field{name: "country", kind: text},
		field{name: "latitude", kind: coordinate},
		field{name: "longitude", kind: coordinate},
		field{name: "traffic_source", kind: text}),
	declare(Shipments, "/store-shipments", "", "order_id",
		field{name: "order_id", kind: integer},
		field{name: "shipped_at", kind: instant},
		field{name: "delivered_at", kind: instant},
		field{name: "returned_at", kind: instant}),
}

// mirroredResources are those that PostgreSQL has too.
func mirroredResources() []*resource {
	return slices.DeleteFunc(slices.Clone(resources), func(r *resource) bool { return r.table == "" })
}

// Names of all resources.
func Names() []string {
	names := make([]string, len(resources))
	for i, r := range resources {
		names[i] = r.name
	}
	return names
}
