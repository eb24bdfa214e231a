//go:build kafka

package contracts

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl/plain"

	"github.com/storestream/storestream/internal/standins/servers"
	"github.com/storestream/storestream/internal/standins/storefake"
)

const password = "0123456789abcdef"

// users are those of the rights.
var users = []string{"storestream", "analytics", "oncall", "oncall-admin"}

// guarded is an Apache Kafka with an authorizer. Clients of its first listener may do all.
func guarded(t *testing.T) *servers.Kafka {
	t.Helper()
	login := "org.apache.kafka.common.security.plain.PlainLoginModule required"
	for _, user := range users {
		login += " user_" + user + `="` + password + `"`
	}
	return servers.KafkaForTest(t, servers.KafkaConfig{Secured: "SASL_PLAINTEXT", Settings: map[string]string{
		"authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
		"super.users":           "User:ANONYMOUS",
		servers.SecuredSettings + "sasl.enabled.mechanisms": "PLAIN",
		servers.SecuredSettings + "plain.sasl.jaas.config":  login + ";",
	}})
}

// asShell is the script with Kafka's tools as functions, in place of the scripts of those names.
func asShell(kafka *servers.Kafka, script string) string {
	text := "set -e\n"
	for name, class := range map[string]string{"kafka-topics.sh": "org.apache.kafka.tools.TopicCommand",
		"kafka-acls.sh": "org.apache.kafka.tools.AclCommand"} {
		words := kafka.Tool(class)
		for i, word := range words {
			words[i] = "'" + word + "'"
		}
		call := strings.Join(words[:len(words)-2], " ") // without --bootstrap-server, which the script has
		text += name + `() { ` + call + ` "$@"; }` + "\n"
	}
	return text + script
}

// What the export prints is run, as it is, by a shell, with Kafka's own tools. With these topics and rights,
// and no others, storestream publishes, a consumer reads, and people on call may do what is theirs.
func TestTopicsAndRightsForKafkaAreEnoughForAllAndNoMore(t *testing.T) {
	kafka := guarded(t)
	registry := servers.RegistryForTest(t)
	fake, err := storefake.Start(t.Context(), storefake.Config{Faults: storefake.Faults{GarbledRows: .05},
		Size: storefake.Size{Users: 50, Orders: 50, Products: 50, Days: 5}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(fake.Close)
	client, err := kgo.NewClient(kgo.SeedBrokers(kafka.Brokers()...))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	admin := kadm.NewClient(client)

	const odd = "kafka.topic_settings=confluent.note=it's \"ours\" $HOME"
	if out := storestream(t, "topics", "export", "--as", "kafka", "--set", odd); !strings.Contains(out,
		`'confluent.note=it'\''s "ours" $HOME'`) {
		t.Errorf("a setting is not quoted for a shell:\n%s", out)
	}
	script := storestream(t, "topics", "export", "--as", "kafka", "--set", "kafka.brokers="+kafka.Brokers()[0])
	out, err := exec.CommandContext(t.Context(), "bash", "-c", asShell(kafka, script)).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s\n%s", err, script, out)
	}
	made, err := admin.ListTopics(t.Context())
	if err != nil || len(made) != 8 {
		t.Fatalf("there are the topics %v, %v", made.Names(), err)
	}

	path, err := program()
	if err != nil {
		t.Fatal(err)
	}
	secret := filepath.Join(t.TempDir(), "password")
	if err := os.WriteFile(secret, []byte(password), 0o600); err != nil {
		t.Fatal(err)
	}
	as := func(user string, args ...string) (string, error) {
		for _, setting := range []string{"kafka.brokers=" + kafka.SecuredBrokers()[0], "kafka.sasl.mechanism=PLAIN",
			"kafka.sasl.username=" + user, "kafka.sasl.password=file:" + secret, "registry.url=" + registry.URL,
			"store.base_url=" + fake.BaseURL(), "store.max_requests_per_second=1000", "http.listen=127.0.0.1:0"} {
			args = append(args, "--set", setting)
		}
		out, err := exec.CommandContext(t.Context(), path, args...).CombinedOutput()
		return string(out), err
	}
	// Exit status 4: there are rows that cannot be published.
	if out, err := as("storestream", "run", "--once"); err != nil && !strings.Contains(err.Error(), "status 4") {
		t.Fatalf("storestream: %v\n%s", err, out)
	}
	for topic, may := range map[string]bool{"store.orders": true, "store.watermarks": true,
		"store.dead_letters": false, "store.requests": false} {
		login := plain.Auth{User: "analytics", Pass: password}
		consumer, err := kgo.NewClient(kgo.SeedBrokers(kafka.SecuredBrokers()...), kgo.SASL(login.AsMechanism()),
			kgo.ConsumerGroup("analytics"), kgo.ConsumeTopics(topic), kgo.FetchIsolationLevel(kgo.ReadCommitted()),
			kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
		if err != nil {
			t.Fatal(err)
		}
		fetches := consumer.PollFetches(t.Context())
		refused := errors.Is(fetches.Err(), kerr.TopicAuthorizationFailed)
		if may != (fetches.NumRecords() > 0) || may == refused {
			t.Errorf("a consumer reads %d records of %s: %v", fetches.NumRecords(), topic, fetches.Err())
		}
		consumer.Close()
	}
	for _, user := range []string{"oncall", "oncall-admin"} {
		out, err := as(user, "watermark", "list", "-o", "json")
		if !strings.Contains(out, `"settled"`) {
			t.Errorf("%s: watermark list: %v\n%s", user, err, out)
		}
		out, err = as(user, "sweep", "orders", "--yes")
		may, refused := user == "oncall-admin", strings.Contains(out, "_AUTHORIZATION_FAILED")
		if may != (err == nil) || may == refused {
			t.Errorf("%s asks for a sweep: %v\n%s", user, err, out)
		}
	}
}
