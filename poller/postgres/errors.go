package postgres

import (
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/storestream/storestream/poller"
)

// SQLSTATE codes, of PostgreSQL's appendix A.
const (
	codeCannotCache    = "0A000" // feature_not_supported: "cached plan must not change result type"
	codeProtocol       = "08P01" // how PgBouncer refuses a login or a startup parameter
	codeNoAuth         = "28000"
	codeBadPassword    = "28P01"
	codeNoDatabase     = "3D000"
	codeSerialization  = "40001" // on a standby: cancelled, because the replay needs what it reads
	codeNoPrivilege    = "42501"
	codeNoColumn       = "42703"
	codeMismatch       = "42804"
	codeNoOperator     = "42883"
	codeNoTable        = "42P01"
	codeOutOfMemory    = "53200"
	codeDiskFull       = "53100" // of a sort's temporary files
	codeTempFileLimit  = "53400" // configuration_limit_exceeded: temp_file_limit
	codeCanceled       = "57014" // statement_timeout
	codeUnknownRelkind = "42809"
)

// remedy is what to do about a failed chunk.
type remedy int

const (
	giveUp    remedy = iota // return it: the poller tries again later
	hold                    // only a person can mend it
	smaller                 // the server cancelled it: ask for fewer rows
	lookAgain               // the table is not what the catalogue said
	reconnect               // the connection broke: try another
)

// remedyFor branches on types and codes, never on text.
func remedyFor(err error) remedy {
	var held *poller.HoldError
	if errors.As(err, &held) {
		return hold
	}
	if errors.Is(err, errRetyped) {
		return lookAgain
	}
	var pe *pgconn.PgError
	if !errors.As(err, &pe) {
		return reconnect // it never came to an answer: refused, reset, timed out, cut off
	}
	switch pe.Code {
	case codeCanceled, codeSerialization, codeOutOfMemory, codeDiskFull, codeTempFileLimit:
		return smaller
	case codeCannotCache, codeNoColumn, codeMismatch, codeNoOperator, codeUnknownRelkind:
		return lookAgain
	case codeBadPassword, codeNoAuth, codeNoDatabase, codeNoPrivilege, codeNoTable:
		return hold
	case codeProtocol:
		return reconnect // PgBouncer has this one code for a wrong login, a startup parameter, and for being full
	}
	switch pe.Code[:min(2, len(pe.Code))] {
	case "08", "53", "57": // connection lost, too many connections, shutting down or starting up
		return reconnect
	}
	return giveUp
}

// explain makes err say what failed, on what, and what to do. The password is in none of pgx's errors about connecting, and none is added.
func (db *DB) explain(table string, err error) error {
	var held *poller.HoldError
	if errors.As(err, &held) {
		return err
	}
	var pe *pgconn.PgError
	if !errors.As(err, &pe) {
		if silent := new(silentError); errors.As(err, &silent) {
			return fmt.Errorf("read %s: no answer from %s in %v: the connection may be cut, the table locked, or the database behind a pooler down: %w",
				table, db.where, silent.within, silent.err)
		}
		return fmt.Errorf("read %s from %s: is the database up, and is postgres.dsn's host and port right? %w", table, db.where, err)
	}
	// The server's own sentence, without the values that a detail may hold.
	said := fmt.Errorf("%s (SQLSTATE %s)", pe.Message, pe.Code)
	holdWith := func(format string, args ...any) error {
		return &poller.HoldError{What: fmt.Sprintf(format, args...), Err: said}
	}
	switch pe.Code {
	case codeBadPassword, codeNoAuth:
		return holdWith("%s refuses the login of role %q: check user and password in postgres.dsn", db.where, db.user)
	case codeNoDatabase:
		return holdWith("%s has no database %q: check postgres.dsn", db.where, db.database)
	case codeNoPrivilege:
		return holdWith("role %q may not read %s: GRANT SELECT ON %s TO %q", db.user, table, table, db.user)
	case codeNoTable:
		return holdWith("database %q has no table %s that role %q can see: check postgres.dsn, or take the resource over REST (source: rest)",
			db.database, table, db.user)
	case codeProtocol:
		var ce *pgconn.ConnectError
		if !errors.As(err, &ce) {
			return fmt.Errorf("read %s: the pooler at %s answers, and has no server for it: is PostgreSQL up? %w", table, db.where, said)
		}
		if len(db.parameters) > 0 {
			return holdWith("the pooler at %s refuses the connection: it takes no startup parameters of its own, and postgres.dsn sets %s: remove them",
				db.where, strings.Join(db.parameters, ", "))
		}
		return holdWith("the pooler at %s refuses the connection: is it the login, check user, password and database in postgres.dsn; is it full, "+
			"raise its max_client_conn", db.where)
	}
	return fmt.Errorf("read %s from %s: %w", table, db.where, said)
}
