package servers

import (
	"context"
	_ "embed"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

//go:embed mirrormaker/pom.xml
var mirrorMakerPOM string

const mirrorMakerPatience = 4 * time.Minute

// mirrorMakerSettings make one node a whole MirrorMaker, and the waits that are meant for large clusters
// short.
var mirrorMakerSettings = map[string]string{
	"replication.factor":                    "1",
	"checkpoints.topic.replication.factor":  "1",
	"heartbeats.topic.replication.factor":   "1",
	"offset-syncs.topic.replication.factor": "1",
	"offset.storage.replication.factor":     "1",
	"status.storage.replication.factor":     "1",
	"config.storage.replication.factor":     "1",
	"offset.storage.partitions":             "1",
	"status.storage.partitions":             "1",
	"refresh.topics.interval.seconds":       "1",
	"sync.topic.configs.interval.seconds":   "1",
	"refresh.groups.interval.seconds":       "1",
	"emit.checkpoints.interval.seconds":     "1",
	"sync.group.offsets.interval.seconds":   "1",
	"offset.flush.interval.ms":              "1000",
	"emit.heartbeats.enabled":               "false",
	"target->source.enabled":                "false",
	"source->target.enabled":                "true",
	"plugin.discovery":                      "service_load", // it does not look through every class
}

// MirrorMakerConfig names the clusters and topics that a MirrorMaker copies.
type MirrorMakerConfig struct {
	Source, Target []string // the brokers to bootstrap from
	// Settings are those of mm2.properties, on top of mirrorMakerSettings. The clusters are called source and
	// target there.
	Settings map[string]string
}

// MirrorMaker is a running MirrorMaker 2, which copies topics from one Apache Kafka to another.
type MirrorMaker struct {
	target  []string
	dir     *folder
	process *process
}

// StartMirrorMaker starts a MirrorMaker and returns once it has set itself up at the target. The first time
// on a machine Maven fetches it (34 MB). It fails with ErrNoJava, ErrNoMaven, or MirrorMaker's own last
// words.
func StartMirrorMaker(ctx context.Context, c MirrorMakerConfig) (*MirrorMaker, error) {
	java, err := javaBinary()
	if err != nil {
		return nil, err
	}
	jars, err := fetchJars(ctx, "mirrormaker", mirrorMakerPOM, announced())
	if err != nil {
		return nil, fmt.Errorf("fetch MirrorMaker %s: %w", KafkaVersion(), err)
	}
	dir, err := openFolder("", "mirrormaker", nil)
	if err != nil {
		return nil, err
	}
	m := &MirrorMaker{target: c.Target, dir: dir}
	if m.process, err = m.launch(ctx, java, jars, c); err != nil {
		dir.close()
		return nil, err
	}
	return m, nil
}

func (m *MirrorMaker) launch(ctx context.Context, java, jars string, c MirrorMakerConfig) (*process, error) {
	settings := maps.Clone(mirrorMakerSettings)
	settings["clusters"] = "source, target"
	settings["source.bootstrap.servers"] = strings.Join(c.Source, ",")
	settings["target.bootstrap.servers"] = strings.Join(c.Target, ",")
	maps.Copy(settings, c.Settings)
	if err := os.WriteFile(m.dir.join("mm2.properties"), properties(settings), 0o600); err != nil {
		return nil, fmt.Errorf("configure MirrorMaker: %w", err)
	}
	flags := append(javaFlags("256m", m.dir), javaLog...)
	return startReady(ctx, command{
		name: "MirrorMaker", path: java, dir: m.dir.path, log: m.dir.join("log"), lastWish: syscall.SIGKILL,
		args: append(flags, "-cp", filepath.Join(jars, "*"), "org.apache.kafka.connect.mirror.MirrorMaker",
			m.dir.join("mm2.properties")),
	}, mirrorMakerPatience, m.answers)
}

// answers succeeds once it has made the topic at the target in which it keeps how far it is.
func (m *MirrorMaker) answers(ctx context.Context) error {
	client, err := kgo.NewClient(kgo.SeedBrokers(m.target...), kgo.RequestRetries(0))
	if err != nil {
		return err
	}
	defer client.Close()
	const topic = "mm2-offsets.source.internal"
	topics, err := kadm.NewClient(client).ListTopics(ctx, topic)
	if err != nil {
		return err
	}
	return topics[topic].Err
}

// Stop ends it and removes its temporary folder. A second Stop does nothing.
func (m *MirrorMaker) Stop() error {
	defer m.dir.close()
	return m.process.stop(stopPatience, syscall.SIGTERM)
}
