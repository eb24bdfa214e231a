package main

import (
	"strings"
	"testing"
)

func TestTopicsAndRightsFollowTheConfiguration(t *testing.T) {
	out := do(t, "topics", "export", "--as", "kafka", "--set", "kafka.topic_prefix=", "--set",
		"kafka.replication_factor=3", "--set", "kafka.partitions=12", "--set", "kafka.erase_within=1h", "--set",
		"resources.users.enabled=false").expect(t, exitDone).stdout.String()
	for _, part := range []string{"--topic orders --partitions 12 --replication-factor 3",
		"max.compaction.lag.ms=3600000",
		"\n  --topic watermarks --topic dead_letters --topic requests --topic orders", // Kafka has no empty prefix
		"--resource-pattern-type prefixed --transactional-id storestream- "} {
		if !strings.Contains(out, part) {
			t.Errorf("there is no %q in\n%s", part, out)
		}
	}
	if strings.Contains(out, "prefixed --topic") || strings.Contains(out, "--topic users --partitions") {
		t.Errorf("topics by an empty prefix, or of a resource that is not enabled:\n%s", out)
	}
	do(t, "topics", "export").expect(t, exitUsage, "expected kafka, strimzi, terraform")
}
