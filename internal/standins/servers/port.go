package servers

import (
	"fmt"
	"math/rand/v2"
	"net"
	"slices"
	"strconv"
)

// host is the only address that anything here listens on.
const host = "127.0.0.1"

// Free ports lie below those that systems give to outgoing connections (Linux: from 32768). Otherwise a port
// that a server will ask for, at its start or after a restart, could meanwhile have become the local end of
// another program's connection.
const (
	firstPort = 12000
	lastPort  = 31999
)

// attempts limits how often a server is started, each time on other ports, after another program took one of
// them.
const attempts = 5

// Listen listens on a port of 127.0.0.1 that was free.
func Listen() (net.Listener, error) {
	for range 1000 {
		l, err := net.Listen("tcp", address(firstPort+rand.IntN(lastPort-firstPort+1)))
		if err == nil {
			return l, nil
		}
	}
	return nil, fmt.Errorf("no free port on %s between %d and %d", host, firstPort, lastPort)
}

// FreePorts returns n different ports of 127.0.0.1 that nothing listens on now. Another server may take one
// before the one that it is meant for.
func FreePorts(n int) ([]int, error) {
	ports := make([]int, 0, n)
	for range n {
		l, err := Listen()
		if err != nil {
			return nil, err
		}
		defer l.Close() // held until all are found, so that they differ
		ports = append(ports, l.Addr().(*net.TCPAddr).Port)
	}
	return ports, nil
}

// onFreePorts calls start with n free ports until it succeeds, or until it fails for another reason than a
// taken port. The first port is the wanted one, unless that is 0.
func onFreePorts(n, wanted int, start func(ports []int) error) error {
	for i := 1; ; i++ {
		ports, err := FreePorts(n)
		if err != nil {
			return err
		}
		if wanted != 0 {
			ports[0] = wanted
		}
		err = start(ports)
		if err == nil || i == attempts || !slices.ContainsFunc(ports, taken) {
			return err
		}
		if wanted != 0 && taken(wanted) {
			return fmt.Errorf("port %d is in use by another program: %w", wanted, err)
		}
	}
}

// taken says whether something listens on the port now.
func taken(port int) bool {
	l, err := net.Listen("tcp", address(port))
	if err != nil {
		return true
	}
	_ = l.Close()
	return false
}

func address(port int) string { return net.JoinHostPort(host, strconv.Itoa(port)) }
