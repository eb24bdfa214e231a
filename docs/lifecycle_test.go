package docs

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A reader searches lifecycle.md for the words of an error or a log line.
func TestTheTextsThatLifecycleQuotesAreTheProgramsOwn(t *testing.T) {
	page, err := os.ReadFile("lifecycle.md")
	if err != nil {
		t.Fatal(err)
	}
	var texts []string
	for _, folder := range []string{"cmd/storestream", "config", "internal", "poller", "producer", "schemas"} {
		texts = append(texts, textsOf(t, filepath.Join("..", folder))...)
	}
	all := strings.Join(texts, "\n")
	for _, quote := range []string{"Everything is up to date", "written by a newer version of storestream",
		"SIGHUP: the files of secrets and certificates were read again", "unusable", "a file has changed",
		"refuses the login", "answered 401", "kafka.sasl does not fit", "has no column",
		"the service's rows have lost", "refuses the schema",
		"the server shows less than the one that answered before", "leads to another table",
		"the schema id of its", "it does not hold all that was published", "the number of partitions"} {
		if !strings.Contains(string(page), "`"+quote) {
			t.Errorf("lifecycle.md does not quote %q", quote)
		}
		if !strings.Contains(all, quote) {
			t.Errorf("lifecycle.md quotes %q, which the program does not say", quote)
		}
	}
}
