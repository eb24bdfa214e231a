package servers

import (
	"net"
	"sync"
	"time"
)

// lateEnds is a listener whose connections tell the embedded broker late that their client has gone.
//
// A defect of kfake makes that necessary. A member that waits for the others to join has no session timer: it
// gets one with the answer. If kfake knows by then that the connection has ended it may drop the answer, and
// the timer with it (group.reply in its groups.go). Such a member stays in the group for good. It is given
// resources and does not poll them until the next rebalance, when a member joins or leaves:
//
//	kfake    a client                  its group
//	         joins                     waits until all members have joined anew, or their sessions end
//	         kill -9, kfake reads EOF
//	                                   all have joined: answers, of which that to the dead client is dropped
//	                                   shared out, the dead member included. Nothing ends its session
//
// If kfake has not yet noticed the end, the answer counts as sent, and the session ends when it should.
type lateEnds struct{ net.Listener }

// endsAfter is longer than a member waits for the others. Our rebalance timeout is ten seconds, and each
// member that joins restarts it.
const endsAfter = 30 * time.Second

func (l lateEnds) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &lateEnd{Conn: conn, closed: make(chan struct{})}, nil
}

// lateEnd is a connection whose reader gets its end or failure endsAfter later, or when the connection is
// closed on this side.
type lateEnd struct {
	net.Conn
	once   sync.Once
	closed chan struct{}
}

func (c *lateEnd) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if err != nil && n == 0 {
		timer := time.NewTimer(endsAfter)
		defer timer.Stop()
		select {
		case <-c.closed:
		case <-timer.C:
		}
	}
	return n, err
}

func (c *lateEnd) Close() error {
	c.once.Do(func() { close(c.closed) })
	return c.Conn.Close()
}
