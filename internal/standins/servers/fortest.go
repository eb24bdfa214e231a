package servers

import (
	"context"
	"net"
)

// TB is the part of *testing.T, *testing.B and *rapid.T that the functions below need. With it, programs that
// import this package do not import testing.
type TB interface {
	Helper()
	Cleanup(func())
	Fatalf(format string, args ...any)
	Errorf(format string, args ...any)
	Skip(args ...any)
}

// forTest fails the test if start fails, and stops the server when the test ends.
func forTest[S interface{ Stop() error }](t TB, start func() (S, error)) S {
	t.Helper()
	s, err := start()
	if err != nil {
		t.Fatalf("%v", err)
	}
	t.Cleanup(func() {
		if err := s.Stop(); err != nil {
			t.Errorf("stop: %v", err)
		}
	})
	return s
}

// PostgresForTest starts a PostgreSQL for the length of a test, in memory. A machine without one fails the
// test; `make deps` installs it.
func PostgresForTest(t TB, c PostgresConfig) *Postgres {
	t.Helper()
	c.InMemory = true
	return forTest(t, func() (*Postgres, error) { return StartPostgres(context.Background(), c) })
}

// PgBouncerForTest starts a PgBouncer for the length of a test.
func PgBouncerForTest(t TB, c PgBouncerConfig) *PgBouncer {
	t.Helper()
	return forTest(t, func() (*PgBouncer, error) { return StartPgBouncer(context.Background(), c) })
}

// BrokerForTest starts an embedded broker for the length of a test.
func BrokerForTest(t TB, c BrokerConfig) *Broker {
	t.Helper()
	return forTest(t, func() (*Broker, error) { return StartBroker(c) })
}

// RegistryForTest starts an embedded schema registry for the length of a test.
func RegistryForTest(t TB) *Registry {
	t.Helper()
	return forTest(t, func() (*Registry, error) { return StartRegistry(0) })
}

// KafkaForTest starts an Apache Kafka for the length of a test.
func KafkaForTest(t TB, c KafkaConfig) *Kafka {
	t.Helper()
	return forTest(t, func() (*Kafka, error) { return StartKafka(context.Background(), c) })
}

// StandbyForTest starts a streaming standby of p for the length of a test.
func StandbyForTest(t TB, p *Postgres) *Postgres {
	t.Helper()
	return forTest(t, func() (*Postgres, error) { return p.Standby(context.Background()) })
}

// ApicurioForTest starts an Apicurio Registry for the length of a test.
func ApicurioForTest(t TB, c ApicurioConfig) *Apicurio {
	t.Helper()
	return forTest(t, func() (*Apicurio, error) { return StartApicurio(context.Background(), c) })
}

// ElsewhereForTest is a non-loopback address of this machine, by which other machines reach it. If the
// machine has none, the test is skipped.
func ElsewhereForTest(t TB) string {
	t.Helper()
	addresses, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatalf("%v", err)
	}
	for _, a := range addresses {
		if ip, ok := a.(*net.IPNet); ok && ip.IP.To4() != nil && ip.IP.IsGlobalUnicast() {
			return ip.IP.String()
		}
	}
	t.Skip("this machine has only loopback addresses, so it cannot play a server elsewhere")
	return ""
}

// MirrorMakerForTest starts a MirrorMaker for the length of a test.
func MirrorMakerForTest(t TB, c MirrorMakerConfig) *MirrorMaker {
	t.Helper()
	return forTest(t, func() (*MirrorMaker, error) { return StartMirrorMaker(context.Background(), c) })
}
