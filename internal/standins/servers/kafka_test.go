package servers

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"github.com/twmb/franz-go/pkg/sr"
)

func TestApacheKafkaKeepsWhatItAcknowledgedOverAKillAndAShutdown(t *testing.T) {
	needJava(t)
	k := KafkaForTest(t, KafkaConfig{})
	commitRecords(t, k.Brokers())
	readWithKcat(t, k.Brokers())
	if err := k.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := k.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	readWithKcat(t, k.Brokers())
	if err := k.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	readWithKcat(t, k.Brokers())
}

func TestApicurioRefusesAnIncompatibleSchemaAndKeepsIDsOverAKill(t *testing.T) {
	needJava(t)
	a := ApicurioForTest(t, ApicurioConfig{})
	client, err := sr.NewClient(sr.URLs(a.URL()))
	if err != nil {
		t.Fatal(err)
	}
	record := func(id string) sr.Schema {
		return sr.Schema{Schema: `{"type":"record","name":"Key","fields":[{"name":"id","type":"` + id + `"}]}`}
	}
	first, err := client.CreateSchema(t.Context(), "things-key", record("long"))
	if err != nil {
		t.Fatal(err)
	}
	var refused *sr.ResponseError
	_, err = client.CreateSchema(t.Context(), "things-key", record("string"))
	if !errors.As(err, &refused) || refused.StatusCode != http.StatusConflict {
		t.Errorf("an incompatible schema: %v, want 409", err)
	}
	if err := errors.Join(a.Kill(), a.Start(t.Context())); err != nil {
		t.Fatal(err)
	}
	again, err := client.LookupSchema(t.Context(), "things-key", record("long"))
	if err != nil || again.ID != first.ID {
		t.Errorf("after a kill the schema has id %d (%v), want %d", again.ID, err, first.ID)
	}
}

// Java takes /tmp for what it unpacks, whatever TMPDIR says. Here JAVA_TOOL_OPTIONS gives it another default,
// so that nobody else's files are looked at.
func TestServersOfJavaLeaveNothingInTheTemporaryFolder(t *testing.T) {
	needJava(t)
	temporary := t.TempDir()
	t.Setenv("TMPDIR", temporary)
	t.Setenv("JAVA_TOOL_OPTIONS", "-Djava.io.tmpdir="+temporary)
	k, a := KafkaForTest(t, KafkaConfig{}), ApicurioForTest(t, ApicurioConfig{})
	m := MirrorMakerForTest(t, MirrorMakerConfig{Source: k.Brokers(), Target: k.Brokers()})
	commitRecords(t, k.Brokers())
	for _, p := range []*process{k.run.process, a.run.process, m.process} {
		figures, err := filepath.Glob(fmt.Sprintf("/tmp/hsperfdata_*/%d", p.cmd.Process.Pid))
		if err != nil || len(figures) > 0 {
			t.Errorf("%s keeps figures in %v (%v)", p.name, figures, err)
		}
	}
	if err := errors.Join(m.Stop(), a.Kill(), a.Stop(), k.Stop()); err != nil {
		t.Fatal(err)
	}
	left, err := os.ReadDir(temporary)
	if err != nil || len(left) > 0 {
		t.Errorf("left behind: %v (%v)", left, err)
	}
}

// needJava skips a test that takes Java and Maven, unless it was asked for.
func needJava(t *testing.T) {
	t.Helper()
	if os.Getenv("E2E_BROKER") != "kafka" {
		t.Skip("make test-kafka-producer runs it, in CI too: make test needs neither Java nor Maven")
	}
}
