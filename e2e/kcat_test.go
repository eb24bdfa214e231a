package e2e

import (
	"os/exec"
	"strings"
	"testing"
)

// kcat is somebody else's consumer, librdkafka's: it sees the committed records, and where it was built with Avro it decodes them through the registry.
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
	args := []string{"-b", s.brokers[0], "-t", "store.products", "-C", "-e", "-q", "-X", "isolation.level=read_committed", "-f", "%k|%s\n"}
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
	if strings.Contains(strings.Join(args, " "), "avro") && (!strings.Contains(string(out), `{"id": `) || !strings.Contains(string(out), `"retail_price"`)) {
		t.Errorf("kcat's keys and values:\n%s", tail(string(out), 3))
	}
}
