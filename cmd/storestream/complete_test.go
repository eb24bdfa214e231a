package main

import (
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/storestream/storestream/schemas"
)

func TestAShellCompletesResourcesAndKeys(t *testing.T) {
	every := strings.Join(schemas.Names(), "\n") + "\n"
	for _, test := range []struct{ line, offered string }{
		{"tail ", every},
		{"schema show ", every},
		{"sweep orders ", strings.TrimPrefix(every, "orders\n")},
		{"verify ", every},
		{"watermark reset users ", strings.Replace(every, "users\n", "", 1)},
		{"erase ", every},
		{"row ", every},
		{"erase users ", ""},
		{"check --set kafka.b", "kafka.brokers=\n"},
		{"tail orders -o ", "json\n"},
	} {
		words := append([]string{cobra.ShellCompNoDescRequestCmd}, strings.Split(test.line, " ")...)
		c := do(t, words...).expect(t, exitDone)
		if got, _, _ := strings.Cut(c.stdout.String(), ":"); got != test.offered {
			t.Errorf("%q offers %q, expected %q", test.line, got, test.offered)
		}
	}
	for _, line := range []string{"watermark reset orders --", "tail orders -"} {
		words := append([]string{cobra.ShellCompRequestCmd}, strings.Split(line, " ")...)
		c := do(t, words...).expect(t, exitDone, "--config\tYAML file (")
		if strings.Contains(c.stdout.String(), "`") || strings.Contains(c.stderr.String(), ".yaml here") {
			t.Errorf("%q offers:\n%s%s", line, c.stdout, c.stderr)
		}
	}
	for _, shell := range []string{"bash", "zsh", "fish", "powershell"} {
		do(t, "completion", shell).expect(t, exitDone, "storestream")
	}
}
