package e2e

import (
	"fmt"
	"os/exec"
	"strings"
	"testing"

	"github.com/storestream/storestream/internal/standins/storefake"
)

// kcat is somebody else's consumer, librdkafka's: it sees the committed records, and where it was built with
// Avro it decodes them through the registry.
func TestKcatReadsKeysAndValues(t *testing.T) {
	t.Parallel()
	kcat, err := exec.LookPath("kcat")
	if err != nil {
		t.Fatal("kcat is not installed: make deps installs it")
	}
	s := start(t, setup{noPostgres: true, fake: smallShop(9)})
	if _, errs, code := s.do("run", "--once"); code != 0 {
		t.Fatal(errs)
	}
	args := []string{"-b", s.brokers[0], "-t", "store.products", "-C", "-e", "-q", "-X",
		"isolation.level=read_committed", "-f", "%k|%s\n"}
	if about, _ := exec.Command(kcat, "-V").CombinedOutput(); strings.Contains(string(about), "Avro") {
		args = append(args, "-s", "avro", "-r", s.registry)
	}
	out, err := exec.Command(kcat, args...).Output()
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Count(string(out), "\n")
	if products := s.fake.Count("products"); lines < products {
		t.Errorf("kcat saw %d records, the service has %d products", lines, products)
	}
	decoded := strings.Contains(string(out), `{"id": `) && strings.Contains(string(out), `"retail_price"`)
	if strings.Contains(strings.Join(args, " "), "avro") && !decoded {
		t.Errorf("kcat's keys and values:\n%s", tail(string(out), 3))
	}
}

// Wrong records by kcat, in the row's own partition and, as kcat has another partitioner, most likely in one
// where the key does not belong. The demo's tests paste the drill of docs/operations.md itself.
func TestWrongRecordsWrittenByKcatAreFoundByVerifyAndRepairedByASweep(t *testing.T) {
	t.Parallel()
	furtherScenario(t)
	if _, err := exec.LookPath("kcat"); err != nil {
		t.Fatal("kcat is not installed: make deps installs it")
	}
	s := start(t, setup{yaml: quick, noPostgres: true, fake: smallShop(37)})
	p := s.spawn("run")
	p.isReady()
	s.converge()
	// Not the first seven offsets: some of them are markers where the first transactions were small, and kcat
	// would read the record behind the marker.
	var at []any
	for _, r := range s.read(s.prefix + storefake.Products) {
		if r.Partition == 0 && len(at) < 7 {
			at = append(at, r.Offset)
		}
	}
	read := fmt.Sprintf("kcat -b %s -C -t %sproducts -p 0 -c 1 -q ", s.brokers[0], s.prefix)
	write := fmt.Sprintf("kcat -b %s -P -t %sproducts ", s.brokers[0], s.prefix)
	for _, drill := range []struct{ kind, shell string }{
		{"missing", read + "-o %[1]d -f '%%k###' | " + write + "-p 0 -K '###' -Z"},
		{"stale", "(" + read + "-o %[3]d -f '%%k###'; " + read + "-o %[2]d -f '%%s') | " + write +
			"-p 0 -K '###' -D '@@@@'"},
		{"stale", "for o in %[4]d %[5]d %[6]d %[7]d; do (" + read + "-o $o -f '%%k###'; " + read +
			"-o %[3]d -f '%%s') | " + write + "-K '###' -D '@@@@'; done"},
	} {
		shell := fmt.Sprintf(drill.shell, at...)
		if out, err := exec.Command("sh", "-c", shell).CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", shell, err, out)
		}
		s.expect(3, []string{"DIFFERENT: products.", drill.kind + " "}, "verify", "products")
		s.expect(0, []string{" published"}, "sweep", "products", "--yes", "--wait")
		s.expect(0, []string{"Identical:"}, "verify", "products")
	}
	p.stop()
}
