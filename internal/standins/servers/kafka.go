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
	"syscall"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

//go:embed kafka/pom.xml
var kafkaPOM string

const (
	kafkaVersion  = "4.3.1" // unless kafkaVariable asks for another
	kafkaPatience = 3 * time.Minute
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

// SecuredSettings begins the names of the settings of the listener that KafkaConfig.Secured asks for.
const SecuredSettings = "listener.name.secured."

// KafkaConfig says how to start an Apache Kafka. The zero value is good.
type KafkaConfig struct {
	// Dir keeps the data of an earlier run. "" is a temporary folder, which Stop removes.
	Dir      string
	Port     int               // 0 stands for a free one
	Settings map[string]string // server.properties, on top of kafkaSettings
	// Secured is the security protocol (SASL_SSL, SASL_PLAINTEXT, SSL) of a second listener, whose settings
	// begin with SecuredSettings. If it is empty, there is no second listener. Clients of the first one are
	// User:ANONYMOUS.
	Secured string
	// JavaFlags are more flags of the Java machine.
	JavaFlags []string
	// Format is more arguments of kafka-storage.sh format, such as --add-scram.
	Format []string
}

// Kafka is a running Apache Kafka, one node, without ZooKeeper. Its methods may be called from several
// goroutines, but Stop ends them all.
type Kafka struct {
	Port int

	securedPort int

	java   string
	jars   string
	config KafkaConfig
	dir    *folder
	run    *daemon
}

// StartKafka starts an Apache Kafka and returns once it answers. The first time on a machine Maven fetches it
// (44 MB). Errors: ErrNoJava, ErrNoMaven, or its own output.
func StartKafka(ctx context.Context, c KafkaConfig) (*Kafka, error) {
	java, jars, err := fetchKafka(ctx, announced())
	if err != nil {
		return nil, err
	}
	dir, err := openFolder(c.Dir, "kafka", nil)
	if err != nil {
		return nil, err
	}
	k := &Kafka{Port: c.Port, java: java, jars: jars, config: c, dir: dir}
	k.run = &daemon{launch: k.launch}
	if err := k.run.start(ctx); err != nil {
		dir.close()
		return nil, err
	}
	return k, nil
}

// Tool is the command that runs one of Kafka's tools with the jars that are here. What Kafka calls
// kafka-consumer-groups.sh is the class org.apache.kafka.tools.consumer.group.ConsumerGroupCommand.
func (k *Kafka) Tool(class string, args ...string) []string {
	return slices.Concat([]string{k.java, javaLog[0], "-cp", filepath.Join(k.jars, "*"), class,
		"--bootstrap-server", address(k.Port)}, args)
}

// KafkaVersion is the Apache Kafka that StartKafka starts.
func KafkaVersion() string { return cmp.Or(os.Getenv(kafkaVariable), kafkaVersion) }

// FetchKafka does the first step of StartKafka and reports its progress. It fails with ErrNoJava, ErrNoMaven,
// or Maven's own last words.
func FetchKafka(ctx context.Context, progress Progress) error {
	_, _, err := fetchKafka(ctx, progress)
	return err
}

// fetchKafka returns the program java and the folder of the jars that kafka/pom.xml asks for, and theirs.
func fetchKafka(ctx context.Context, progress Progress) (java, jars string, err error) {
	if java, err = javaBinary(); err != nil {
		return "", "", err
	}
	if jars, err = fetchJars(ctx, "kafka", kafkaPOM, progress); err != nil {
		return "", "", fmt.Errorf("fetch Apache Kafka %s: %w", KafkaVersion(), err)
	}
	return java, jars, nil
}

// fetchJars returns the folder of the jars that a pom.xml asks for, and theirs.
func fetchJars(ctx context.Context, name, pom string, progress Progress) (string, error) {
	cache, err := fetched(name+"-"+KafkaVersion(), pom, progress, func(dir string) error {
		if err := os.WriteFile(filepath.Join(dir, "pom.xml"), []byte(pom), 0o644); err != nil {
			return err
		}
		return maven(ctx, dir, progress, "dependency:copy-dependencies", "-Dkafka.version="+KafkaVersion(),
			"-DoutputDirectory="+filepath.Join(dir, "jars"))
	})
	return filepath.Join(cache, "jars"), err
}

// launch starts the process, on k.Port unless that is 0, and waits until it answers. The controller's port
// may differ from start to start: it is not part of the data.
func (k *Kafka) launch(ctx context.Context) (started *process, err error) {
	err = onFreePorts(3, k.Port, func(ports []int) error {
		k.Port, k.securedPort = ports[0], ports[2]
		if err := k.configure(ctx, ports[1]); err != nil {
			return err
		}
		started, err = startReady(ctx, k.command("kafka.Kafka", k.properties()), kafkaPatience, k.answers)
		return err
	})
	return started, err
}

func (k *Kafka) command(class string, args ...string) command {
	flags := append(javaFlags("512m", k.dir), javaLog...)
	return command{
		name: "Apache Kafka", path: k.java, dir: k.dir.path, log: k.dir.join("log"), lastWish: syscall.SIGKILL,
		args: slices.Concat(flags, k.config.JavaFlags, []string{"-cp", filepath.Join(k.jars, "*"), class}, args),
	}
}

// configure writes server.properties, and formats the folder if it is new.
func (k *Kafka) configure(ctx context.Context, controllerPort int) error {
	settings := maps.Clone(kafkaSettings)
	settings["listeners"] = fmt.Sprintf("PLAINTEXT://%s,CONTROLLER://%s", address(k.Port),
		address(controllerPort))
	settings["advertised.listeners"] = "PLAINTEXT://" + address(k.Port)
	settings["controller.quorum.voters"] = "1@" + address(controllerPort)
	settings["listener.security.protocol.map"] = "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT"
	if secured := k.config.Secured; secured != "" {
		settings["listeners"] += ",SECURED://" + address(k.securedPort)
		settings["advertised.listeners"] += ",SECURED://" + address(k.securedPort)
		settings["listener.security.protocol.map"] += ",SECURED:" + secured
	}
	settings["log.dirs"] = k.Data()
	maps.Copy(settings, k.config.Settings)
	if err := os.WriteFile(k.properties(), properties(settings), 0o600); err != nil {
		return fmt.Errorf("configure Apache Kafka: %w", err)
	}
	if _, err := os.Stat(filepath.Join(k.Data(), "meta.properties")); !errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return run(ctx, k.command("kafka.tools.StorageTool", append([]string{"format", "-t", kafkaCluster, "-c",
		k.properties()}, k.config.Format...)...))
}

// properties is a file of settings as Kafka's programs read it.
func properties(settings map[string]string) []byte {
	var text []byte
	for _, name := range slices.Sorted(maps.Keys(settings)) {
		text = fmt.Appendf(text, "%s=%s\n", name, settings[name])
	}
	return text
}

func (k *Kafka) properties() string { return k.dir.join("server.properties") }

// answers succeeds if the broker names itself as the cluster's only one, and its controller does not hold it
// back.
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

// SecuredBrokers are those of the listener that KafkaConfig.Secured asks for.
func (k *Kafka) SecuredBrokers() []string { return []string{address(k.securedPort)} }

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

// Kill ends the broker as kill -9 would and keeps its data and port, for Start. The page cache keeps the
// acknowledged records.
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

// Pid returns the broker's process id, for measurements.
func (k *Kafka) Pid() int { return k.run.process.cmd.Process.Pid }

// Data is the folder of its topics' segments.
func (k *Kafka) Data() string { return k.dir.join("data") }
