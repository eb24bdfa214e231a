package main

import (
	"io"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/storestream/storestream/cmd/storestream/internal/stage"
)

// The tests here are of flags, outputs and exit statuses. What an instance does is tested in its package and
// end to end.

var listens = regexp.MustCompile(`"addr": ?"([^"]+)"`)

// address waits until the status server listens.
func address(t *testing.T, out *call) string {
	t.Helper()
	stage.Eventually(t, "the status server listens", func() bool {
		return listens.MatchString(out.stderr.String())
	})
	return listens.FindStringSubmatch(out.stderr.String())[1]
}

func TestRunServesItsStatusAndExitsWithZeroOnASignal(t *testing.T) {
	s := newScene(t)
	s.Serve(nil)
	s.Settings = append(s.Settings, "store.max_requests_per_second=1000")
	out, interrupt := s.start("run")
	url := "http://" + address(t, out)
	stage.Eventually(t, "ready", func() bool {
		resp, err := http.Get(url + "/readyz")
		if err != nil {
			return false
		}
		defer resp.Body.Close()
		return resp.StatusCode == http.StatusOK
	})
	resp, err := http.Get(url + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil || !strings.Contains(string(body), "go_goroutines") ||
		!strings.Contains(string(body), "process_") ||
		!strings.Contains(string(body), `storestream_owned{resource="orders"} 1`) {
		t.Errorf("/metrics: %v\n%s", err, body)
	}
	http.DefaultClient.CloseIdleConnections()
	if c := interrupt(); c.code != exitDone {
		t.Errorf("exit status %d:\n%s", c.code, out.stderr)
	}
	log := out.stderr.String()
	if !strings.Contains(log, `"msg":"starting"`) || !strings.Contains(log, `"msg":"stopped"`) {
		t.Errorf("the log does not say when it started and stopped:\n%s", log)
	}
}

func TestRunExitsWithOneForWhatWaitingCannotMend(t *testing.T) {
	s := newScene(t)
	cl, err := kgo.NewClient(kgo.SeedBrokers(s.Broker.Brokers()...))
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	settings := map[string]*string{"cleanup.policy": kadm.StringPtr("delete")}
	if _, err := kadm.NewClient(cl).CreateTopic(t.Context(), 2, 1, settings, "store.watermarks"); err != nil {
		t.Fatal(err)
	}
	s.do("run").expect(t, exitFailed, "cleanup.policy is delete")
	s.do("run", "--once").expect(t, exitFailed, "cleanup.policy is delete")
}

func TestNeitherSecretsNorTheDSNAreLogged(t *testing.T) {
	s := newScene(t)
	s.Serve(nil)
	s.Settings = append(s.Settings, "log.level=debug", "store.api_key=geheim1", "registry.username=u",
		"registry.password=geheim2", "postgres.dsn=postgres://student_ro:geheim3@127.0.0.1:1/x")
	out, interrupt := s.start("run")
	address(t, out)
	stage.Eventually(t, "database and service are asked", func() bool {
		log := out.stderr.String()
		return strings.Contains(log, `"resource":"orders"`) && strings.Contains(log, `"resource":"users"`)
	})
	interrupt()
	if strings.Contains(out.stderr.String(), "geheim") {
		t.Errorf("a secret is logged:\n%s", out.stderr)
	}
}

func TestOnceEndsWithALineForEachEnabledResource(t *testing.T) {
	s := newScene(t)
	s.Serve(nil)
	s.Settings = append(s.Settings, "store.max_requests_per_second=1000", "resources.products.enabled=false")
	c := s.do("run", "--once").expect(t, exitDone, "RESOURCE", "AS OF", "order_items", "users               20")
	if strings.Contains(c.stdout.String(), "products") {
		t.Errorf("products are not enabled:\n%s", c.stdout)
	}
}

func TestOnceNamesTheResourceThatMakesNoProgressAndWhatItFailsWith(t *testing.T) {
	s := newScene(t)
	s.Serve(nil)
	s.Settings = append(s.Settings, "store.api_key=wrong")
	s.do("run", "--once", "--patience", "2s").expect(t, exitFailed, "no progress for 2s", "users: ",
		"store.api_key")
}

func TestABrokerThatIsNotThereIsNamed(t *testing.T) {
	broker := stage.Nowhere(t)
	c := do(t, "run", "--once", "--patience", "500ms", "--set", "kafka.brokers="+broker, "--set",
		"http.listen=127.0.0.1:0").
		expect(t, exitFailed, "no progress for 500ms", broker, `"msg":"no storestream.yaml here, `)
	if !strings.HasPrefix(c.stderr.String(), "{") { // whoever collects the log expects JSON
		t.Errorf("it begins with a line that is none of the log's:\n%s", c.stderr)
	}
}

func TestThePortOfTheStatusServerMayBeTakenOnlyWithOnce(t *testing.T) {
	s := newScene(t)
	s.Settings = append(s.Settings, "store.base_url=http://"+stage.Nowhere(t)+"/v1")
	out, _ := s.start("run")
	taken := address(t, out)
	s.Settings = append(s.Settings, "http.listen="+taken)
	s.do("run").expect(t, exitFailed, taken, "something listens there already", "--set http.listen=")
	s.do("run", "--once", "--patience", "1s").expect(t, exitFailed, "no status page", "no progress")
}

func TestAStatusServerThatAnybodyCanReadIsAWarningAtStart(t *testing.T) {
	s := newScene(t)
	s.Settings = append(s.Settings, "store.base_url=http://"+stage.Nowhere(t)+"/v1", "http.listen=0.0.0.0:0")
	out, interrupt := s.start("run")
	address(t, out)
	interrupt()
	if !strings.Contains(out.stderr.String(), "set http.token, http.tls, or a loopback ") {
		t.Errorf("the log does not warn:\n%s", out.stderr)
	}
}
