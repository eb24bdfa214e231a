package main

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/storestream/storestream/cmd/storestream/internal/stage"
	"github.com/storestream/storestream/internal/rotation"
	"github.com/storestream/storestream/schemas"
)

// repeats answers requests with what they were sent, as a proxy does that somebody debugs.
func repeats(t *testing.T, answer func(w http.ResponseWriter, r *http.Request)) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(answer))
	t.Cleanup(server.Close)
	return server.URL
}

func refuse(w http.ResponseWriter, status int, said map[string]any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(said)
}

// repeatingRegistry refuses every request, with the login in its message: as it is, decoded, and in a URL.
func repeatingRegistry(w http.ResponseWriter, r *http.Request) {
	login := r.Header.Get("Authorization")
	plain, _ := base64.StdEncoding.DecodeString(strings.TrimPrefix(login, "Basic "))
	refuse(w, http.StatusUnprocessableEntity, map[string]any{"error_code": 42201,
		"message": fmt.Sprintf("repeated: %s, %s, %q", login, plain, plain)})
}

// refusingDatabase asks for the password in clear, and refuses it with what it says to it.
func refusingDatabase(t *testing.T, says func(password string) string) (dsn func(password string) string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go refuseLogin(c, says)
		}
	}()
	return func(password string) string {
		return fmt.Sprintf("postgres://ru:%s@%s/postgres?sslmode=disable", password, l.Addr())
	}
}

func refuseLogin(c net.Conn, says func(password string) string) {
	defer c.Close()
	b := pgproto3.NewBackend(c, c)
	if _, err := b.ReceiveStartupMessage(); err != nil {
		return
	}
	b.Send(&pgproto3.AuthenticationCleartextPassword{})
	if b.Flush() != nil || b.SetAuthType(pgproto3.AuthTypeCleartextPassword) != nil {
		return
	}
	m, err := b.Receive()
	if sent, ok := m.(*pgproto3.PasswordMessage); ok && err == nil {
		b.Send(&pgproto3.ErrorResponse{Severity: "FATAL", SeverityUnlocalized: "FATAL", Code: "28P01",
			Message: says(sent.Password)})
		_ = b.Flush()
	}
}

// showsNo fails the test where text, which repeats what was sent, shows it.
func showsNo(t *testing.T, secret, what, text string) {
	t.Helper()
	if !strings.Contains(text, "repeated") || !strings.Contains(text, rotation.Mask) {
		t.Errorf("%s: what the other side repeats is not in it at all:\n%s", what, text)
	}
	quoted, _ := json.Marshal(secret)
	for _, form := range []string{secret, strings.Trim(string(quoted), `"`),
		base64.RawStdEncoding.EncodeToString([]byte("ru:" + secret))} {
		if strings.Contains(text, form) {
			t.Errorf("%s shows the secret as %q:\n%s", what, form, text)
		}
	}
}

// expectHidden looks for the secret in all that the program prints and shows to readers.
func expectHidden(t *testing.T, s *scene, secret string, commands ...string) {
	t.Helper()
	everywhere(t, s, "repeated", func(what, text string) { showsNo(t, secret, what, text) }, commands...)
}

// everywhere runs the program, and has all looked at that it prints and shows to readers, once the other
// side's word is in it.
func everywhere(t *testing.T, s *scene, word string, look func(what, text string), commands ...string) {
	t.Helper()
	for _, form := range []string{"console", "json"} {
		// With the same topics the second instance would show at once what the first one wrote of the fault.
		s.Settings = append(s.Settings, "log.format="+form, "log.level=debug", "kafka.topic_prefix="+form+".")
		out, interrupt := s.start("run")
		url := "http://" + address(t, out)
		for _, path := range []string{"/readyz", "/status.json"} {
			var body []byte
			stage.Eventually(t, path+" says "+word, func() bool {
				resp, err := http.Get(url + path)
				if err != nil {
					t.Fatal(err)
				}
				body, err = io.ReadAll(resp.Body)
				_ = resp.Body.Close()
				return err == nil && strings.Contains(string(body), word)
			})
			look(path, string(body))
		}
		http.DefaultClient.CloseIdleConnections()
		interrupt()
		look("the log, log.format "+form, out.stdout.String()+out.stderr.String())
	}
	for _, command := range commands {
		c := s.do(strings.Fields(command)...)
		look(command, c.stdout.String()+c.stderr.String())
	}
}

