package watermark

import "github.com/storestream/storestream/schemas"

// Identity identifies the rows that a watermark is about: their table, its database, and the database's
// history. Relations of every kind have one. A member that is zero is not known, and is not compared.
type Identity struct {
	// Schema and Kind are those of the relation that the table's name leads to. Kind is its relkind: r for a
	// table, v for a view, p for a partitioned table.
	Schema string `json:"schema,omitempty"`
	Kind   string `json:"kind,omitempty"`
	// Table is its oid. LeadsTo is a hash of all relations that it leads to (itself, partitions, children, the
	// tables and views below a view), of the views' definitions, and of the number of its column updated_at.
	Table   uint32 `json:"table,omitempty"`
	LeadsTo string `json:"leads_to,omitempty"`
	// System is the cluster and the database in it. Timeline is the history. Started is the time since which
	// the server has given out transaction ids in turn. It is MinInstant for a standby, which gives out no
	// ids.
	System   string          `json:"system,omitempty"`
	Timeline uint32          `json:"timeline,omitempty"`
	Started  schemas.Instant `json:"started"`
	// Xmin is the xmin of the clock of the last pass: all transactions with a smaller id were over.
	Xmin uint64 `json:"xmin,omitempty"`
}

// Anew returns the part of id that is still known after a loss that a sweep follows: the schema and kind of
// the table.
func (id *Identity) Anew() *Identity {
	if id == nil {
		return nil
	}
	return &Identity{Schema: id.Schema, Kind: id.Kind, Started: schemas.MinInstant}
}

// Confirmed returns id with another schema and of any kind: a person says that the table or view of that
// schema is the right one. If schema is "", it returns id.
func (id *Identity) Confirmed(schema string) *Identity {
	if id == nil || schema == "" {
		return id
	}
	confirmed := *id
	confirmed.Schema, confirmed.Kind = schema, ""
	return &confirmed
}
