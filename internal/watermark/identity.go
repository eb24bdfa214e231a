package watermark

import "github.com/storestream/storestream/schemas"

// Identity identifies the rows that a watermark is about: their table, its database, and the database's
// history. Relations of every kind have one. A member that is zero is not known, and is not compared.
type Identity struct {
	// Schema is the schema of the relation that the table's name resolves to.
	Schema string `json:"schema,omitempty"`
	// Kind is its kind: `r` for a table, `v` a view, `p` a partitioned table.
	Kind string `json:"kind,omitempty"`
	// Table is its oid.
	Table uint32 `json:"table,omitempty"`
	// LeadsTo is a hash of the table, or of all that a view depends on. It covers all relations that the name
	// leads to (the table, partitions, children, the tables and views below a view), the views' definitions, and
	// the number of the column updated_at.
	LeadsTo string `json:"leads_to,omitempty"`
	// System is the cluster's system identifier and the database's oid.
	System string `json:"system,omitempty"`
	// Timeline is the PostgreSQL timeline.
	Timeline uint32 `json:"timeline,omitempty"`
	// Started is when the server started or recovered. It has given out transaction ids in turn since then. It is
	// MinInstant for a standby, which gives out no ids.
	Started schemas.Instant `json:"started"`
	// Xmin is the transaction id before which all transactions had ended.
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
