package servers

import (
	"context"
	"fmt"
	"path/filepath"
	"syscall"
	"time"

	"github.com/twmb/franz-go/pkg/sr"
)

// ApicurioVersion is the version that StartApicurio starts. It is the newest that runs on Java 17, the
// version of Debian 12. 3.3 needs Java 21.
const ApicurioVersion = "2.6.13.Final"

const apicurioPatience = 3 * time.Minute

// ApicurioConfig says how to start an Apicurio Registry. The zero value is good.
type ApicurioConfig struct {
	// Dir keeps the schemas of an earlier run. "" is a temporary folder, which Stop removes.
	Dir  string
	Port int // 0 stands for a free one
}

// Apicurio is a running Apicurio Registry, a real schema registry behind Confluent's paths: unlike the
// embedded one it parses schemas and refuses incompatible ones with 409 (the global rule is BACKWARD, as
// Confluent's is by default). Its /mode is not supported.
type Apicurio struct {
	Port int

	java string
	home string
	dir  *folder
	run  *daemon
}

// apicurioSettings are those that docker-compose.yml has too (a test compares them). The schemas are in a
// file and not in memory, so that a registry that was killed comes back with them, under the same ids.
func apicurioSettings(schemas string) map[string]string {
	return map[string]string{
		"registry.rules.global.compatibility": "BACKWARD",
		"quarkus.datasource.jdbc.url":         "jdbc:h2:file:" + schemas + ";WRITE_DELAY=0",
	}
}

// StartApicurio starts an Apicurio Registry and returns once it answers. The first time on a machine Maven
// fetches it (142 MB). Errors: ErrNoJava, ErrNoMaven, or its own output.
func StartApicurio(ctx context.Context, c ApicurioConfig) (*Apicurio, error) {
	java, home, err := fetchApicurio(ctx, announced())
	if err != nil {
		return nil, err
	}
	dir, err := openFolder(c.Dir, "apicurio", nil)
	if err != nil {
		return nil, err
	}
	a := &Apicurio{java: java, home: home, dir: dir}
	a.run = &daemon{launch: a.launch}
	err = onFreePorts(1, c.Port, func(ports []int) error {
		a.Port = ports[0]
		return a.run.start(ctx)
	})
	if err != nil {
		dir.close()
		return nil, err
	}
	return a, nil
}

// FetchApicurio does the first step of StartApicurio and reports its progress. It fails with ErrNoJava,
// ErrNoMaven, or Maven's own last words.
func FetchApicurio(ctx context.Context, progress Progress) error {
	_, _, err := fetchApicurio(ctx, progress)
	return err
}

// fetchApicurio returns the program java and the folder of the registry's jars.
func fetchApicurio(ctx context.Context, progress Progress) (java, home string, err error) {
	if java, err = javaBinary(); err != nil {
		return "", "", err
	}
	cache, err := fetched("apicurio-"+ApicurioVersion, "", progress, func(dir string) error {
		return maven(ctx, dir, progress, "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:unpack",
			"-Dartifact=io.apicurio:apicurio-registry-app:"+ApicurioVersion+":tar.gz:all",
			"-DoutputDirectory="+filepath.Join(dir, "app"))
	})
	if err != nil {
		return "", "", fmt.Errorf("fetch Apicurio %s: %w", ApicurioVersion, err)
	}
	return java, filepath.Join(cache, "app"), nil
}

// URL is the root of Confluent's API.
func (a *Apicurio) URL() string { return "http://" + address(a.Port) + "/apis/ccompat/v7" }

// launch starts the process and waits until it answers.
func (a *Apicurio) launch(ctx context.Context) (*process, error) {
	args := append(javaFlags("256m", a.dir),
		"-Dquarkus.http.host="+host,
		fmt.Sprintf("-Dquarkus.http.port=%d", a.Port),
		"-Dquarkus.log.level=WARN",
		"-Dquarkus.datasource.jdbc.acquisition-timeout=60") // seconds: a busy machine takes more than five
	for name, value := range apicurioSettings(a.dir.join("schemas")) {
		args = append(args, "-D"+name+"="+value)
	}
	args = append(args, "-jar", filepath.Join(a.home, "apicurio-registry-app-"+ApicurioVersion+"-runner.jar"))
	return startReady(ctx, command{
		name: "Apicurio", path: a.java, args: args, dir: a.dir.path, log: a.dir.join("log"),
		lastWish: syscall.SIGKILL,
	}, apicurioPatience, a.answers)
}

// answers succeeds if the registry lists its subjects.
func (a *Apicurio) answers(ctx context.Context) error {
	client, err := sr.NewClient(sr.URLs(a.URL()))
	if err != nil {
		return err
	}
	_, err = client.Subjects(ctx)
	return err
}

// Stop ends the registry and removes its temporary folder. A second Stop does nothing.
func (a *Apicurio) Stop() error {
	defer a.dir.close()
	return a.run.stop(stopPatience, syscall.SIGTERM)
}

// Kill ends the registry as kill -9 would and keeps its schemas and port, for Start.
func (a *Apicurio) Kill() error { return a.run.stop(0, syscall.SIGKILL) }

// Start starts a registry that was killed, on the same port and schemas.
func (a *Apicurio) Start(ctx context.Context) error { return a.run.start(ctx) }
