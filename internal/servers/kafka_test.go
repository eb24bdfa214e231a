package servers

import "testing"

func TestApacheKafkaKeepsWhatItAcknowledgedOverAKillAndAShutdown(t *testing.T) {
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
