package postgres

import (
	"maps"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
)

// A pooler gives each transaction the session of another client, with all settings that this client has made.
// These must not decide which rows are read: search_path, row_security, role, TimeZone in a view, a setting
// of the shop's own in a policy, statement_timeout. So each transaction begins with the settings that the
// server gave the session at its start, which are the database's and the role's. We do not list the settings
// that matter, because a list would miss the next one.
//
// RESET ALL has no LOCAL form. With the savepoint it acts like one: the rollback to it gives the other client
// its session back unchanged. (A ROLLBACK of the whole transaction would do the same, and count as a failed
// transaction in the server's statistics.) No statement here takes the snapshot, because the LOCK has to come
// first; see DB.begin.
//
// The next statement, clockSQL, puts temporary tables after all others.
var (
	ownSettings = []string{
		"BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY",
		"SAVEPOINT storestream",
		"RESET ALL",
		"SET LOCAL SESSION AUTHORIZATION DEFAULT",
		"SET LOCAL role TO DEFAULT",
	}
	endTransaction = []string{"ROLLBACK TO SAVEPOINT storestream", "COMMIT"}
)

// beginTransaction returns the statements that every transaction begins with, for a connection with these
// startup parameters. A pooler may set those for the session, so they are set again.
func beginTransaction(parameters map[string]string) []string {
	begin := slices.Clone(ownSettings)
	for _, name := range slices.Sorted(maps.Keys(parameters)) {
		if name == "options" || name == "client_encoding" { // it has no value of its own; clockSQL sets it
			continue
		}
		value := strings.NewReplacer(`\`, `\\`, `'`, `''`).Replace(parameters[name])
		begin = append(begin, "SET LOCAL "+pgx.Identifier{name}.Sanitize()+" TO E'"+value+"'")
	}
	return begin
}
