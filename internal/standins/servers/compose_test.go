package servers

import (
	"bufio"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// composeService is what these tests read of a service in docker-compose.yml.
type composeService struct {
	Image       string
	Environment map[string]string
	Command     []string
	Volumes     []string
}

// composeServices reads docker-compose.yml. Nothing here runs containers, which `make compose-test` does:
// these tests compare its services with the ones that all other tests ran with.
func composeServices(t *testing.T) map[string]composeService {
	t.Helper()
	text, err := os.ReadFile("../../../docker-compose.yml")
	if err != nil {
		t.Fatal(err)
	}
	var file struct{ Services map[string]composeService }
	if err := yaml.Unmarshal(text, &file); err != nil {
		t.Fatal(err)
	}
	return file.Services
}

func TestComposeRunsApacheKafkaWithTheSettingsOfTheTests(t *testing.T) {
	kafka := composeServices(t)["kafka"]
	if want := "apache/kafka:" + kafkaVersion; kafka.Image != want {
		t.Errorf("the image is %s, the tests run %s", kafka.Image, want)
	}
	if kafka.Environment["CLUSTER_ID"] != kafkaCluster {
		t.Errorf("the cluster is %s, want %s", kafka.Environment["CLUSTER_ID"], kafkaCluster)
	}
	got := maps.Clone(kafka.Environment)
	maps.DeleteFunc(got, func(name, _ string) bool {
		return !strings.HasPrefix(name, "KAFKA_") || name == "KAFKA_HEAP_OPTS" || name == "KAFKA_LOG_DIRS" ||
			strings.Contains(name, "LISTENER") && name != "KAFKA_CONTROLLER_LISTENER_NAMES" ||
			strings.HasSuffix(name, "_VOTERS")
	})
	sameSettings(t, got, environment(kafkaSettings, "KAFKA_"))
}

func TestComposeRunsTheRegistryOfTheTests(t *testing.T) {
	registry := composeServices(t)["registry"]
	_, version, _ := strings.Cut(registry.Image, ":")
	if version != ApicurioVersion {
		t.Errorf("the version is %s, the tests run %s", version, ApicurioVersion)
	}
	sameSettings(t, registry.Environment, environment(apicurioSettings("/var/lib/registry/schemas"), ""))
	if want := "registry:/var/lib/registry"; !slices.Contains(registry.Volumes, want) {
		t.Errorf("the volumes are %q, expected %q, where the schemas are", registry.Volumes, want)
	}
}

// environment names settings as variables of the environment.
func environment(settings map[string]string, prefix string) map[string]string {
	variables := make(map[string]string)
	for name, value := range settings {
		variables[prefix+strings.ToUpper(strings.ReplaceAll(name, ".", "_"))] = value
	}
	return variables
}

func TestComposeRunsPostgresWithTheSettingsOfTheTests(t *testing.T) {
	got := make(map[string]string)
	for _, argument := range composeServices(t)["postgres"].Command {
		if name, value, isSetting := strings.Cut(argument, "="); isSetting {
			got[name] = value
		}
	}
	want := maps.Clone(postgresSettings)
	delete(want, "listen_addresses") // the container's own
	sameSettings(t, got, want)
}

func TestComposeRunsPgBouncerWithTheSettingsOfTheTests(t *testing.T) {
	text, err := os.ReadFile("../../../deploy/pgbouncer/pgbouncer.ini")
	if err != nil {
		t.Fatal(err)
	}
	ours := PgBouncer{config: PgBouncerConfig{Postgres: &Postgres{}}, dir: &folder{}}
	sameSettings(t, iniSettings(t, string(text)), iniSettings(t, ours.ini()))
}

// iniSettings are the settings of an ini file that are not addresses or paths.
func iniSettings(t *testing.T, text string) map[string]string {
	t.Helper()
	settings := make(map[string]string)
	lines := bufio.NewScanner(strings.NewReader(text))
	for lines.Scan() {
		name, value, isSetting := strings.Cut(lines.Text(), "=")
		switch name = strings.TrimSpace(name); name {
		case "*", "listen_addr", "listen_port", "auth_file":
		default:
			if isSetting {
				settings[name] = strings.TrimSpace(value)
			}
		}
	}
	return settings
}

// sameSettings reports each setting that only one of the two has, or that differs.
func sameSettings(t *testing.T, compose, tests map[string]string) {
	t.Helper()
	for name, want := range tests {
		if got, set := compose[name]; got != want {
			t.Errorf("%s is %q in compose (set: %v) and %q in the tests", name, got, set, want)
		}
	}
	for name, got := range compose {
		if _, set := tests[name]; !set {
			t.Errorf("%s is %q in compose and not set in the tests", name, got)
		}
	}
}
