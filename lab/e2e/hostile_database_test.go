package e2e

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgproto3"
	"github.com/storestream/storestream/internal/standins/storefake"
)

// hostileDatabase leads to a database, until it is told to answer itself.
type hostileDatabase struct {
	net.Listener
	mu     sync.Mutex
	attack func(net.Conn) // nil: it leads to the database
	open   map[net.Conn]bool
	borne  int // attacks that are over, because the client ended the connection
}

func (s *stack) hostileDatabase() *hostileDatabase {
	s.t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		s.t.Fatal(err)
	}
	d := &hostileDatabase{Listener: l, open: map[net.Conn]bool{}}
	var all sync.WaitGroup
	all.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			all.Go(func() { d.serve(c, net.JoinHostPort("127.0.0.1", strconv.Itoa(s.pgbouncer.Port))) })
		}
	})
	s.t.Cleanup(func() {
		l.Close()
		d.becomes(nil)
		all.Wait()
	})
	return d
}

// becomes ends all connections; those that come then are attacked, or lead to the database.
func (d *hostileDatabase) becomes(attack func(net.Conn)) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.attack = attack
	for c := range d.open {
		c.Close()
	}
}

func (d *hostileDatabase) serve(c net.Conn, to string) {
	d.mu.Lock()
	attack := d.attack
	d.open[c] = true
	d.mu.Unlock()
	defer func() {
		d.mu.Lock()
		delete(d.open, c)
		if attack != nil {
			d.borne++
		}
		d.mu.Unlock()
		c.Close()
	}()
	if attack != nil {
		attack(c)
		return
	}
	server, err := net.Dial("tcp", to)
	if err != nil {
		return
	}
	go func() {
		_, _ = io.Copy(server, c)
		server.Close()
	}()
	_, _ = io.Copy(c, server)
	server.Close()
}

// message is one of PostgreSQL's.
func message(kind byte, body string) string {
	return string(binary.BigEndian.AppendUint32([]byte{kind}, uint32(len(body)+4))) + body
}

const (
	loggedIn  = "R\x00\x00\x00\x08\x00\x00\x00\x00"
	ready     = "Z\x00\x00\x00\x05I"
	oneColumn = "T\x00\x00\x00\x1b\x00\x01c\x00" +
		"\x00\x00\x00\x00\x00\x00\x00\x00\x00\x19\xff\xff\xff\xff\xff\xff\x00\x01"
)

// logsIn reads the beginning of a connection, and lets whoever it is in.
func logsIn(c net.Conn) {
	_, _ = pgproto3.NewBackend(c, c).ReceiveStartupMessage()
	fmt.Fprint(c, loggedIn)
}

// answers lets whoever it is in, and says the same to every statement.
func answers(c net.Conn, says func()) {
	b := pgproto3.NewBackend(c, c)
	if _, err := b.ReceiveStartupMessage(); err != nil {
		return
	}
	fmt.Fprint(c, loggedIn+ready)
	for {
		m, err := b.Receive()
		if err != nil {
			return
		}
		if _, ok := m.(*pgproto3.Sync); ok {
			says()
		}
	}
}

// databaseAttacks are what a database may say, to a login or to a statement.
var databaseAttacks = map[string]func(net.Conn){
	"parameters without end": func(c net.Conn) {
		logsIn(c)
		long := strings.Repeat("x", 1<<20)
		for n := 0; ; n++ {
			if _, err := fmt.Fprint(c, message('S', fmt.Sprintf("p%d\x00%s\x00", n, long))); err != nil {
				return
			}
		}
	},
	"notices without end": func(c net.Conn) {
		logsIn(c)
		pour(c, message('N', "SNOTICE\x00C00000\x00M"+strings.Repeat("x", 1<<20)+"\x00\x00"), -1)
	},
	"a message of 1 GB": func(c net.Conn) {
		logsIn(c)
		fmt.Fprint(c, "E\x3f\xff\xff\xff")
		pour(c, "x", -1)
	},
	"a refusal of 8 MB": func(c net.Conn) {
		_, _ = pgproto3.NewBackend(c, c).ReceiveStartupMessage()
		fmt.Fprint(c, message('E', "SFATAL\x00VFATAL\x00C28P01\x00M"+strings.Repeat("x", 8<<20)+"\x00\x00"))
	},
	"a byte a second": func(c net.Conn) {
		logsIn(c)
		tick := time.NewTicker(time.Second)
		defer tick.Stop()
		for _, b := range []byte(message('N', "SNOTICE\x00M"+strings.Repeat("x", 1<<10)+"\x00\x00")) {
			if _, err := c.Write([]byte{b}); err != nil {
				return
			}
			<-tick.C
		}
	},
	"rows without end": func(c net.Conn) {
		answers(c, func() {
			done := "1\x00\x00\x00\x042\x00\x00\x00\x04"
			fmt.Fprint(c, done+message('C', "BEGIN\x00")+done+oneColumn)
			pour(c, message('D', "\x00\x01\x00\x10\x00\x00"+strings.Repeat("x", 1<<20)), -1)
		})
	},
	"rows of another shape": func(c net.Conn) {
		answers(c, func() {
			done := "1\x00\x00\x00\x042\x00\x00\x00\x04"
			fmt.Fprint(c, done+message('C', "BEGIN\x00")+
				strings.Repeat(done+oneColumn+message('D', "\x00\x01\xff\xff\xff\xff")+message('C', "SELECT 1\x00"), 2)+
				done+message('C', "COMMIT\x00")+ready)
		})
	},
}

