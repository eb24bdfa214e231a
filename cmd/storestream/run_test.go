package main

import (
	"bytes"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/storestream/storestream/cmd/storestream/internal/stage"
	"github.com/storestream/storestream/internal/standins/servers"
	"github.com/storestream/storestream/internal/standins/storefake"
	"github.com/storestream/storestream/internal/watermark"
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
	// It is ready also where it owns nothing, as before its first takeover.
	stage.Eventually(t, "it polls orders, by /metrics", func() bool {
		resp, err := http.Get(url + "/metrics")
		if err != nil {
			return false
		}
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		return err == nil && strings.Contains(string(body), "go_goroutines") &&
			strings.Contains(string(body), "process_") &&
			strings.Contains(string(body), `storestream_owned{resource="orders"} 1`)
	})
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

func TestNeitherSecretsNorTheDSNAreShown(t *testing.T) {
	for form, dsn := range map[string]string{
		"URL":      "postgres://student_ro:a%2Fb%23c%3Fgeheim3@127.0.0.1:1/x",
		"keywords": "host=127.0.0.1 port=1 user=student_ro password=a/b#c?geheim3@x dbname=x",
	} {
		t.Run(form, func(t *testing.T) {
			s := newScene(t)
			s.Serve(nil)
			s.Settings = append(s.Settings, "log.level=debug", "store.api_key=geheim1", "registry.username=u",
				"registry.password=a/b?c#geheim2", "postgres.dsn="+dsn)
			out, interrupt := s.start("run")
			url := "http://" + address(t, out)
			stage.Eventually(t, "database and service are asked", func() bool {
				log := out.stderr.String()
				return strings.Contains(log, `"resource":"orders"`) && strings.Contains(log, `"resource":"users"`)
			})
			shown := map[string]string{"/status.json": ""}
			stage.Eventually(t, "/status.json says that the database does not answer", func() bool {
				resp, err := http.Get(url + "/status.json")
				if err != nil {
					t.Fatal(err)
				}
				defer resp.Body.Close()
				body, err := io.ReadAll(resp.Body)
				shown["/status.json"] = string(body)
				return err == nil && strings.Contains(string(body), "127.0.0.1:1")
			})
			http.DefaultClient.CloseIdleConnections()
			interrupt()
			shown["the log"] = out.stderr.String()
			for _, command := range []string{"check", "config show"} {
				c := s.do(strings.Fields(command)...)
				shown[command] = c.stdout.String() + c.stderr.String()
			}
			for what, text := range shown {
				if text == "" || strings.Contains(text, "geheim") {
					t.Errorf("%s shows a secret, or nothing:\n%s", what, text)
				}
			}
		})
	}
}

// The log is broken off, as in `run --once 2>&1 | head`. The signal that this means would end a program that
// writes to a pipe.
func TestOncePublishesAllThoughNobodyReadsTheLog(t *testing.T) {
	s := newScene(t)
	s.Serve(nil)
	s.Settings = append(s.Settings, "store.max_requests_per_second=1000", "resources.products.enabled=false")
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer read.Close()
	cmd := exec.CommandContext(t.Context(), os.Args[0], "run", "--once")
	cmd.Env = append(s.call().environ, asProgram+"=yes", "GORACE=atexit_sleep_ms=0")
	cmd.Stderr = write
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	write.Close()
	if _, err := read.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	read.Close()
	if err := cmd.Wait(); err != nil {
		t.Errorf("%v, expected exit status 0", err)
	}
	s.do("verify").expect(t, exitDone, "of 4 resources")
}

// A service in Python writes NaN for the null of a data frame, in fields of every type. Each row is
// published, and the log names each field once.
func TestNaNForNullIsPublishedAsNull(t *testing.T) {
	s := newScene(t)
	fake := s.Serve(nil)
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer := httptest.NewRecorder()
		fake.ServeHTTP(answer, r)
		maps.Copy(w.Header(), answer.Header())
		w.Header().Del("Content-Length")
		w.WriteHeader(answer.Code)
		_, _ = w.Write(bytes.ReplaceAll(answer.Body.Bytes(), []byte("_at\":null"), []byte("_at\":NaN")))
	}))
	t.Cleanup(service.Close)
	s.Settings = append(s.Settings, "store.max_requests_per_second=1000", "store.base_url="+service.URL+"/v1")
	log := s.do("run", "--once").expect(t, exitDone).stderr.String()
	for _, field := range []string{"shipped_at", "delivered_at", "returned_at"} {
		if n := strings.Count(log, `are read as null","resource":"shipments","field":"`+field+`"`); n != 1 {
			t.Errorf("the log names %s %d times:\n%s", field, n, log)
		}
	}
	s.do("verify").expect(t, exitDone, "Identical: ", "of 5 resources")
}

// Five rows of 5,020 are few. A sixth is one too many, although it is published that all others are there.
func TestOnceIsNotUpToDateIfTooManyRowsCannotBePublished(t *testing.T) {
	s, fake := loaded(t)
	ids := slices.Sorted(maps.Keys(fake.Rows(storefake.Users)))
	s.Publish("users", nil, nil, func(w *watermark.Watermark) { w.Rows += 5000 })
	spoil := func(ids ...int64) {
		t.Helper()
		for _, id := range ids {
			if err := fake.Touch(t.Context(), storefake.Users, id); err != nil {
				t.Fatal(err)
			}
			fake.Garble(storefake.Users, id, storefake.BadTimestamp)
		}
	}
	spoil(ids[:5]...)
	s.do("run", "--once").expect(t, exitDone)
	s.do("watermark", "list").expect(t, exitLate, "users: 5 rows cannot be published, its updated_at",
		"\nusers: no instance polls it")
	spoil(ids[5])
	says := "users: the topic lacks 6 rows because of dead letters: more than 5, or more than one in a " +
		"thousand"
	c := s.do("run", "--once").expect(t, exitLate, "storestream: not up to date: "+says,
		"`storestream watermark list` names the rows by field and reason")
	if strings.Contains(c.stderr.String(), "orders: the topic lacks") {
		t.Errorf("no other resource has dead letters:\n%s", c.stderr)
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
		expect(t, exitFailed, "no progress for 500ms", broker, `"config":""`)
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
	s.do("run").expect(t, exitFailed, taken, "address already in use", "--set http.listen=")
	s.do("run", "--once", "--patience", "1s").expect(t, exitFailed, "no status page", "no progress")
}

func TestWhatStrangersCanReadIsAWarningAtStart(t *testing.T) {
	s := newScene(t)
	elsewhere := servers.ElsewhereForTest(t)
	s.Settings = append(s.Settings, "store.base_url=http://"+elsewhere+":1/v1", "security.allow_plaintext=store",
		"http.listen=0.0.0.0:0", "postgres.dsn=host="+elsewhere+" port=1 user=u password=p sslmode=require",
		"security.allow_unverified=postgres")
	out, interrupt := s.start("run")
	address(t, out)
	interrupt()
	for _, warning := range []string{"travel unencrypted beyond this machine: listen on 127.0.0.1",
		`"connection":"store","setting":"store.base_url","hosts":["` + elsewhere +
			`"],"risk":"a password or key would go unencrypted"`,
		`"connection":"postgres","setting":"postgres.dsn","hosts":["` + elsewhere +
			`"],"risk":"a password or key would go to any server that answers there"`} {
		if !strings.Contains(out.stderr.String(), warning) {
			t.Errorf("the log does not warn %s:\n%s", warning, out.stderr)
		}
	}
}
