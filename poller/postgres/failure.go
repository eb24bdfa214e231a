package postgres

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"
	"github.com/storestream/storestream/internal/tlsfile"
	"github.com/storestream/storestream/poller"
)

// remedy is the step before a failed read is tried again.
type remedy int

const (
	giveUp      remedy = iota // return the error: the poller tries again later, or a person has to act
	again                     // pause: a connection broke, or a standby lags
	smaller                   // ask for fewer rows: the server cancelled it
	lookAgain                 // ask the catalogue: the table is not as it showed it
	withoutLong               // read a row that is too long without its long values
	alone                     // find the row that makes the server fail
)

const (
	badLogin      = "%[2]s refuses the login of role %[3]q: %[5]v: check user and password in postgres.dsn"
	poolerRefuses = "the pooler at %[2]s refuses the connection: %[5]v. If that names a startup parameter, " +
		"take it out of postgres.dsn; if the pooler is full, raise its max_client_conn; otherwise check user, " +
		"password and database in postgres.dsn"

	// codeProtocol is how PgBouncer refuses a login, and reports that it has no server.
	codeProtocol = "08P01"
)

// failures has what follows from a SQLSTATE, or from its class (PostgreSQL's appendix A): the remedy, and
// the advice to a person if waiting does not help. Then the error is a *poller.BlockedError. says may name
// the table, the address, the role and the database, and has the server's words, in this order.
var failures = map[string]struct {
	remedy remedy
	says   string
}{
	"28000": {says: badLogin},
	"28P01": {says: badLogin},
	"3D000": {says: "%[2]s has no database %[4]q: %[5]v: check postgres.dsn"},
	"42P01": {says: "database %[4]q has no table %[1]s that role %[3]q can see: %[5]v: check postgres.dsn, " +
		"or take the resource over REST (source: rest)"},

	// The value of a row is the cause. No other class may become a dead letter.
	"21":    {remedy: alone}, // a subquery with more than one row
	"22":    {remedy: alone}, // a division by zero, a text that cannot be converted
	"23":    {remedy: alone}, // a domain's constraint
	"38":    {remedy: alone}, // a function in another language
	"39":    {remedy: alone},
	"P0":    {remedy: alone}, // RAISE in a function
	"XX001": {remedy: alone}, // a broken page or value
	"XX002": {remedy: alone}, // a broken index

	// updated_at or created_at has another type now, and a stamp is not in its binary format.
	"22P03": {remedy: lookAgain},

	// A grant on the table may have become one on single columns, which does not include xmin.
	"42501": {lookAgain, "role %[3]q may not read %[1]s: %[5]v: GRANT SELECT ON %[1]s TO %[3]q"},
	"0A000": {remedy: lookAgain}, // cached plan must not change result type

	"57014": {remedy: smaller},     // statement_timeout
	"25P04": {remedy: smaller},     // transaction_timeout, from PostgreSQL 17 on: the connection ends too
	"40001": {remedy: smaller},     // a standby's replay conflicts with the read
	"53100": {remedy: smaller},     // the disk is full of a sort's temporary files
	"53200": {remedy: smaller},     // out of memory
	"53400": {remedy: smaller},     // temp_file_limit
	"54000": {remedy: withoutLong}, // a row of more than 1 GB cannot be sent

	"08": {remedy: again},     // connection lost
	"42": {remedy: lookAgain}, // a column or function is not there, or has another type
	"53": {remedy: again},     // too many connections
	"57": {remedy: again},     // shutting down or starting up
}

// diagnose returns the remedy for err, and an error that says what failed, on what, and what to do. It goes
// by types and codes, never by text. pgx's errors about connecting hold no password, and diagnose adds none.
// ran is the time after which the read failed. Zero means that it is not known.
func (db *DB) diagnose(table string, err error, ran time.Duration) (remedy, error) {
	address, login := db.address(), db.login.Get()
	connecting := errors.As(err, new(*pgconn.ConnectError))
	pe, fromServer := errors.AsType[*pgconn.PgError](err)
	switch {
	case errors.As(err, new(*poller.BlockedError)):
		return giveUp, err
	case errors.Is(err, errLagging):
		return again, fmt.Errorf("read %s: %w", table, err)
	case errors.Is(err, errChanged):
		return lookAgain, fmt.Errorf("read %s: %w", table, err)
	case errors.As(err, new(*pgproto3.ExceededMaxBodyLenErr)):
		return withoutLong, fmt.Errorf("read %s: %w", table, err)
	case !fromServer && errors.Is(err, context.DeadlineExceeded) && !connecting:
		return giveUp, fmt.Errorf("read %s from %s: no answer in %v: %w. Perhaps the connection is cut, the table "+
			"locked, or the database behind a pooler down", table, address, deadline, err)
	case !fromServer: // refused, reset or cut off
		step := again
		if errors.Is(err, context.DeadlineExceeded) {
			step = giveUp
		}
		if handshake, ok := errors.AsType[*tlsfile.HandshakeError](inDSN.Explain(err)); ok {
			return step, fmt.Errorf("read %s from %s: %w", table, address, handshake)
		}
		if ran > 0 && !connecting {
			return step, fmt.Errorf("read %s from %s: the connection broke after %v: %w. Perhaps the database or a "+
				"pooler was restarted, or cuts long reads", table, address, ran.Round(time.Millisecond), err)
		}
		return step, fmt.Errorf("read %s from %s: %w. Perhaps it is down: is the database up, and is "+
			"postgres.dsn's host and port right?", table, address, err)
	}

	// Only the server's own message is shown: its detail may have values of the row. Messages about data have
	// such values themselves.
	f, known := failures[pe.Code]
	if !known {
		f = failures[pe.Code[:min(2, len(pe.Code))]]
	}
	message := fmt.Errorf("%s (SQLSTATE %s)", pe.Message, pe.Code)
	if f.remedy == alone || pe.Code == "22P03" {
		message = fmt.Errorf("SQLSTATE %s", pe.Code)
	}
	if ran > 0 {
		message = fmt.Errorf("%w after %v", message, ran.Round(time.Millisecond))
	}
	switch {
	case pe.Code == codeProtocol && connecting:
		f.says = poolerRefuses
	case pe.Code == codeProtocol:
		message = fmt.Errorf("%w. Perhaps the pooler has no server for it, or none free, or cuts long reads",
			message)
	}
	if f.says != "" {
		return f.remedy, &poller.BlockedError{
			What: fmt.Sprintf(f.says, table, address, login.User, login.Database, message)}
	}
	return f.remedy, fmt.Errorf("read %s from %s: %w", table, address, message)
}

// explain returns the error of diagnose.
func (db *DB) explain(table string, err error) error {
	_, err = db.diagnose(table, err, 0)
	return err
}

// inDSN names the DSN as the place of the TLS files.
var inDSN = tlsfile.Files{Section: "postgres.dsn"}
