package postgres

import (
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"
	"github.com/storestream/storestream/internal/tlsfile"
	"github.com/storestream/storestream/poller"
)

// inDSN names the DSN as the place of the TLS files.
var inDSN = tlsfile.Files{Section: "postgres.dsn"}

// explain makes err say what failed, on what, and what to do. pgx's errors about connecting hold no password,
// and explain adds none.
func (db *DB) explain(table string, err error) error {
	address := db.address()
	var pe *pgconn.PgError
	var long *pgproto3.ExceededMaxBodyLenErr
	switch {
	case errors.As(err, new(*poller.BlockedError)):
		return err
	case errors.As(err, &long):
		return fmt.Errorf("read %s: the server sent a message of %d bytes, more than the limit of %d: "+
			"a row is too long", table, long.ActualBodyLen, long.MaxExpectedBodyLen)
	case errors.As(err, &pe):
		return db.explainCode(table, err, pe)
	case errors.Is(err, errLagging), errors.Is(err, errRetyped), errors.Is(err, errSwapped):
		return fmt.Errorf("read %s: %w", table, err)
	case errors.Is(err, errSilent):
		return fmt.Errorf("read %s from %s: the connection may be cut, the table locked, or the database behind a "+
			"pooler down: %w", table, address, err)
	}
	if handshake, ok := errors.AsType[*tlsfile.HandshakeError](inDSN.Explain(err)); ok {
		return fmt.Errorf("read %s from %s: %w", table, address, handshake)
	}
	return fmt.Errorf("read %s from %s: is the database up, and is postgres.dsn's host and port right? %w",
		table, address, err)
}

func (db *DB) explainCode(table string, err error, pe *pgconn.PgError) error {
	address, user, database := db.address(), db.login.Get().User, db.login.Get().Database
	// The server's own message, without its detail, which may have values of the row.
	message := fmt.Errorf("%s (SQLSTATE %s)", pe.Message, pe.Code)
	blocked := func(format string, args ...any) error {
		return &poller.BlockedError{What: fmt.Sprintf(format, args...), Err: message}
	}
	switch pe.Code {
	case codeBadPassword, codeNoAuth:
		return blocked("%s refuses the login of role %q: check user and password in postgres.dsn", address, user)
	case codeNoDatabase:
		return blocked("%s has no database %q: check postgres.dsn", address, database)
	case codeNoPrivilege:
		return blocked("role %q may not read %s: GRANT SELECT ON %s TO %q", user, table, table, user)
	case codeNoTable:
		return blocked("database %q has no table %s that role %q can see: check postgres.dsn, or take the "+
			"resource over REST (source: rest)", database, table, user)
	case codeNoCharacter, codeNotInEncoding: // the server's message has bytes of the row
		return &poller.BlockedError{What: fmt.Sprintf("read %s: a text in it cannot be converted from the "+
			"encoding of database %q to UTF-8. Correct the rows for which convert_to(COLUMN, 'UTF8') is an error: "+
			"reading continues by itself", table, database)}
	}
	switch refused := errors.As(err, new(*pgconn.ConnectError)); {
	case pe.Code != codeProtocol:
		return fmt.Errorf("read %s from %s: %w", table, address, message)
	case !refused:
		return fmt.Errorf("read %s: the pooler at %s answers, and has no server for it: is PostgreSQL up? %w",
			table, address, message)
	case len(db.parameters) > 0:
		return blocked("the pooler at %s refuses the connection: it takes no startup parameters of its own, "+
			"and postgres.dsn sets %s: remove them", address, strings.Join(db.parameters, ", "))
	}
	return &poller.BlockedError{What: fmt.Sprintf("the pooler at %s refuses the connection: %s. If that is the "+
		"login, check user, password and database in postgres.dsn. If it is full, raise its max_client_conn",
		address, message)}
}
