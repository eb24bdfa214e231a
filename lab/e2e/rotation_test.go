package e2e

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/storestream/storestream/internal/standins/servers"
	"github.com/storestream/storestream/internal/standins/storefake"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl/plain"
)

// credentials are what storestream logs in with everywhere, in a folder as Kubernetes mounts it.
type credentials struct {
	*stack
	mount *servers.Mount
	n     int
}

const poller = "poller" // storestream's user at the brokers

// files are what stands in the folder for the passwords in force.
func (c *credentials) files() map[string]string {
	return map[string]string{"key": c.fake.Key(), "sasl": c.password() + "\n",
		"dsn": c.pgbouncer.DSN(storefake.ReaderRole, c.password(), "postgres") + "\n"}
}

func (c *credentials) password() string { return fmt.Sprintf("password-%d", c.n) }

// settings name the files.
func (c *credentials) settings() []string {
	file := func(key, name string) []string { return []string{"--set", key + "=file:" + c.mount.Path(name)} }
	return append(append(append(file("store.api_key", "key"), file("postgres.dsn", "dsn")...),
		file("kafka.sasl.password", "sasl")...),
		"--set", "kafka.sasl.mechanism=SCRAM-SHA-512", "--set", "kafka.sasl.username="+poller)
}

// change has all servers take other credentials than before, and none of the old ones. No connection to the
// database stays, and the broker asks every connection for a login within seconds.
func (c *credentials) change() {
	c.t.Helper()
	c.n++
	ctx := context.Background()
	c.fake.RevokeKey()
	made, err := c.admin().AlterUserSCRAMs(ctx, nil, []kadm.UpsertSCRAM{{User: poller,
		Mechanism: kadm.ScramSha512, Iterations: 4096, Password: c.password()}})
	if err = errors.Join(err, made.Error()); err != nil {
		c.t.Fatal(err)
	}
	alter := fmt.Sprintf("ALTER ROLE %s PASSWORD '%s'", storefake.ReaderRole, c.password())
	if err := errors.Join(c.fake.Exec(ctx, alter),
		c.pgbouncer.SetPassword(ctx, storefake.ReaderRole, c.password()),
		c.pgbouncer.Restart(ctx)); err != nil {
		c.t.Fatal(err)
	}
}

// The key, the database's password and the broker's are replaced, twice, each time at the servers first. The
// second time storestream has for a while only what is refused everywhere. Then its folder is swapped.
func TestKeysAndPasswordsThatAreRotatedWhileItRunsLoseNothingAndTakeNoRestart(t *testing.T) {
	t.Parallel()
	s := start(t, setup{embedded: true, yaml: quick, fake: smallShop(61),
		login: []kgo.Opt{kgo.SASL(plain.Auth{User: "judge", Pass: "judge"}.AsMechanism())},
		broker: servers.BrokerConfig{Options: []kfake.Opt{kfake.EnableSASL(),
			kfake.Superuser("PLAIN", "judge", "judge"), kfake.Superuser("SCRAM-SHA-512", poller, "password-0"),
			kfake.BrokerConfigs(map[string]string{"connections.max.reauth.ms": "2000"})}}})
	c := &credentials{stack: s, n: -1}
	c.change()
	c.mount = servers.MountForTest(t, filepath.Join(t.TempDir()), c.files())
	s.fake.StartTraffic(40)
	p := s.spawn(append([]string{"run"}, c.settings()...)...)
	p.isReady()
	for round := range 2 {
		s.changes(100)
		c.change()
		if round == 1 {
			p.says("out of the group")
		}
		c.mount.Swap(c.files())
		p.signal(syscall.SIGHUP)
		s.changes(100)
		p.isReady()
	}
	s.quiet()
	p.isReady()
	said, _ := p.out.read()
	if n := strings.Count(said, "SIGHUP: the files of secrets"); n != 2 {
		t.Errorf("the log tells of %d signals, expected 2", n)
	}
	for n := range c.n + 1 {
		if strings.Contains(said, fmt.Sprintf("password-%d", n)) {
			t.Error("a password is in the log")
		}
	}
	p.stop()
}
