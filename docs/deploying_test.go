package docs

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/storestream/storestream/config"
	"github.com/storestream/storestream/internal/standins/servers"
)

// Tests try the blocks of deploying.md that follow a mark, such as <!-- compose -->. lab/chart tries those
// marked values, because it has Helm, and deploy tries scrape, because it has promtool. The program writes
// the rights in Kafka. producer and lab/contracts try them, also those that the page leaves to the export.

// block returns the code block after a mark of deploying.md.
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

// blocks is several of them, one after the other.
func blocks(t *testing.T, marks ...string) (text string) {
	t.Helper()
	for _, mark := range marks {
		text += block(t, mark)
	}
	return text
}

// secrets is a folder with a file for each secret of a configuration, and their names.
func secrets(t *testing.T, configuration string) (folder string, names []string) {
	t.Helper()
	folder = t.TempDir()
	for _, path := range secretFile.FindAllStringSubmatch(configuration, -1) {
		names = append(names, path[1])
		secret := someSecret + "\n"
		switch {
		case strings.HasSuffix(path[1], "dsn"):
			secret = "postgres://student_ro:secret@pooler.example:6432/store\n"
		case strings.HasSuffix(path[1], ".key"): // beside its certificate
			authority := servers.AuthorityForTest(t, t.TempDir())
			pair := authority.Issue(servers.CertificateConfig{Name: "stream-1.shop.example"})
			secret = read(t, pair.KeyFile)
			crt := filepath.Join(folder, strings.TrimSuffix(path[1], ".key")+".crt")
			if err := os.WriteFile(crt, []byte(read(t, pair.CertFile)), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.WriteFile(filepath.Join(folder, path[1]), []byte(secret), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	slices.Sort(names)
	return folder, names
}

// someSecret is long enough for a token.
const someSecret = "0123456789abcdef"

func read(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

var secretFile = regexp.MustCompile(`/etc/storestream/secrets/([a-z-]+(?:\.key)?)`)

// load is a configuration with the secrets in folder, and the given variables.
func load(t *testing.T, text, folder string, environ ...string) (*config.Config, error) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "storestream.yaml")
	text = strings.ReplaceAll(text, "/etc/storestream/secrets", folder)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return config.Load(config.Input{File: file, Environ: environ})
}

func TestTheRightsAreThoseThatAreExported(t *testing.T) {
	text := buildProgram(t).run("topics", "export", "--as", "kafka", "--set", "kafka.brokers=kafka-1:9093",
		"--set", "kafka.tls.enabled=true")
	users := strings.Split(strings.ReplaceAll(text, " FILE ", " admin.properties "), "\n# rights of ")[1:]
	if len(users) != 4 {
		t.Errorf("rights of %d users are exported, expected 4", len(users))
	}
	for i, rights := range users {
		user, commands, _ := strings.Cut(rights, "\n")
		if i == 0 {
			generatedIn(t, "deploying.md", "rights of "+user, "```\n"+strings.TrimSpace(commands)+"\n```\n")
		} else if !strings.Contains(read(t, "deploying.md"), "\n- `"+user+"` ") {
			t.Errorf("deploying.md does not say who %s is, whose rights are exported", user)
		}
	}
}

func TestTheLeastConfigurationIsOne(t *testing.T) {
	text := block(t, "configuration")
	folder, names := secrets(t, text)
	c, err := load(t, text, folder)
	if err != nil {
		t.Fatal(err)
	}
	if len(c.Exposed()) > 0 || len(names) == 0 {
		t.Errorf("a credential travels in clear, or none is in a file: %v, %v", c.Exposed(), names)
	}
}

func TestTheUnitsFurtherLinesHandOverTheSecretsOfTheConfiguration(t *testing.T) {
	unit, err := os.ReadFile("../deploy/systemd/storestream.service")
	if err != nil {
		t.Fatal(err)
	}
	text := string(unit) + blocks(t, "unit", "unit of the status port")
	configuration := blocks(t, "configuration", "status port")
	folder, names := secrets(t, configuration)
	certificate := filepath.Join(folder, "http.crt")
	configuration = strings.ReplaceAll(configuration, "/etc/storestream/http.crt", certificate)
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
	variable := regexp.MustCompile(`(?m)^Environment=(STORESTREAM_.+)=((?:file:)?)%d/(.+)$`)
	for _, v := range variable.FindAllStringSubmatch(text, -1) {
		environ = append(environ, v[1]+"="+v[2]+filepath.Join(folder, v[3]))
	}
	// The service cannot read what root alone may read: the variables have to win for every secret.
	c, err := load(t, configuration, "/nowhere", environ...)
	if err != nil {
		t.Fatal(err)
	}
	if len(environ) != len(names) || c.Kafka.SASL.Password.Get() != someSecret ||
		c.HTTP.Token.Get() != someSecret || c.HTTP.TLS.KeyFile != filepath.Join(folder, "http.key") {
		t.Errorf("%d variables for %d secrets; the status port has key %s", len(environ), len(names),
			c.HTTP.TLS.KeyFile)
	}
}

// compose is what the tests look at of a file for Compose.
type compose struct {
	Services map[string]composeService
	Secrets  map[string]struct{ File string }
}

type composeService struct {
	Image, User    string
	Command        []string
	Environment    map[string]string
	Privileged     bool
	ReadOnly       bool     `yaml:"read_only"`
	CapAdd         []string `yaml:"cap_add"`
	CapDrop        []string `yaml:"cap_drop"`
	SecurityOpt    []string `yaml:"security_opt"`
	MemLimit       string   `yaml:"mem_limit"`
	Restart        string
	Grace          string `yaml:"stop_grace_period"`
	Volumes, Ports []string
	Secrets        []struct{ Source, Target string }
}

// confined reports what a program of ours may do in its container and never needs.
func (s composeService) confined(t *testing.T, name string) {
	t.Helper()
	if !s.ReadOnly || s.Privileged || len(s.CapAdd) > 0 || !slices.Equal(s.CapDrop, []string{"ALL"}) {
		t.Errorf("%s: read_only %v, privileged %v, cap_add %v, cap_drop %v; expected a root that cannot be "+
			"written, and no capability", name, s.ReadOnly, s.Privileged, s.CapAdd, s.CapDrop)
	}
	if !slices.Equal(s.SecurityOpt, []string{"no-new-privileges:true"}) {
		t.Errorf("%s: security_opt is %v, expected no-new-privileges:true alone", name, s.SecurityOpt)
	}
	if s.User != "" && s.User != "65532:65532" { // empty: the Dockerfile's
		t.Errorf("%s: it runs as user %s, expected 65532:65532", name, s.User)
	}
}

// here reports ports that other machines reach.
func (s composeService) here(t *testing.T, name string) {
	t.Helper()
	for _, port := range s.Ports {
		if !strings.HasPrefix(port, "127.0.0.1:") {
			t.Errorf("%s: port %s is open beyond this machine, expected 127.0.0.1", name, port)
		}
	}
}

func TestDockerComposeConfinesOurProgramsAndListensHere(t *testing.T) {
	var file compose
	if err := yaml.Unmarshal([]byte(read(t, "../docker-compose.yml")), &file); err != nil {
		t.Fatal(err)
	}
	ours := []string{"storestream", "storefake"}
	for _, name := range ours {
		file.Services[name].confined(t, name)
	}
	if n := strings.Count(read(t, "../Dockerfile"), "\nUSER 65532:65532\n"); n != len(ours) {
		t.Errorf("the Dockerfile gives up root in %d targets, expected %d", n, len(ours))
	}
	for name, service := range file.Services {
		service.here(t, name)
	}
}

// serviceForCompose is the file that deploying.md has readers copy. A key that the tests do not know fails.
func serviceForCompose(t *testing.T) (file compose) {
	t.Helper()
	decoder := yaml.NewDecoder(strings.NewReader(block(t, "compose")))
	decoder.KnownFields(true)
	if err := decoder.Decode(&file); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestTheServiceForComposeIsConfinedAndHasTheBoundsOfTheProgram(t *testing.T) {
	service := serviceForCompose(t).Services["storestream"]
	service.confined(t, "storestream")
	service.here(t, "storestream")
	if service.Restart != "unless-stopped" {
		t.Errorf("restart is %q: what dies has to come back, after a restart of the machine too", service.Restart)
	}
	defaults, err := config.Load(config.Input{})
	if err != nil {
		t.Fatal(err)
	}
	// operations.md, What bounds memory, for the default limit.
	const limit = 1024
	left := limit - limit/10 - (defaults.Sweep.Memory+2*defaults.Poll.Memory)/(1<<20)
	want := fmt.Sprintf("%dMiB", left)
	if got := service.Environment["GOMEMLIMIT"]; got != want || service.MemLimit != "1g" {
		t.Errorf("GOMEMLIMIT is %s of %s, expected %s of 1g", got, service.MemLimit, want)
	}
	// cmd/storestream/internal/instance gives the batch in hand 20 s. Docker kills after 10 s by itself.
	if grace, err := time.ParseDuration(service.Grace); err != nil || grace < 30*time.Second {
		t.Errorf("a stop has %s (%v), and takes 20 s and what it takes to leave the group", grace, err)
	}
}

func TestTheServiceForComposeMountsTheSecretsOfTheConfiguration(t *testing.T) {
	file := serviceForCompose(t)
	_, names := secrets(t, block(t, "configuration"))
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
	volumes := []string{"./storestream.yaml:" + service.Command[2] + ":ro", "./scratch:/var/tmp"}
	if !slices.Equal(service.Volumes, volumes) {
		t.Errorf("mounted are %v, expected the configuration and room for a sweep: %v", service.Volumes, volumes)
	}
}
