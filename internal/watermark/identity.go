package watermark

import "github.com/storestream/storestream/schemas"

// Identity identifies the rows that a watermark is about: their table, its database, and the database's
// history. Relations of every kind have one. A member that is zero is not known, and is not compared.
type Identity struct {
	// Schema and Kind are schema and relkind of the relation that was found. The relkind is r for a table, v
	// for a view, and p for a partitioned table.
	Schema string `json:"schema,omitempty"`
	Kind   string `json:"kind,omitempty"`
	// Table and LeadsTo are its oid, and a hash of all that it depends on. The hash covers all relations that
	// the name leads to (the table, partitions, children, the tables and views below a view), the views'
	// definitions, and the number of the column updated_at.
	Table   uint32 `json:"table,omitempty"`
	LeadsTo string `json:"leads_to,omitempty"`
	// System, Timeline and Started are database, timeline, and start of the server. System is the cluster's
	// system identifier and the database's oid. The server has given out transaction ids in turn since
	// Started. It is MinInstant for a standby, which gives out no ids.
	System   string          `json:"system,omitempty"`
	Timeline uint32          `json:"timeline,omitempty"`
	Started  schemas.Instant `json:"started"`
	// Xmin is the id before which all transactions had ended.
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
