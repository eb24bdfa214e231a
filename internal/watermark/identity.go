package watermark

import "github.com/storestream/storestream/schemas"

// Identity says whose rows a watermark speaks of: which table, of which database, in which history. It does
// not depend on the kind of the relation. A member with its zero value is not known, and is not compared.
type Identity struct {
	// Schema and Kind are those of the relation that the table's name leads to. Kind is its relkind: r for a
	// table, v for a view, p for a partitioned table.
	Schema string `json:"schema,omitempty"`
	Kind   string `json:"kind,omitempty"`
	// Table is its oid. LeadsTo is a hash of all relations that it leads to (partitions, children, the
	// tables and views below a view), and of the views' definitions.
	Table   uint32 `json:"table,omitempty"`
	LeadsTo string `json:"leads_to,omitempty"`
	// UpdatedAt is the number of that column in the table.
	UpdatedAt int16 `json:"updated_at,omitempty"`
	// System is the cluster and the database in it. Timeline is the history. Started says since when the server
	// has given out transaction ids in turn (MinInstant: it is a standby, which gives out none).
	System   string          `json:"system,omitempty"`
	Timeline uint32          `json:"timeline,omitempty"`
	Started  schemas.Instant `json:"started"`
	// Xmin is the xmin of the clock of the last pass: all transactions with a smaller id were over.
	Xmin uint64 `json:"xmin,omitempty"`
}

// Anew returns what is still known when what was read before does not count any more, and a sweep follows:
// where the table is.
func (id *Identity) Anew() *Identity {
	if id == nil {
		return nil
	}
	return &Identity{Schema: id.Schema, Kind: id.Kind, Started: schemas.MinInstant}
}

// Confirmed returns id without the place of the table: a person says that the next one is the right one.
func (id *Identity) Confirmed() *Identity {
	if id == nil {
		return nil
	}
	confirmed := *id
	confirmed.Schema, confirmed.Kind = "", ""
	return &confirmed
}
