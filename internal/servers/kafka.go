package servers

import (
	"cmp"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

//go:embed kafka/pom.xml
var kafkaPOM string

const (
	kafkaVersion  = "4.3.1" // unless kafkaVariable asks for another
	kafkaPatience = 60 * time.Second
	kafkaCluster  = "c3RvcmVzdHJlYW0tZGV2MQ" // 16 bytes, base64
)

// kafkaVariable asks for another version, such as 3.6.2. Any from 3.3 on will do (no ZooKeeper).
const kafkaVariable = "SERVERS_KAFKA"

// kafkaSettings make one node a whole cluster, and the waits that are meant for many nodes short.
// docker-compose.yml has the same (a test compares them); only addresses differ.
var kafkaSettings = map[string]string{
	"process.roles":             "broker,controller",
	"node.id":                   "1",
	"controller.listener.names": "CONTROLLER",
	// A consumer must not create a topic that is not compacted.
	"auto.create.topics.enable":                "false",
	"offsets.topic.replication.factor":         "1",
	"offsets.topic.num.partitions":             "5",
	"transaction.state.log.replication.factor": "1",
	"transaction.state.log.min.isr":            "1",
	"transaction.state.log.num.partitions":     "5",
	"group.initial.rebalance.delay.ms":         "0",
	// A broker that was killed may register again after this. The default is 9 s.
	"broker.session.timeout.ms":    "3000",
	"broker.heartbeat.interval.ms": "500",
}

// KafkaConfig says how to start an Apache Kafka. The zero value is good.
type KafkaConfig struct {
	// Dir keeps the data of an earlier run. "" is a temporary folder, which Stop removes.
	Dir      string
	Port     int               // 0: one that is free
	Settings map[string]string // server.properties, on top of kafkaSettings
}

// Kafka is a running Apache Kafka, one node, without ZooKeeper. Its methods may be called from several
// goroutines, but Stop ends them all.
type Kafka struct {
	Port int

	java   string
	jars   string
	config KafkaConfig
	dir    *folder
	run    *daemon
}

// StartKafka starts an Apache Kafka and returns once it answers. The first time on a machine Maven fetches it
// (44 MB). Errors: ErrNoJava, ErrNoMaven, or what it said.
func StartKafka(ctx context.Context, c KafkaConfig) (*Kafka, error) {
	java, err := javaBinary()
	if err != nil {
		return nil, err
	}
	version := cmp.Or(os.Getenv(kafkaVariable), kafkaVersion)
	cache, err := fetched("kafka-"+version, func(dir string) error { return fetchKafka(dir, version) })
	if err != nil {
		return nil, fmt.Errorf("fetch Apache Kafka %s: %w", version, err)
	}
	dir, err := openFolder(c.Dir, "kafka", nil)
	if err != nil {
		return nil, err
	}
	k := &Kafka{Port: c.Port, java: java, jars: filepath.Join(cache, "jars"), config: c, dir: dir}
	k.run = &daemon{launch: k.launch}
	if err := k.run.start(ctx); err != nil {
		dir.close()
		return nil, err
	}
	return k, nil
}

// fetchKafka has Maven copy the jars that kafka/pom.xml asks for, and theirs.
func fetchKafka(dir, version string) error {
	if err := os.WriteFile(filepath.Join(dir, "pom.xml"), []byte(kafkaPOM), 0o644); err != nil {
		return err
	}
	return maven(dir, "dependency:copy-dependencies", "-Dkafka.version="+version,
		"-DoutputDirectory="+filepath.Join(dir, "jars"))
}

// launch starts the process, on k.Port unless that is 0, and waits until it answers. The controller's port
// may differ from start to start: it is not part of the data.
func (k *Kafka) launch(ctx context.Context) (started *process, err error) {
	err = onFreePorts(2, k.Port, func(ports []int) error {
		k.Port = ports[0]
		if err := k.configure(ports[1]); err != nil {
			return err
		}
		started, err = startReady(ctx, k.command("kafka.Kafka", k.properties()), kafkaPatience, k.answers)
		return err
	})
	return started, err
}

func (k *Kafka) command(class string, args ...string) command {
	flags := append(javaFlags("512m"),
		"-Dorg.slf4j.simpleLogger.defaultLogLevel=warn", "-Dorg.slf4j.simpleLogger.showDateTime=true",
		"-Dorg.slf4j.simpleLogger.dateTimeFormat=HH:mm:ss.SSS",
	)
	return command{
		name: "Apache Kafka", path: k.java, dir: k.dir.path, log: k.dir.join("log"), lastWish: syscall.SIGKILL,
		args: append(append(flags, "-cp", filepath.Join(k.jars, "*"), class), args...),
	}
}

// configure writes server.properties, and formats the folder if it is new.
func (k *Kafka) configure(controllerPort int) error {
	settings := maps.Clone(kafkaSettings)
	settings["listeners"] = fmt.Sprintf("PLAINTEXT://%s,CONTROLLER://%s", address(k.Port),
		address(controllerPort))
	settings["advertised.listeners"] = "PLAINTEXT://" + address(k.Port)
	settings["controller.quorum.voters"] = "1@" + address(controllerPort)
	settings["listener.security.protocol.map"] = "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT"
	settings["log.dirs"] = k.Data()
	maps.Copy(settings, k.config.Settings)
	var text strings.Builder
	for _, name := range slices.Sorted(maps.Keys(settings)) {
		fmt.Fprintf(&text, "%s=%s\n", name, settings[name])
	}
	if err := os.WriteFile(k.properties(), []byte(text.String()), 0o600); err != nil {
		return fmt.Errorf("configure Apache Kafka: %w", err)
	}
	if _, err := os.Stat(filepath.Join(k.Data(), "meta.properties")); !errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return run(k.command("kafka.tools.StorageTool", "format", "-t", kafkaCluster, "-c", k.properties()))
}

func (k *Kafka) properties() string { return k.dir.join("server.properties") }

// answers succeeds where the broker names itself as the cluster's only one, and its controller does not hold
// it back.
func (k *Kafka) answers(ctx context.Context) error {
	client, err := kgo.NewClient(kgo.SeedBrokers(k.Brokers()...), kgo.RequestRetries(0))
	if err != nil {
		return err
	}
	defer client.Close()
	brokers, err := kadm.NewClient(client).ListBrokers(ctx)
	if err == nil && (len(brokers) != 1 || brokers[0].Port != int32(k.Port)) {
		err = fmt.Errorf("expected one broker, on port %d, found %v", k.Port, brokers)
	}
	return err
}

// Brokers are the addresses to bootstrap from.
func (k *Kafka) Brokers() []string { return []string{address(k.Port)} }

// Stop ends the broker and removes its temporary folder; data in a folder that was given is closed in order.
// A second Stop does nothing.
func (k *Kafka) Stop() error {
	defer k.dir.close()
	if k.dir.temporary {
		return k.Kill()
	}
	return k.Shutdown()
}

// Shutdown ends the broker in order and keeps its data and port, for Start.
func (k *Kafka) Shutdown() error { return k.run.stop(kafkaPatience, syscall.SIGTERM) }

// Kill ends the broker as kill -9 would and keeps its data and port, for Start. The page cache keeps what it
// had acknowledged.
func (k *Kafka) Kill() error { return k.run.stop(0, syscall.SIGKILL) }

// Start starts a broker that was shut down or killed, on the same port and data, and returns once it answers.
func (k *Kafka) Start(ctx context.Context) error { return k.run.start(ctx) }

// Restart is Shutdown, then Start.
func (k *Kafka) Restart(ctx context.Context) error {
	if err := k.Shutdown(); err != nil {
		return err
	}
	return k.Start(ctx)
}

// Pause freezes the broker: connections stay open and nothing answers, as with a machine that hangs. Resume
// ends it.
func (k *Kafka) Pause() error { return k.run.process.signal(syscall.SIGSTOP) }

// Resume wakes a broker that was paused.
func (k *Kafka) Resume() error { return k.run.process.signal(syscall.SIGCONT) }

// Pid is the broker's process id, for whoever measures it.
func (k *Kafka) Pid() int { return k.run.process.cmd.Process.Pid }

// Data is the folder of its topics' segments.
func (k *Kafka) Data() string { return k.dir.join("data") }
