package docs

import (
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/storestream/storestream/config"
)

// What deploying.md tells readers to copy is tried as far as a test can: blocks that begin with a mark, such
// as <!-- compose -->. Those marked values and rights are tried where Helm (lab/chart) and Kafka's rights
// (producer) are.

// block is what stands in the fence after a mark of deploying.md.
func block(t *testing.T, mark string) string {
	t.Helper()
	text, err := os.ReadFile("deploying.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), "<!-- "+mark+" -->\n")
	fence := regexp.MustCompile("(?s)^```[a-z]*\n(.*?)```\n").FindStringSubmatch(rest)
	if fence == nil {
		t.Fatalf("deploying.md has no block %q", mark)
	}
	return fence[1]
}

// secrets is a folder with a file for each secret of the block configuration, and their names.
func secrets(t *testing.T) (folder string, names []string) {
	t.Helper()
	folder = t.TempDir()
	for _, path := range secretFile.FindAllStringSubmatch(block(t, "configuration"), -1) {
		names = append(names, path[1])
		secret := "secret\n"
		if strings.HasSuffix(path[1], "dsn") {
			secret = "postgres://student_ro:secret@pooler.example:6432/store\n"
		}
		if err := os.WriteFile(filepath.Join(folder, path[1]), []byte(secret), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	slices.Sort(names)
	return folder, names
}

var secretFile = regexp.MustCompile(`/etc/storestream/secrets/([a-z-]+)`)

// load is the block configuration with the secrets in folder, and the given variables.
func load(t *testing.T, folder string, environ ...string) (*config.Config, error) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "storestream.yaml")
	text := strings.ReplaceAll(block(t, "configuration"), "/etc/storestream/secrets", folder)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return config.Load(config.Input{File: file, Environ: environ})
}

func TestTheLeastConfigurationIsOne(t *testing.T) {
	folder, names := secrets(t)
	c, err := load(t, folder)
	if err != nil {
		t.Fatal(err)
	}
	if len(c.Plaintext()) > 0 || len(names) == 0 {
		t.Errorf("a credential travels in clear, or none is in a file: %v, %v", c.Plaintext(), names)
	}
}

func TestTheUnitsFurtherLinesHandOverTheSecretsOfTheConfiguration(t *testing.T) {
	unit, err := os.ReadFile("../deploy/systemd/storestream.service")
	if err != nil {
		t.Fatal(err)
	}
	text := string(unit) + block(t, "unit")
	folder, names := secrets(t)
	var handed, environ []string
	for _, c := range regexp.MustCompile(`(?m)^LoadCredential=(.+):(.+)$`).FindAllStringSubmatch(text, -1) {
		handed = append(handed, c[1])
		if c[2] != "/etc/storestream/secrets/"+c[1] {
			t.Errorf("credential %s is loaded from %s", c[1], c[2])
		}
	}
	if slices.Sort(handed); !slices.Equal(handed, names) {
		t.Errorf("the unit is handed %v, the configuration has %v", handed, names)
	}
	variable := regexp.MustCompile(`(?m)^Environment=(STORESTREAM_.+)=file:%d/(.+)$`)
	for _, v := range variable.FindAllStringSubmatch(text, -1) {
		environ = append(environ, v[1]+"=file:"+filepath.Join(folder, v[2]))
	}
	// The service cannot read what root alone may read: the variables have to win for every secret.
	c, err := load(t, "/nowhere", environ...)
	if err != nil {
		t.Fatal(err)
	}
	if len(environ) != len(names) || c.Kafka.SASL.Password.Get() != "secret" {
		t.Errorf("%d variables for %d secrets", len(environ), len(names))
	}
}

func TestTheServiceForComposeMountsTheSecretsOfTheConfiguration(t *testing.T) {
	var file struct {
		Services map[string]struct {
			Image, User    string
			Command        []string
			Environment    map[string]string
			ReadOnly       bool     `yaml:"read_only"`
			CapDrop        []string `yaml:"cap_drop"`
			SecurityOpt    []string `yaml:"security_opt"`
			MemLimit       string   `yaml:"mem_limit"`
			Restart        string
			Grace          string `yaml:"stop_grace_period"`
			Volumes, Ports []string
			Secrets        []struct{ Source, Target string }
		}
		Secrets map[string]struct{ File string }
	}
	decoder := yaml.NewDecoder(strings.NewReader(block(t, "compose")))
	decoder.KnownFields(true)
	if err := decoder.Decode(&file); err != nil {
		t.Fatal(err)
	}
	_, names := secrets(t)
	if got := slices.Sorted(maps.Keys(file.Secrets)); !slices.Equal(got, names) {
		t.Errorf("the secrets are %v, the configuration's are %v", got, names)
	}
	service := file.Services["storestream"]
	var mounted []string
	for _, s := range service.Secrets {
		mounted = append(mounted, s.Source)
		if s.Target != "/etc/storestream/secrets/"+s.Source {
			t.Errorf("secret %s is mounted at %s", s.Source, s.Target)
		}
	}
	if slices.Sort(mounted); !slices.Equal(mounted, names) {
		t.Errorf("mounted are %v, the configuration's are %v", mounted, names)
	}
	if !slices.Equal(service.Volumes, []string{"./storestream.yaml:" + service.Command[2] + ":ro"}) {
		t.Errorf("the configuration is %s, mounted is %v", service.Command[2], service.Volumes)
	}
}
