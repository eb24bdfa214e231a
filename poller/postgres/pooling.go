package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
)

// Pooling is what stands between us and the server, as far as it shows.
type Pooling int

// The kinds of pooling. All of them work, so what is published hardly depends on it. A session pooler costs
// the server a connection for each of ours, for as long as we are connected.
const (
	PoolingUnknown     Pooling = iota // there may be a pooler; its mode did not show
	Direct                            // no pooler, or one that does not show
	TransactionPooling                // one connection of the server serves several of ours
	SessionPooling                    // each of our connections keeps one of the server's
)

const (
	poolingTimeout = 5 * time.Second
	poolingRounds  = 8
)

// findPooling asks each of two connections in turn which process of the server serves it. The pooler's own
// console would say more, but not to this role.
//
// A pooler makes up the process id that a client gets at login (it is the key to cancel with), so
// pg_backend_pid() is another one. If both of our connections, open at the same time, meet one process, or
// one of ours meets two, the pooler hands out server connections by transaction. If each keeps its own
// through all rounds, they are bound to sessions. A transaction pooler with other clients would have to give
// each of ours the same one of several by chance, round after round.
func findPooling(ctx context.Context, config *pgx.ConnConfig) Pooling {
	ctx, cancel := context.WithTimeout(ctx, poolingTimeout)
	defer cancel()
	var served [2]map[uint32]bool
	var conns [2]*pgx.Conn
	for i := range conns {
		conn, err := pgx.ConnectConfig(ctx, config)
		if err != nil {
			return PoolingUnknown // a full pooler, or a session pooler without a free connection: they look alike
		}
		defer conn.Close(context.WithoutCancel(ctx))
		conns[i], served[i] = conn, map[uint32]bool{}
	}
	for n := range 2 * poolingRounds {
		// Each twice in turn: if they took strict turns, a pooler in round robin with two connections to the server
		// would give each of ours its own, as in session mode.
		i := n / 2 % 2
		var pid uint32
		if err := conns[i].QueryRow(ctx, "SELECT pg_catalog.pg_backend_pid()").Scan(&pid); err != nil {
			return PoolingUnknown
		}
		served[i][pid] = true
	}
	return poolingOf(served, [2]uint32{conns[0].PgConn().PID(), conns[1].PgConn().PID()})
}

// poolingOf concludes from the processes that served each connection, and the process that each got at login.
func poolingOf(served [2]map[uint32]bool, login [2]uint32) Pooling {
	for pid := range served[0] {
		if served[1][pid] {
			return TransactionPooling
		}
	}
	switch {
	case len(served[0]) > 1 || len(served[1]) > 1:
		return TransactionPooling
	case served[0][login[0]] && served[1][login[1]]:
		return Direct
	case served[0][login[0]] || served[1][login[1]]:
		return PoolingUnknown
	}
	return SessionPooling
}

// String names it in words.
func (p Pooling) String() string {
	return [...]string{
		PoolingUnknown:     "a pooler whose mode does not show",
		Direct:             "no pooler",
		TransactionPooling: "a pooler in transaction mode",
		SessionPooling:     "a pooler in session mode",
	}[p]
}