// Whatever comes from where the database should be, storestream lives in the least container, and reads on
// when the database is there again.
func TestAHostileDatabaseDoesNotTakeStorestreamDown(t *testing.T) {
	t.Parallel()
	furtherScenario(t)
	shop := start(t, setup{yaml: quick + leastMemory, fake: smallShop(61)})
	n := 0
	for name, attack := range databaseAttacks {
		prefix := fmt.Sprintf("attack-%d.", n)
		n++
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := *shop
			s.t, s.prefix, s.topics = t, prefix, nil
			database, g := s.hostileDatabase(), newCgroup(t)
			own := s.pgbouncer.DSN(storefake.ReaderRole, studentPassword, "postgres")
			dsn := strings.Replace(own, strconv.Itoa(s.pgbouncer.Port),
				strconv.Itoa(database.Addr().(*net.TCPAddr).Port), 1)
			sets := []string{"--set", "kafka.topic_prefix=" + prefix}
			p := s.leastOf(g, append(sets, "--set", "postgres.dsn=file:"+s.write(prefix+"dsn", dsn))...)
			p.isReady()
			database.becomes(attack)
			eventually(t, "a few attacks are borne", func() (bool, string) {
				database.mu.Lock()
				defer database.mu.Unlock()
				return database.borne >= 4, fmt.Sprint(database.borne)
			})
			for _, resource := range []string{storefake.Orders, storefake.OrderItems} {
				eventually(t, resource+" fails", func() (bool, string) {
					r := p.resource(resource)
					if len(r.Why) > 10_000 {
						t.Errorf("%s shows an error of %d bytes", resource, len(r.Why))
					}
					return r.State == "failing" || r.State == "blocked", r.State
				})
			}
			p.lived(g)
			database.becomes(nil)
			p.isReady()
			s.converge()
			s.expect(0, []string{"Identical"}, append([]string{"verify"}, sets...)...)
			p.lived(g)
			if said, _ := p.out.read(); len(said) > 1<<20 {
				t.Errorf("the log has %d bytes", len(said))
			}
			p.stop()
		})
	}
}

// One row of 200 MB, a hundred of nearly a megabyte that do go into the topic, and a million that do not.
func TestHugeRowsAndAMillionDeadLettersDoNotTakeStorestreamDown(t *testing.T) {
	t.Parallel()
	furtherScenario(t)
	s := start(t, setup{yaml: quick + leastMemory, fake: smallShop(62)})
	g := newCgroup(t)
	p := s.leastOf(g)
	p.isReady()
	status := func(id int64, to any) {
		t.Helper()
		if err := s.fake.Update(context.Background(), storefake.Orders, id,
			func(r storefake.Row) { r["status"] = to }); err != nil {
			t.Fatal(err)
		}
	}
	was := s.fake.Rows(storefake.Orders)[500]["status"]
	status(500, strings.Repeat("x", 200<<20))
	for id := int64(1); id <= 100; id++ {
		status(id, strings.Repeat("y", 900<<10))
	}
	// Beside the fake: rows with more than a record can hold, but every fiftieth.
	if err := s.fake.Exec(context.Background(), `INSERT INTO orders (id, user_id, status, total_amount,
		created_at, updated_at) SELECT 1000000 + n, 1, 'new', CASE WHEN n % 50 = 0 THEN 1 ELSE 1e30 END, now(),
		now() FROM generate_series(1, 1000000) AS n`); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the letters are as many as may be", func() (bool, string) {
		list, _, _ := s.do("watermark", "list")
		return strings.Contains(list, "as many as may have dead letters"), list
	})
	p.lived(g)
	if err := s.fake.Exec(context.Background(), "DELETE FROM orders WHERE id > 1000000"); err != nil {
		t.Fatal(err)
	}
	status(500, was)
	before := s.mark(storefake.Orders)
	s.expect(0, nil, "sweep", storefake.Orders, "--confirm-deletes", "1000000", "--yes")
	s.done(storefake.Orders, before)
	s.converge()
	eventually(t, "the letters are taken out", func() (bool, string) {
		left, _ := s.letters()
		return len(left) == 0, fmt.Sprint(len(left))
	})
	s.expect(0, []string{"Identical"}, "verify")
	p.lived(g)
	p.stop()
}
