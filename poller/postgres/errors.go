package postgres

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"
	"github.com/storestream/storestream/internal/tlsfile"
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
	codeTooSlow        = "25P04" // transaction_timeout, from PostgreSQL 17 on: the connection ends too
	codeNoCharacter    = "22P05" // untranslatable_character: UTF-8 has no such one
	codeNotInEncoding  = "22021" // character_not_in_repertoire: bytes that the database's encoding does not have
	codeTooLong        = "54000" // program_limit_exceeded: a row of more than 1 GB cannot be sent
	codeUnknownRelkind = "42809"
)

// remedy is what to do about a failed chunk.
type remedy int

const (
	giveUp           remedy = iota // return the error: the poller tries again later
	hold                           // only a person can fix it
	smaller                        // the server cancelled it: ask for fewer rows
	lookAgain                      // the table is not what the catalogue said
	reconnect                      // the connection broke: try another
	reconnectRefused               // a pooler refused the login, or was full: it does not say which
	reconnectSilent                // no answer came within the deadline
	waitForReplay                  // a standby lags: it may catch up
	withoutLong                    // a row is too long: read it without what is
)

// remedies says how often a chunk is tried again, and whether after a pause. Then Read gives up, and leaves
// the waiting to the poller.
var remedies = [...]struct {
	tries int
	pause bool
}{
	smaller:          {tries: math.MaxInt},
	lookAgain:        {tries: 3},
	reconnect:        {tries: 6, pause: true},
	reconnectRefused: {tries: 2, pause: true},
	reconnectSilent:  {tries: 1, pause: true},
	waitForReplay:    {tries: 8, pause: true},
	withoutLong:      {tries: 1},
}

// remedyFor goes by types and codes, never by text.
func remedyFor(err error) remedy {
	pe, fromServer := errors.AsType[*pgconn.PgError](err)
	switch {
	case errors.As(err, new(*pgproto3.ExceededMaxBodyLenErr)):
		return withoutLong
	case errors.Is(err, errLagging):
		return waitForReplay
	case errors.As(err, new(*poller.HoldError)):
		return hold
	case errors.Is(err, errRetyped), errors.Is(err, errSwapped):
		return lookAgain
	case !fromServer && errors.Is(err, context.DeadlineExceeded):
		return reconnectSilent
	case !fromServer:
		return reconnect // refused, reset, cut off
	case pe.Code == codeProtocol && errors.As(err, new(*pgconn.ConnectError)):
		return reconnectRefused
	}
	switch pe.Code {
	case codeCanceled, codeTooSlow, codeSerialization, codeOutOfMemory, codeDiskFull, codeTempFileLimit:
		return smaller
	case codeTooLong:
		return withoutLong
	case codeCannotCache, codeNoColumn, codeMismatch, codeNoOperator, codeUnknownRelkind, codeNoPrivilege:
		return lookAgain // a grant on the table may have become one on its columns, and xmin is none of them
	case codeBadPassword, codeNoAuth, codeNoDatabase, codeNoTable, codeNoCharacter, codeNotInEncoding:
		return hold
	}
	switch pe.Code[:min(2, len(pe.Code))] {
	case "08", "53", "57": // connection lost, too many connections, shutting down or starting up
		return reconnect
	}
	return giveUp
}

// silentError: no answer came in time.
type silentError struct {
	within time.Duration
	err    error
}

func (e *silentError) Error() string { return fmt.Sprintf("no answer in %v: %v", e.within, e.err) }
func (e *silentError) Unwrap() error { return e.err }

// inDSN is where the files of TLS are named.
var inDSN = tlsfile.Files{Section: tlsfile.DSN}

// endpoint is where the DSN leads: that part of it which is no secret, for errors.
type endpoint struct {
	address, user, database string
	parameters              []string // names of the startup parameters that the DSN sets
}

// explain makes err say what failed, on what, and what to do. pgx's errors about connecting hold no password,
// and explain adds none.
func (e *endpoint) explain(table string, err error) error {
	var silent *silentError
	var pe *pgconn.PgError
	var long *pgproto3.ExceededMaxBodyLenErr
	switch {
	case errors.As(err, new(*poller.HoldError)):
		return err
	case errors.As(err, &long):
		return fmt.Errorf("read %s: the server sent a message of %d bytes, and none of more than %d is taken: "+
			"a row is too long", table, long.ActualBodyLen, long.MaxExpectedBodyLen)
	case errors.As(err, &pe):
		return e.explainCode(table, err, pe)
	case errors.Is(err, errLagging), errors.Is(err, errRetyped), errors.Is(err, errSwapped):
		return fmt.Errorf("read %s: %w", table, err)
	case errors.As(err, &silent):
		return fmt.Errorf("read %s: no answer from %s in %v: the connection may be cut, the table locked, "+
			"or the database behind a pooler down: %w", table, e.address, silent.within, silent.err)
	}
	if handshake, ok := errors.AsType[*tlsfile.HandshakeError](inDSN.Explain(err)); ok {
		return fmt.Errorf("read %s from %s: %w", table, e.address, handshake)
	}
	return fmt.Errorf("read %s from %s: is the database up, and is postgres.dsn's host and port right? %w",
		table, e.address, err)
}

func (e *endpoint) explainCode(table string, err error, pe *pgconn.PgError) error {
	// The server's own sentence, without the values that a detail may hold.
	said := fmt.Errorf("%s (SQLSTATE %s)", pe.Message, pe.Code)
	hold := func(format string, args ...any) error {
		return &poller.HoldError{What: fmt.Sprintf(format, args...), Err: said}
	}
	switch pe.Code {
	case codeBadPassword, codeNoAuth:
		return hold("%s refuses the login of role %q: check user and password in postgres.dsn", e.address, e.user)
	case codeNoDatabase:
		return hold("%s has no database %q: check postgres.dsn", e.address, e.database)
	case codeNoPrivilege:
		return hold("role %q may not read %s: GRANT SELECT ON %s TO %q", e.user, table, table, e.user)
	case codeNoTable:
		return hold("database %q has no table %s that role %q can see: check postgres.dsn, or take the resource "+
			"over REST (source: rest)", e.database, table, e.user)
	case codeNoCharacter, codeNotInEncoding: // the server's sentence has bytes of the row
		return &poller.HoldError{What: fmt.Sprintf("read %s: a text in it cannot be converted from the encoding "+
			"of database %q to UTF-8. Rows are good for which convert_to(COLUMN, 'UTF8') is no error; it goes on by "+
			"itself once the others are put right", table, e.database)}
	}
	switch refused := errors.As(err, new(*pgconn.ConnectError)); {
	case pe.Code != codeProtocol:
		return fmt.Errorf("read %s from %s: %w", table, e.address, said)
	case !refused:
		return fmt.Errorf("read %s: the pooler at %s answers, and has no server for it: is PostgreSQL up? %w",
			table, e.address, said)
	case len(e.parameters) > 0:
		return hold("the pooler at %s refuses the connection: it takes no startup parameters of its own, "+
			"and postgres.dsn sets %s: remove them", e.address, strings.Join(e.parameters, ", "))
	}
	return &poller.HoldError{What: fmt.Sprintf("the pooler at %s refuses the connection: %s. Where that is the "+
		"login, check user, password and database in postgres.dsn; where it is full, raise its max_client_conn",
		e.address, said)}
}
