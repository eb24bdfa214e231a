package postgres

import (
	"context"
	"errors"
	"math"
	"time"

	"github.com/cenkalti/backoff/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"
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
	codeNoCharacter    = "22P05" // untranslatable_character: UTF-8 does not have it
	codeNotInEncoding  = "22021" // character_not_in_repertoire: bytes that the database's encoding does not have
	codeTooLong        = "54000" // program_limit_exceeded: a row of more than 1 GB cannot be sent
	codeUnknownRelkind = "42809"
)

// remedy is the step before a failed read is tried again.
type remedy int

const (
	giveUp           remedy = iota // return the error: the poller tries again later, or a person has to act
	smaller                        // the server cancelled it: ask for fewer rows
	lookAgain                      // the table is not as the catalogue showed it: ask the catalogue again
	reconnect                      // the connection broke: use another
	reconnectRefused               // a pooler refused the login, or was full: it does not say which
	reconnectSilent                // no answer came before the deadline
	waitForReplay                  // a standby lags: it may catch up
	withoutLong                    // a row is too long: read it without its long values
)

// remedies says how often a read is tried again, and whether after a pause. After the last try Read returns
// the error, and the poller waits.
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

// remedyFor returns the remedy for err. It goes by types and codes, never by text.
func remedyFor(err error) remedy {
	pe, fromServer := errors.AsType[*pgconn.PgError](err)
	switch {
	case errors.As(err, new(*pgproto3.ExceededMaxBodyLenErr)):
		return withoutLong
	case errors.Is(err, errLagging):
		return waitForReplay
	case errors.As(err, new(*poller.BlockedError)):
		return giveUp
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
	}
	switch pe.Code[:min(2, len(pe.Code))] {
	case "08", "53", "57": // connection lost, too many connections, shutting down or starting up
		return reconnect
	}
	return giveUp
}

// tries counts the consecutive failures of a read, for each remedy. Its zero value has none.
type tries struct {
	failed map[remedy]int
	pauses *backoff.ExponentialBackOff
}

// add counts a failure. It returns the pause before the next try, or false if there were enough tries.
func (t *tries) add(r remedy) (pause time.Duration, again bool) {
	if t.failed == nil {
		t.failed, t.pauses = map[remedy]int{}, backoff.NewExponentialBackOff()
		t.pauses.InitialInterval, t.pauses.MaxInterval = 50*time.Millisecond, 3*time.Second
	}
	if remedies[r].pause {
		pause = t.pauses.NextBackOff()
	}
	t.failed[r]++
	return pause, t.failed[r] <= remedies[r].tries
}
