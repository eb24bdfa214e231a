//go:build linux

package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// slowMaven prints what mvn -B prints of two files, and goes on when somebody has read that. Then its network
// is gone. So nothing counts as fetched.
const slowMaven = `#!/bin/sh
central=https://repo.maven.apache.org/maven2/org/apache/kafka
echo '[INFO] Scanning for projects...'
for jar in kafka_2.13/0.0.0/kafka_2.13-0.0.0.jar kafka-raft/0.0.0/kafka-raft-0.0.0.jar; do
  echo "[INFO] Downloading from central: $central/$jar"
  echo "[INFO] Downloaded from central: $central/$jar (9.7 MB at 3.1 MB/s)"
done
read gone <'%s'
echo '[ERROR] Could not transfer artifact: Connection reset'
exit 1
`

// Fetching 190 MB takes minutes. Whoever waits sees which file it is at, on a terminal in one line, and
// elsewhere at least what is being fetched, once.
func TestADemoThatFetchesApacheKafkaSaysHowFarMavenIs(t *testing.T) {
	folder := isolated(t)
	gate := filepath.Join(folder, "gate")
	if err := syscall.Mkfifo(gate, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, script := range map[string]string{"java": "#!/bin/sh\n", "mvn": fmt.Sprintf(slowMaven, gate)} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(script), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", folder+":"+os.Getenv("PATH"))
	t.Setenv("JAVA_HOME", "")
	t.Setenv("XDG_CACHE_HOME", folder)                   // root's cache is another
	t.Setenv("SERVERS_KAFKA", "0.0.0-no")                // which no machine has fetched
	for _, terminal := range []*os.File{nil, os.Stdin} { // of no known width: 80 columns
		reader, writer := io.Pipe()
		ctx, cancel := context.WithTimeout(t.Context(), deadline)
		var failed error
		go func() {
			failed = fetchKafka(ctx, &screen{out: writer, terminal: terminal})
			cancel()
			_ = writer.Close() // never fails
		}()
		until, read, cache := "fetching kafka-0.0.0-no from Maven Central into ", "", ""
		if terminal != nil {
			until = "fetching from Maven Central: 2 files, the last one kafka-ra"
		}
		lines := bufio.NewScanner(reader)
		for lines.Scan() {
			read += lines.Text() + "\n"
			if _, into, found := strings.Cut(lines.Text(), " from Maven Central into "); found && cache == "" {
				cache = into
			}
			if until != "" && strings.Contains(lines.Text(), until) {
				until = ""
				if err := os.WriteFile(gate, []byte("\n"), 0o600); err != nil { // once Maven reads it
					t.Fatal(err)
				}
			}
		}
		if err := os.RemoveAll(cache); err != nil {
			t.Fatal(err)
		}
		if until != "" || strings.Count(read, "Apache Kafka: fetching ") != 1 ||
			terminal == nil && strings.Count(read, "\n") != 1 {
			t.Errorf("a terminal: %v; it says\n%s", terminal != nil, read)
		}
		for _, text := range []string{"fetch Apache Kafka 0.0.0-no: mvn ended", "Connection reset",
			"without --kafka"} {
			if failed == nil || !strings.Contains(failed.Error(), text) {
				t.Errorf("it ends with %v, expected %q", failed, text)
			}
		}
	}
}
