package servers

import (
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
)

// host is the only address that anything here listens on.
const host = "127.0.0.1"

// Free ports lie below those that systems give to outgoing connections (Linux: from 32768). Otherwise a port
// that a server wants again after a restart could have become the local end of somebody's connection.
const (
	firstPort = 12000
	lastPort  = 31999
)

// attempts is how often a server is started, each time on other ports, when somebody took one of them.
const attempts = 5

// freePorts returns n different ports that nothing listens on now. Another process may take one before the
// server does.
func freePorts(n int) ([]int, error) {
	ports := make([]int, 0, n)
	for range 1000 {
		if len(ports) == n {
			return ports, nil
		}
		port := firstPort + rand.IntN(lastPort-firstPort+1)
		l, err := net.Listen("tcp", address(port))
		if err != nil {
			continue
		}
		defer l.Close() // held until all are found, so that they differ
		ports = append(ports, port)
	}
	return nil, fmt.Errorf("no %d free ports on %s between %d and %d", n, host, firstPort, lastPort)
}

// onFreePorts calls start with n free ports until it succeeds, or fails though nobody else took a port. The
// first port is the wanted one, unless that is 0.
func onFreePorts(n, wanted int, start func(ports []int) error) error {
	for i := 1; ; i++ {
		ports, err := freePorts(n)
		if err != nil {
			return err
		}
		if wanted != 0 {
			ports[0] = wanted
		}
		err = start(ports)
		if err == nil || i == attempts || !anyTaken(ports) {
			return err
		}
		if wanted != 0 && taken(wanted) {
			return fmt.Errorf("port %d is in use by another program: %w", wanted, err)
		}
	}
}

// anyTaken says whether something listens on one of the ports now.
func anyTaken(ports []int) bool {
	for _, port := range ports {
		if taken(port) {
			return true
		}
	}
	return false
}

func taken(port int) bool {
	l, err := net.Listen("tcp", address(port))
	if err != nil {
		return true
	}
	_ = l.Close()
	return false
}

func address(port int) string { return net.JoinHostPort(host, strconv.Itoa(port)) }
