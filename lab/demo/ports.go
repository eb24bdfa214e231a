package main

import (
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"github.com/storestream/storestream/internal/standins/servers"
)

// port is the port of one part on 127.0.0.1.
type port struct {
	flag    string
	number  int  // 0 stands for a free one
	chosen  bool // by the user: then no other will do
	instead int  // the usual number, if that is taken and number is another
}

// ports are the ports of all parts.
type ports struct{ broker, registry, service, status, pooler, postgres port }

func (p *ports) all() []*port {
	return []*port{&p.broker, &p.registry, &p.service, &p.status, &p.pooler, &p.postgres}
}

func (p *ports) flags(flags *pflag.FlagSet) {
	add := func(p *port, part string, usual int, what string) {
		p.flag = "port-" + part
		flags.IntVar(&p.number, p.flag, usual, what)
	}
	add(&p.broker, "broker", 9092, "`port` of the Kafka broker. "+
		"If a default port is taken, the demo uses a free one and shows it. 0 always means a free one")
	add(&p.registry, "registry", 8081, "`port` of the schema registry")
	add(&p.service, "service", 8090, "`port` of the commerce data service")
	add(&p.status, "status", 8080, "`port` of storestream's status page")
	add(&p.pooler, "pgbouncer", 6432, "`port` of PgBouncer")
	add(&p.postgres, "postgres", 5432, "`port` of PostgreSQL")
}

// check notes which ports the user has chosen and names those that cannot be.
func (p *ports) check(flags *pflag.FlagSet, anyFree bool) (wrong []string) {
	taken := map[int]string{}
	for _, port := range p.all() {
		if flags.Changed(port.flag) {
			port.chosen = port.number != 0
		} else if anyFree {
			port.number = 0
		}
		if port.number < 0 || port.number > lastPort {
			wrong = append(wrong, fmt.Sprintf("--%s %d: expected 1 to 65535, or 0 for any free one", port.flag,
				port.number))
		}
		if other := taken[port.number]; port.chosen && other != "" {
			wrong = append(wrong, fmt.Sprintf("--%s and --%s are both %d: expected different ports", other, port.flag,
				port.number))
		}
		if port.chosen {
			taken[port.number] = port.flag
		}
	}
	return wrong
}

const (
	// stride is how far from a taken port the next one is that is tried: 9092, 10092, 11092, ...
	stride   = 1000
	lastPort = 65535
)

// settle finds a free port for each part. It holds every port found until it has all, so that they differ.
// Start the parts soon after, before another program takes a port.
func (p *ports) settle() error {
	var taken []string
	var held []net.Listener
	defer func() {
		for _, l := range held {
			l.Close()
		}
	}()
	all := p.all()
	// ports that the user chose come first, so that no other part takes them
	for _, port := range append(filter(all, true), filter(all, false)...) {
		l, err := port.settle()
		if err != nil {
			taken = append(taken, fmt.Sprintf("--%s %d: %v", port.flag, port.number, err))
			continue
		}
		held = append(held, l)
	}
	if len(taken) > 0 {
		return fmt.Errorf("%s: expected free ports on 127.0.0.1, or 0 for any free one", strings.Join(taken, "; "))
	}
	return nil
}

func filter(all []*port, chosen bool) (some []*port) {
	for _, p := range all {
		if p.chosen == chosen {
			some = append(some, p)
		}
	}
	return some
}

func (p *port) settle() (net.Listener, error) {
	usual := p.number
	for number := usual; ; number += stride {
		l, err := listen(number)
		if err != nil {
			if p.chosen || number == 0 || number+stride > lastPort {
				return nil, reason(err)
			}
			continue
		}
		p.number = l.Addr().(*net.TCPAddr).Port
		if usual != 0 && p.number != usual {
			p.instead = usual
		}
		return l, nil
	}
}

// listen listens on a port. Port 0 stands for a free one.
func listen(number int) (net.Listener, error) {
	if number == 0 {
		return servers.Listen()
	}
	return net.Listen("tcp", local(number))
}

// reason is why a port could not be had, without the address, which is in the message already.
func reason(err error) error {
	if operation, ok := errors.AsType[*net.OpError](err); ok {
		return operation.Err
	}
	return err
}

// remark says that this is not the usual port, "" if it is.
func (p *port) remark() string {
	if p.instead == 0 {
		return ""
	}
	return fmt.Sprintf("port %d is taken", p.instead)
}

func local(number int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(number)) }

func (p *port) address() string { return local(p.number) }
