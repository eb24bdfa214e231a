//go:build kafka

package producer_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/storestream/storestream/internal/rotation"
	"github.com/storestream/storestream/internal/servers"
	"github.com/storestream/storestream/internal/tlsfile"
	"github.com/storestream/storestream/producer"
)

// right is one access rule that docs/operations.md asks for.
type right struct {
	operation kadm.ACLOperation
	on        func(b *kadm.ACLBuilder, prefix string) *kadm.ACLBuilder
}

func onTopics(b *kadm.ACLBuilder, prefix string) *kadm.ACLBuilder {
	return b.Topics(prefix).ResourcePatternType(kadm.ACLPatternPrefixed)
}

func onGroup(b *kadm.ACLBuilder, prefix string) *kadm.ACLBuilder {
	return b.Groups(prefix + "group").ResourcePatternType(kadm.ACLPatternLiteral)
}

func onIDs(b *kadm.ACLBuilder, prefix string) *kadm.ACLBuilder {
	return b.TransactionalIDs("storestream-" + prefix).ResourcePatternType(kadm.ACLPatternPrefixed)
}

// rights are the whole list. Each of READ and WRITE comes with DESCRIBE.
var rights = map[string]right{
	"READ on topics":             {kadm.OpRead, onTopics},
	"WRITE on topics":            {kadm.OpWrite, onTopics},
	"CREATE on topics":           {kadm.OpCreate, onTopics},
	"DESCRIBE_CONFIGS on topics": {kadm.OpDescribeConfigs, onTopics},
	"READ on the group":          {kadm.OpRead, onGroup},
	"WRITE on transactional ids": {kadm.OpWrite, onIDs},
}

// guardedKafka is an Apache Kafka with an authorizer, TLS and SCRAM; who comes by the plain listener may do
// all.
func guardedKafka(t *testing.T, a *servers.Authority) *servers.Kafka {
	t.Helper()
	return servers.KafkaForTest(t, servers.KafkaConfig{Secured: "SASL_SSL", Settings: map[string]string{
		"authorizer.class.name":             "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
		"super.users":                       "User:ANONYMOUS",
		secured + "ssl.keystore.type":       "PEM",
		secured + "ssl.keystore.location":   a.Issue(servers.CertificateConfig{Name: "broker"}).KeyStore,
		secured + "sasl.enabled.mechanisms": "SCRAM-SHA-512",
		secured + "scram-sha-512.sasl.jaas.config": "org.apache.kafka.common.security.scram." +
			"ScramLoginModule required;",
	}})
}

// allow makes a user with all rights but one, over what begins with prefix, and the group of that
// name alone.
func (s *stage) allow(user, prefix, without string) {
	s.t.Helper()
	made, err := s.admin.AlterUserSCRAMs(s.ctx(), nil, []kadm.UpsertSCRAM{{User: user,
		Mechanism: kadm.ScramSha512, Iterations: 4096, Password: secret}})
	if err = errors.Join(err, made.Error()); err != nil {
		s.t.Fatal(err)
	}
	for name, r := range rights {
		if name == without {
			continue
		}
		b := r.on(kadm.NewACLs(), prefix).Operations(r.operation).Allow("User:" + user).AllowHosts("*")
		results, err := s.admin.CreateACLs(s.ctx(), b)
		if err != nil {
			s.t.Fatal(err)
		}
		for _, r := range results {
			if r.Err != nil {
				s.t.Fatal(r.Err)
			}
		}
	}
}

// docs/deploying.md has them as commands to copy.
func TestTheCommandsInDeployingGrantTheseRights(t *testing.T) {
	text, err := os.ReadFile("../docs/deploying.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), "<!-- rights -->\n```\n")
	block, _, _ := strings.Cut(rest, "```\n")
	targets := map[string]string{"--topic store.": "topics", "--group storestream": "the group",
		"--transactional-id storestream-store.": "transactional ids"}
	granted := map[string]bool{}
	for command := range strings.SplitSeq(strings.ReplaceAll(block, "\\\n", ""), "\n") {
		for target, on := range targets {
			prefixed := strings.Contains(command, "--resource-pattern-type prefixed ")
			if !strings.Contains(command, target+" ") || prefixed == (on == "the group") {
				continue
			}
			for _, o := range regexp.MustCompile(`--operation (\w+)`).FindAllStringSubmatch(command, -1) {
				operation, err := kmsg.ParseACLOperation(o[1])
				if err != nil {
					t.Fatal(err)
				}
				granted[operation.String()+" on "+on] = true
			}
		}
	}
	if !maps.Equal(granted, allRights()) {
		t.Errorf("the commands grant %v, needed is %v", granted, allRights())
	}
}

// allRights is the names of the whole list.
func allRights() map[string]bool {
	all := map[string]bool{}
	for name := range rights {
		all[name] = true
	}
	return all
}

func TestTheRightsThatAreDocumentedAreEnoughAndEachIsNeeded(t *testing.T) {
	a := servers.AuthorityForTest(t, t.TempDir())
	kafka := guardedKafka(t, a)
	s := setUp(t, nil, kafka.Brokers())
	s.brokers = kafka.SecuredBrokers()
	as := func(user, prefix string) *producer.Cluster {
		return s.cluster(user, func(c *producer.Config) {
			c.TopicPrefix, c.Group = prefix, prefix+"group"
			c.TLS = opened(t, tlsfile.Files{Section: "kafka.tls", CAFile: a.File})
			c.SASL = producer.SASL{Mechanism: "SCRAM-SHA-512", Username: user, Password: rotation.Literal(secret)}
		})
	}
	s.allow("stream", "all.", "")
	cluster, l := as("stream", "all."), newLedger(t)
	l.run(cluster, "stream")
	l.await("all resources", l.everythingOwned("stream"))
	if err := s.everything(s.ctx(), cluster); err != nil {
		t.Errorf("with all rights: %v", err)
	}
	number := 0
	for name := range rights {
		number++
		user, prefix := fmt.Sprintf("user%d", number), fmt.Sprintf("case%d.", number)
		s.allow(user, prefix, name)
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		err := s.everything(ctx, as(user, prefix))
		cancel()
		if err == nil {
			t.Errorf("without %s everything works", name)
		}
		t.Logf("without %s: %v", name, err)
	}
}
