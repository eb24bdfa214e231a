package postgres

import (
	"context"
	"encoding/binary"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"
)

// Pooling is what stands between us and the server, as far as that can be told.
type Pooling int

// The kinds of pooling. Which one it is matters little for what is published: all of them work. A session pooler costs the server a
// connection for each of ours, for as long as we are connected.
const (
	PoolingUnknown     Pooling = iota // there may be a pooler; what it does could not be told
	Direct                            // no pooler, or one that does not show
	TransactionPooling                // one connection of the server serves several of ours
	SessionPooling                    // each of our connections keeps one of the server's
)

const (
	poolingTimeout = 5 * time.Second
	poolingRounds  = 8
)

// pooling finds out by which process of the server each of two connections is served, in turns. The pooler's own console would say it, but not to this role.
//
// A pooler makes up the process id that a client gets at login (it is the key to cancel with), so that pg_backend_pid() is another one. If then
// both of our connections, open at the same time, meet one process, or one of ours meets two, server connections are handed out by transaction. If through all
// rounds each keeps its own, they are bound to sessions; a transaction pooler with other clients on it would have to give each of ours
// the same one of several by chance, round after round.
func (db *DB) pooling(ctx context.Context) Pooling {
	ctx, cancel := context.WithTimeout(ctx, poolingTimeout)
	defer cancel()
	var served [2]map[uint32]bool
	var conns [2]*pgx.Conn
	for i := range conns {
		conn, err := pgx.ConnectConfig(ctx, db.pool.Config().ConnConfig)
		if err != nil {
			return PoolingUnknown // a full pooler, or a session pooler without a free connection: the two look alike
		}
		defer conn.Close(context.WithoutCancel(ctx))
		conns[i], served[i] = conn, map[uint32]bool{}
	}
	for range poolingRounds {
		for i, conn := range conns {
			pid, err := backend(ctx, conn)
			if err != nil {
				return PoolingUnknown
			}
			served[i][pid] = true
		}
	}
	return poolingOf(served, [2]uint32{conns[0].PgConn().PID(), conns[1].PgConn().PID()})
}

// poolingOf judges which processes served which connection, given the process that each was told at login.
func poolingOf(served [2]map[uint32]bool, told [2]uint32) Pooling {
	for pid := range served[0] {
		if served[1][pid] {
			return TransactionPooling
		}
	}
	switch {
	case len(served[0]) > 1 || len(served[1]) > 1:
		return TransactionPooling
	case served[0][told[0]] && served[1][told[1]]:
		return Direct
	case served[0][told[0]] || served[1][told[1]] || len(served[0]) == 0 || len(served[1]) == 0:
		return PoolingUnknown
	}
	return SessionPooling
}

func backend(ctx context.Context, conn *pgx.Conn) (uint32, error) {
	result := conn.PgConn().ExecParams(ctx, "SELECT pg_backend_pid()", nil, nil, nil, binaryFormat).Read()
	if result.Err != nil {
		return 0, result.Err
	}
	if len(result.Rows) != 1 || len(result.Rows[0]) != 1 || len(result.Rows[0][0]) != 4 {
		return 0, errors.New("pg_backend_pid: an answer of another shape than PostgreSQL's")
	}
	return binary.BigEndian.Uint32(result.Rows[0][0]), nil
}

// String is what a person calls it.
func (p Pooling) String() string {
	return [...]string{PoolingUnknown: "a pooler whose mode could not be told", Direct: "no pooler", TransactionPooling: "a pooler in transaction mode",
		SessionPooling: "a pooler in session mode"}[p]
}
