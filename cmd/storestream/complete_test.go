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
		{"dead-letters list ", every},
		{"sweep ", every},
		{"verify ", every},
		{"watermark reset ", every},
		{"erase ", every},
		{"row ", every},
		{"check --set kafka.b", "kafka.brokers=\n"},
		{"tail orders -o ", "json\n"},
		{"topics export --as ", "kafka\nstrimzi\nterraform\n"},
	} {
		words := append([]string{cobra.ShellCompNoDescRequestCmd}, strings.Split(test.line, " ")...)
		c := do(t, words...).expect(t, exitDone)
		if got, _, _ := strings.Cut(c.stdout.String(), ":"); got != test.offered {
			t.Errorf("%q offers %q, expected %q", test.line, got, test.offered)
		}
	}
	for _, shell := range []string{"bash", "zsh", "fish", "powershell"} {
		do(t, "completion", shell).expect(t, exitDone, "storestream")
	}
}
