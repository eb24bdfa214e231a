package servers

import (
	"context"
)

// TB is what the functions below need of *testing.T, *testing.B and *rapid.T. With it, programs that import
// this package do not import testing.
type TB interface {
	Helper()
	Cleanup(func())
	Fatalf(format string, args ...any)
	Errorf(format string, args ...any)
}

// forTest fails the test if start does, and stops what it started when the test ends.
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

// PostgresForTest starts a PostgreSQL for the length of a test. A machine without one fails the test; `make
// deps` installs it.
func PostgresForTest(t TB, c PostgresConfig) *Postgres {
	t.Helper()
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
