package config_test

import (
	"os"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/storestream/storestream/config"
)

func TestTheEnvironmentInDockerComposeIsAConfiguration(t *testing.T) {
	text, err := os.ReadFile("../docker-compose.yml")
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Services map[string]struct{ Environment map[string]string }
	}
	if err := yaml.Unmarshal(text, &file); err != nil {
		t.Fatal(err)
	}
	var environ []string
	for name, value := range file.Services["storestream"].Environment {
		environ = append(environ, name+"="+value)
	}
	c, err := config.Load(config.Input{Environ: environ})
	if err != nil {
		t.Fatal(err)
	}
	if c.Resources["orders"].Source != config.Postgres || len(c.Kafka.Brokers) != 1 {
		t.Errorf("orders come from %s, brokers %q", c.Resources["orders"].Source, c.Kafka.Brokers)
	}
}
