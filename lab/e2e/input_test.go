package e2e

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/storestream/storestream/internal/standins/storefake"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// expect runs a command and checks its exit status and that its output holds all of the words.
func (s *stack) expect(code int, words []string, args ...string) {
	s.t.Helper()
	out, errs, got := s.do(args...)
	if got != code {
		s.t.Errorf("storestream %v: exit status %d, want %d\n%s%s", args, got, code, out, tail(errs, 30))
	}
	for _, word := range words {
		if !strings.Contains(out+errs, word) {
			s.t.Errorf("storestream %v does not say %q:\n%s%s", args, word, out, tail(errs, 30))
		}
	}
	for _, secret := range []string{"hunter2", studentPassword + "@"} {
		if strings.Contains(out+errs, secret) {
			s.t.Errorf("storestream %v shows a secret:\n%s%s", args, out, errs)
		}
	}
}

func TestWrongConfigurationIsAnsweredWithWhatIsWrongAndWhatToDo(t *testing.T) {
	t.Parallel()
	s := &stack{t: t, dir: t.TempDir()}
	for name, c := range map[string]struct {
		yaml  string
		words []string
	}{
		"an unknown key names the nearest known one": {"kafka: {broker: [127.0.0.1:9092]}",
			[]string{"kafka.broker", "kafka.brokers"}},
		"all mistakes at once": {
			"store: {base_url: nonsense}\nresources: {orders: {interval: 1ms}}",
			[]string{"store.base_url", "resources.orders.interval"},
		},
		"a DSN that is none": {"postgres: {dsn: 'postgres://student_ro:hunter2@[broken'}",
			[]string{"postgres.dsn"}},
		"an unknown resource": {"resources: {order: {enabled: true}}",
			[]string{"resources.order", "orders"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := &stack{t: t, dir: s.dir}
			s.config = s.write("wrong.yaml", c.yaml)
			s.expect(2, c.words, "run")
		})
	}
	s.config = s.write("fine.yaml", "kafka: {sasl: {mechanism: PLAIN, username: me, password: hunter2}}")
	s.expect(0, []string{"kafka.sasl.password", "******"}, "config", "show")
	s.expect(2, []string{"unknown"}, "wibble")
	s.expect(2, nil, "watermark", "reset", "orders")
}

// storestream says what it waits for, and what a person has to repair, with the remedy. `run --once` gives up
// after its patience.
func TestWrongSurroundingsAreSaidWithTheirRemedy(t *testing.T) {
	t.Parallel()
	furtherScenario(t)
	s := start(t, setup{yaml: quick, fake: smallShop(8)})
	good := s.config
	notTheService := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter,
		_ *http.Request) {
		fmt.Fprint(w, "<html>hello</html>")
	}))
	defer notTheService.Close()
	conflict := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/vnd.schemaregistry.v1+json")
		w.WriteHeader(http.StatusConflict)
		const message = "Schema being registered is incompatible with an earlier schema"
		fmt.Fprintf(w, `{"error_code":409,"message":%q}`, message)
	}))
	defer conflict.Close()
	t.Run("surroundings", func(t *testing.T) {
		for name, c := range map[string]struct {
			set   []string
			words []string
		}{
			"a wrong password": {[]string{"postgres.dsn=file:" +
				s.write("dsn", s.pgbouncer.DSN(storefake.ReaderRole, "hunter2", "postgres"))},
				[]string{"postgres", "password"}},
			"a broker that is not there": {[]string{"kafka.brokers=127.0.0.1:1"}, []string{"127.0.0.1:1"}},
			"a registry that refuses":    {[]string{"registry.url=" + conflict.URL}, []string{"incompatible"}},
			"not the service":            {[]string{"store.base_url=" + notTheService.URL}, []string{"base_url"}},
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				s := *s
				s.t, s.config = t, good
				args := []string{"run", "--once", "--patience", "20s"}
				prefix := strings.ReplaceAll(name, " ", "-")
				for _, set := range append(c.set, "kafka.topic_prefix="+prefix+".") {
					args = append(args, "--set", set)
				}
				s.expect(1, c.words, args...)
			})
		}
	})
	t.Run("a role without SELECT", func(t *testing.T) {
		s := *s
		s.t = t
		if err := s.fake.Exec(context.Background(),
			"REVOKE SELECT ON orders FROM "+storefake.ReaderRole); err != nil {
			t.Fatal(err)
		}
		s.expect(1, []string{"orders", "SELECT"}, "run", "--once", "--patience", "20s")
		if err := s.fake.Exec(context.Background(), "GRANT SELECT ON orders TO "+storefake.ReaderRole); err != nil {
			t.Fatal(err)
		}
	})
	t.Run("a topic that is not compacted", func(t *testing.T) {
		s := *s
		s.t = t
		cl, err := kgo.NewClient(kgo.SeedBrokers(s.brokers...))
		if err != nil {
			t.Fatal(err)
		}
		defer cl.Close()
		if _, err := kadm.NewClient(cl).CreateTopic(context.Background(), 3, 1,
			map[string]*string{"cleanup.policy": kadm.StringPtr("delete")}, "fourth.users"); err != nil {
			t.Fatal(err)
		}
		s.expect(1, []string{"fourth.users", "cleanup.policy", "compact"}, "run", "--once", "--patience", "20s",
			"--set", "kafka.topic_prefix=fourth.")
	})
	s.expect(0, nil, "run", "--once") // and all is well once it is well
}
