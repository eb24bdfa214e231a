package deploy

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/storestream/storestream/config"
)

const unitFile = "systemd/storestream.service"

// unit is the settings of a unit of systemd, those of all its sections together, in their order.
type unit struct {
	text     string
	settings map[string][]string
}

func readUnit(t *testing.T) *unit {
	t.Helper()
	text, err := os.ReadFile(unitFile)
	if err != nil {
		t.Fatal(err)
	}
	u := &unit{text: string(text), settings: map[string][]string{}}
	for line := range strings.Lines(u.text) {
		name, value, isSetting := strings.Cut(strings.TrimSpace(line), "=")
		if isSetting && !strings.HasPrefix(name, "#") {
			u.settings[name] = append(u.settings[name], value)
		}
	}
	return u
}

// only is the value of a setting that is there once.
func (u *unit) only(t *testing.T, name string) string {
	t.Helper()
	if len(u.settings[name]) != 1 {
		t.Fatalf("%s is there %d times, expected once", name, len(u.settings[name]))
	}
	return u.settings[name][0]
}

// environment is the variables that the unit sets, with directory in place of that of the credentials.
func (u *unit) environment(directory string) []string {
	var all []string
	for _, v := range u.settings["Environment"] {
		all = append(all, strings.ReplaceAll(v, "%d", directory))
	}
	return all
}

// analyze runs systemd-analyze on the unit, with this test in place of a program that is not installed here.
func (u *unit) analyze(t *testing.T, args ...string) (string, error) {
	t.Helper()
	path, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Skip("systemd-analyze is not on this machine; make test-deploy installs it: ", err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	command := u.only(t, "ExecStart")
	program, _, _ := strings.Cut(command, " ")
	file := filepath.Join(t.TempDir(), filepath.Base(unitFile))
	text := strings.Replace(u.text, "ExecStart="+program+" ", "ExecStart="+self+" ", 1)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.CommandContext(t.Context(), path, append(args, file)...).CombinedOutput()
	return string(out), err
}

func TestSystemdKnowsEverySettingOfTheUnit(t *testing.T) {
	u := readUnit(t)
	verify := []string{"verify", "--man=no", "--recursive-errors=no"}
	// A setting that it does not know is a warning to it.
	if out, err := u.analyze(t, verify...); err != nil || out != "" {
		t.Errorf("%v\n%s", err, out)
	}
	u.text = strings.Replace(u.text, "ProtectSystem=", "ProtectsSystem=", 1)
	if out, _ := u.analyze(t, verify...); !strings.Contains(out, "ProtectsSystem") {
		t.Errorf("systemd says nothing of a setting that it does not know: %s", out)
	}
}

// systemd counts from 0, where nothing is exposed, to 100. What remains at 12: it has a network and a user.
func TestTheUnitIsExposedToLittle(t *testing.T) {
	u := readUnit(t)
	judge := []string{"security", "--offline=true", "--threshold=15", "--no-pager"}
	if out, err := u.analyze(t, judge...); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	u.text = strings.Replace(u.text, "\nCapabilityBoundingSet=\n", "\n", 1)
	if out, err := u.analyze(t, judge...); err == nil {
		t.Errorf("a service with every capability passes: %s", out)
	}
}

func TestTheUnitWritesNoCoreAndSpeaksToPrivateNetworksAlone(t *testing.T) {
	u := readUnit(t)
	for name, want := range map[string]string{"LimitCORE": "0", "IPAddressDeny": "any",
		"IPAddressAllow": "localhost 10.0.0.0/8 172.16.0.0/12 192.168.0.0/16 fc00::/7"} {
		if got := u.only(t, name); got != want {
			t.Errorf("%s is %q, expected %q", name, got, want)
		}
	}
}

func TestTheUnitHandsOverItsSecrets(t *testing.T) {
	u, credentials := readUnit(t), t.TempDir()
	var wanted []string
	for _, c := range u.settings["LoadCredential"] {
		name, from, _ := strings.Cut(c, ":")
		if from != "/etc/storestream/secrets/"+name {
			t.Errorf("credential %s is loaded from %s", name, from)
		}
		wanted = append(wanted, "file:"+filepath.Join(credentials, name))
		secret := "postgres://student_ro:secret@pooler.example:6432/store\n"
		if err := os.WriteFile(filepath.Join(credentials, name), []byte(secret), 0o400); err != nil {
			t.Fatal(err)
		}
	}
	var environ []string
	used := map[string]bool{}
	for _, v := range u.environment(credentials) {
		if name, value, _ := strings.Cut(v, "="); strings.HasPrefix(name, "STORESTREAM_") {
			environ = append(environ, v)
			used[value] = true
		}
	}
	if got := slices.Sorted(maps.Keys(used)); !slices.Equal(got, wanted) {
		t.Errorf("the variables name %v, the credentials are %v", got, wanted)
	}
	file := filepath.Join(t.TempDir(), "storestream.yaml")
	// The file names what root alone reads. The variables win.
	text := "store: {base_url: https://store.example/v1}\n" +
		"postgres: {dsn: \"file:/etc/storestream/secrets/postgres-dsn\"}\n" +
		"kafka: {brokers: [kafka.example:9092]}\nregistry: {url: https://registry.example}\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := config.Load(config.Input{File: file, Environ: environ}); err != nil {
		t.Error(err)
	}
}

func TestTheUnitsBoundsAreThoseOfTheProgram(t *testing.T) {
	u := readUnit(t)
	defaults, err := config.Load(config.Input{})
	if err != nil {
		t.Fatal(err)
	}
	const start = "/usr/local/bin/storestream run --config /etc/storestream/storestream.yaml"
	if got := u.only(t, "ExecStart"); got != start {
		t.Errorf("it starts %s", got)
	}
	if got := u.only(t, "MemoryMax"); got != "1G" { // systemd's G is 1024 M
		t.Errorf("MemoryMax is %s, and GOMEMLIMIT is reckoned for 1G", got)
	}
	// docs/operations.md, What bounds memory.
	const limit = 1024
	left := limit - limit/10 - (defaults.Sweep.Memory+2*defaults.Poll.Memory)/(1<<20)
	if want := fmt.Sprintf("GOMEMLIMIT=%dMiB", left); !slices.Contains(u.environment(""), want) {
		t.Errorf("expected %s among %v", want, u.environment(""))
	}
	// cmd/storestream/internal/instance gives the batch in hand 20 s.
	stop, err := time.ParseDuration(u.only(t, "TimeoutStopSec") + "s")
	if err != nil || stop < 30*time.Second {
		t.Errorf("a stop has %s (%v), and takes 20 s and what it takes to leave the group", stop, err)
	}
}