func TestASecretThatTheRegistryRepeatsIsHidden(t *testing.T) {
	t.Parallel()
	const secret = `reg"pw\plant<é>0123`
	s := newScene(t)
	s.Serve(nil)
	s.Settings = append(s.Settings, "registry.url="+repeats(t, repeatingRegistry), "registry.username=ru",
		"registry.password="+secret)
	expectHidden(t, s, secret, "check", "schema register")
}

func TestAPasswordThatTheDatabaseRepeatsIsHidden(t *testing.T) {
	t.Parallel()
	s, dsn := newScene(t), refusingDatabase(t, func(password string) string {
		return "repeated: password authentication failed, you sent " + password
	})
	s.Serve(nil)
	s.Settings = append(s.Settings, "postgres.dsn="+dsn("pg%2Fplant%3C0123"))
	expectHidden(t, s, "pg/plant<0123", "check")
}

func TestAKeyThatTheServiceRepeatsIsHidden(t *testing.T) {
	const secret = "keyplant_0123"
	for name, setting := range map[string]string{"configured": "store.api_key=" + secret,
		"fetched": "store.api_key="} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newScene(t)
			url := repeats(t, func(w http.ResponseWriter, r *http.Request) {
				if strings.HasSuffix(r.URL.Path, "/store-api-keys") {
					refuse(w, http.StatusOK, map[string]any{"api_key": secret})
					return
				}
				refuse(w, http.StatusBadRequest, map[string]any{"error": "repeated_" + sent(r, secret)})
			})
			s.Settings = append(s.Settings, "store.base_url="+url+"/v1", setting)
			expectHidden(t, s, secret, "check")
		})
	}
}

// sent is the secret, where a header of the request has it.
func sent(r *http.Request, secret string) string {
	for _, values := range r.Header {
		if strings.Contains(strings.Join(values, " "), secret) {
			return secret
		}
	}
	return "nothing"
}

// What a row holds is not what somebody repeats, though it reads the same. What the service says of the
// request is: `row` shows both.
func TestAValueOfARowThatReadsLikeASecretIsShown(t *testing.T) {
	const id, city = 47114711, "saint_blaise"
	s := newScene(t)
	user, reject := schemas.NewRowParser(s.Schemas.Get("users")).Parse(fmt.Appendf(nil, `{"id":%d,"city":%q,`+
		`"created_at":"2026-11-20T09:30:00Z","updated_at":"2026-11-20T09:30:00Z"}`, id, city))
	if reject != nil {
		t.Fatal(reject.Err)
	}
	s.Publish("users", []schemas.Record{user}, nil, nil)
	url := repeats(t, func(w http.ResponseWriter, r *http.Request) {
		refuse(w, http.StatusBadRequest, map[string]any{"error": "repeated_" + sent(r, city)})
	})
	s.Settings = append(s.Settings, "registry.username=ru", fmt.Sprintf("registry.password=%d", id),
		"store.base_url="+url+"/v1", "store.api_key="+city)
	quoted := fmt.Sprintf("%q", city)

	s.do("tail", "users", "-n", "1").expect(t, exitDone, fmt.Sprintf(`users/%d  {"id":%d,`, id, id), quoted)
	tailed := s.do("tail", "users", "-n", "1", "-o", "json").expect(t, exitDone, quoted)
	looked := s.do("row", "users", fmt.Sprint(id), "-o", "json").expect(t, exitFailed, quoted)
	shown := s.do("row", "users", fmt.Sprint(id)).expect(t, exitFailed, fmt.Sprintf("users %d\n", id), quoted)
	for _, c := range []*call{tailed, looked} {
		var got struct {
			ID    int64
			Error string
		}
		if err := json.Unmarshal([]byte(c.stdout.String()), &got); err != nil || got.ID != id {
			t.Errorf("%q: %v, id %d:\n%s", c.args, err, got.ID, c.stdout)
		}
		if c == looked {
			showsNo(t, city, "row -o json, of what the service said", got.Error)
		}
	}
	showsNo(t, city, "row's error", looked.stderr.String())
	showsNo(t, city, "row's error", shown.stderr.String())
}
