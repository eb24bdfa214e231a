package servers

import (
	"fmt"
	"net"
	"strconv"
)

// host is the only address that anything here listens on.
const host = "127.0.0.1"

// freePort returns a port that nothing listened on a moment ago. Somebody else may take it before the server does: see attempts.
func freePort() (int, error) {
	l, err := net.Listen("tcp", net.JoinHostPort(host, "0"))
	if err != nil {
		return 0, fmt.Errorf("find a free port: %w", err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port, nil
}

// attempts is how often a server whose port the system chose is started with another one when the port was taken meanwhile.
const attempts = 5

// taken tells whether something listens on the port now.
func taken(port int) bool {
	l, err := net.Listen("tcp", address(port))
	if err != nil {
		return true
	}
	_ = l.Close()
	return false
}

// onFreePort calls start with the wanted port or, where that is 0, with free ports until start succeeds or fails for another
// reason than that somebody else took the port.
func onFreePort(wanted int, start func(port int) error) (int, error) {
	if wanted != 0 {
		return wanted, start(wanted)
	}
	for i := 1; ; i++ {
		port, err := freePort()
		if err != nil {
			return 0, err
		}
		err = start(port)
		if err == nil || i == attempts || !taken(port) {
			return port, err
		}
	}
}

func address(port int) string { return net.JoinHostPort(host, strconv.Itoa(port)) }
