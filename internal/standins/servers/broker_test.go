package servers

import (
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sr"
)

func TestTheEmbeddedBrokerOnAGivenPortCommitsTransactionsAndServesOtherClients(t *testing.T) {
	ports, err := FreePorts(1)
	if err != nil {
		t.Fatal(err)
	}
	b := BrokerForTest(t, BrokerConfig{Ports: ports})
	if got, want := b.Brokers(), []string{address(ports[0])}; !slices.Equal(got, want) {
		t.Fatalf("brokers are %v, want %v", got, want)
	}
	commitRecords(t, b.Brokers())
	readWithKcat(t, b.Brokers())
}

// commitRecords creates a compacted topic and commits the keys a and b to it in one transaction.
func commitRecords(t *testing.T, brokers []string) {
	t.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(brokers...), kgo.TransactionalID("servers-test"),
		kgo.DefaultProduceTopic("things"))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	compact := "compact"
	_, err = kadm.NewClient(client).CreateTopic(t.Context(), 1, 1,
		map[string]*string{"cleanup.policy": &compact}, "things")
	if err != nil {
		t.Fatal(err)
	}
	if err := client.BeginTransaction(); err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"a", "b"} {
		record := &kgo.Record{Key: []byte(key), Value: []byte("1")}
		if err := client.ProduceSync(t.Context(), record).FirstErr(); err != nil {
			t.Fatal(err)
		}
	}
	if err := client.EndTransaction(t.Context(), kgo.TryCommit); err != nil {
		t.Fatal(err)
	}
}

// readWithKcat expects the keys of commitRecords. It waits for them: a broker that has just started answers
// before it knows how far its transactions reach, and shows an empty topic until then.
func readWithKcat(t *testing.T, brokers []string) {
	t.Helper()
	kcat, err := exec.LookPath("kcat")
	if err != nil {
		t.Fatal("kcat is missing: make deps installs it")
	}
	out, err := exec.CommandContext(t.Context(), kcat, "-b", strings.Join(brokers, ","), "-C", "-t", "things",
		"-c", "2", "-q", "-f", "%k ",
		"-X", "isolation.level=read_committed").CombinedOutput()
	if err != nil || string(out) != "a b " {
		t.Errorf("kcat read %q (%v), want the keys a and b", out, err)
	}
}

func TestTheEmbeddedRegistryGivesOneSchemaOneID(t *testing.T) {
	r := RegistryForTest(t)
	client, err := sr.NewClient(sr.URLs(r.URL))
	if err != nil {
		t.Fatal(err)
	}
	schema := sr.Schema{Schema: `{"type":"record","name":"Key","fields":[{"name":"id","type":"long"}]}`}
	first, err := client.CreateSchema(t.Context(), "things-key", schema)
	if err != nil {
		t.Fatal(err)
	}
	second, err := client.CreateSchema(t.Context(), "other-key", schema)
	if err != nil {
		t.Fatal(err)
	}
	if first.ID != second.ID {
		t.Errorf("the same schema has ids %d and %d", first.ID, second.ID)
	}
}
