package servers

import (
	"os"
	"testing"
)

func TestApacheKafkaKeepsWhatItAcknowledgedOverAKillAndAShutdown(t *testing.T) {
	if os.Getenv("E2E_BROKER") != "kafka" {
		t.Skip("make test-kafka runs it: it takes Java and Maven, which make test does not ask for")
	}
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
