package registry

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/sr"
	"github.com/twmb/franz-go/pkg/sr/srfake"
)

const notFound = `{"error_code":40403,"message":"Schema not found"}`

// deny has the registry deny that it has a schema, whatever it has.
func deny(fake *srfake.Registry, subject string) {
	refuse(fake, http.MethodPost, "/subjects/"+subject, 404, notFound)
}

// rewritten is a schema in another form: spaces, the order of attributes, and if full is set full names, and
// types in objects.
func rewritten(t *testing.T, text string, full bool) string {
	t.Helper()
	var node map[string]any
	if err := json.Unmarshal([]byte(text), &node); err != nil {
		t.Fatal(err)
	}
	if full {
		node["name"] = node["namespace"].(string) + "." + node["name"].(string)
		delete(node, "namespace")
		for _, field := range node["fields"].([]any) {
			if f := field.(map[string]any); f["name"] == "id" {
				f["type"] = map[string]any{"type": "long"}
			}
		}
	}
	again, err := json.MarshalIndent(node, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	return string(again)
}

func seed(fake *srfake.Registry, subject string, version, id int, text string) {
	fake.SeedSchema(subject, version, id, sr.Schema{Schema: text, Type: sr.TypeAvro})
}

// Karapace, and registries with a copied subject, answer 40403 for schemas that they have. Apicurio answered
// 40401.
func TestASchemaWhoseLookUpIsDeniedIsFoundAmongTheVersions(t *testing.T) {
	r := load(t).Get("orders")
	older := strings.Replace(r.ValueSchema(), `"name":"status"`, `"name":"state"`, 1)
	marked := strings.Replace(r.ValueSchema(), `"name":"status"`, `"name":"status","pii":"no"`, 1)
	for name, c := range map[string]struct {
		values    []string // versions of the subject of values, with the ids 21, 22 and so on
		value     int
		registers bool // with auto_register there is one version more
	}{
		"in another form":              {[]string{older, rewritten(t, r.ValueSchema(), false)}, 22, false},
		"equal, behind a similar one":  {[]string{marked, rewritten(t, r.ValueSchema(), false)}, 22, false},
		"with full names":              {[]string{older, rewritten(t, r.ValueSchema(), true)}, 22, true},
		"with other marks of the user": {[]string{older, marked}, 22, true},
	} {
		for _, auto := range []bool{false, true} {
			fake, g := registryFor(t)
			deny(fake, "store.orders-key")
			refuse(fake, http.MethodPost, "/subjects/store.orders-value", 404,
				`{"error_code":40401,"message":"No artifact with ID 'store.orders-value'"}`)
			seed(fake, "store.orders-key", 1, 7, rewritten(t, r.KeySchema(), true))
			for i, text := range c.values {
				seed(fake, "store.orders-value", i+1, 21+i, text)
			}
			key, value, err := g.Ensure(t.Context(), "store.orders", r, auto, false)
			_, added := fake.GetSchema("store.orders-value", len(c.values)+1)
			registers := auto && c.registers
			if err != nil || key != 7 || (value == c.value) == registers || added != registers {
				t.Errorf("%s, auto_register %v: ids %d and %d, registered %v: %v", name, auto, key, value, added, err)
			}
			if _, twice := fake.GetSchema("store.orders-key", 2); twice {
				t.Errorf("%s: a second key schema was registered", name)
			}
		}
	}
}

func TestAVersionThatReadsTheBytesOtherwiseIsAnotherSchema(t *testing.T) {
	r := load(t).Get("orders")
	for name, other := range map[string]string{
		"another scale": strings.Replace(r.ValueSchema(), `"scale":18`, `"scale":4`, 1),
		"another name":  strings.Replace(r.ValueSchema(), `"name":"Order"`, `"name":"Other"`, 1),
		"no record":     `"string"`,
	} {
		fake, g := registryFor(t)
		deny(fake, "store.orders-value")
		seed(fake, "store.orders-key", 1, 7, r.KeySchema())
		seed(fake, "store.orders-value", 1, 8, other)
		if other == r.ValueSchema() {
			t.Fatalf("%s: the schema has nothing of the kind", name)
		}
		_, _, err := g.Ensure(t.Context(), "store.orders", r, false, false)
		faultIs(t, err, NotRegistered, "store.orders-value", `answered 404 (code 40403, "Schema not found")`,
			"Each of its 1 versions is another schema: version 1, id 8")
	}
}

// One answer does not make a key another one, and never a reason to delete something.
func TestAKeyIsCalledAnotherOnlyByItsVersions(t *testing.T) {
	r := load(t).Get("orders")
	other := strings.Replace(r.KeySchema(), `"long"`, `"string"`, 1)
	fake, g := registryFor(t)
	deny(fake, "store.orders-key")
	seed(fake, "store.orders-key", 1, 7, other)
	_, _, err := g.Ensure(t.Context(), "store.orders", r, true, false)
	faultIs(t, err, KeyChanged, "POST /subjects/store.orders-key answered 404 (code 40403",
		"version 1, id 7, is {")
	if strings.Contains(err.Error(), "delete") {
		t.Error(err)
	}

	fake, g = registryFor(t)
	deny(fake, "store.orders-key")
	refuse(fake, http.MethodGet, "/subjects/store.orders-key/versions", 503, "")
	_, _, err = g.Ensure(t.Context(), "store.orders", r, true, false)
	faultIs(t, err, Unreachable, "GET /subjects/store.orders-key/versions answered 503")

	fake, g = registryFor(t) // some say 40403 for a subject that they do not have
	deny(fake, "store.orders-key")
	if key, _, err := g.Ensure(t.Context(), "store.orders", r, true, false); err != nil || key == 0 {
		t.Errorf("id %d: %v", key, err)
	}
}

// A registry may know only one of the media types.
func TestARegistryThatAnswersPlainJSONAloneIsUnderstood(t *testing.T) {
	fake := srfake.New()
	defer fake.Close()
	door := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if !strings.Contains(req.Header.Get("Accept"), "application/json") {
			w.WriteHeader(http.StatusNotAcceptable)
			return
		}
		fake.Handler().ServeHTTP(w, req)
	}))
	defer door.Close()
	for _, url := range []string{door.URL, door.URL + "/"} {
		_, _, err := client(t, url).Ensure(t.Context(), "store.orders", load(t).Get("orders"), true, false)
		if err != nil {
			t.Errorf("%s: %v", url, err)
		}
	}
}

// What a registry does not tell refuses nothing: neither its mode nor whether schemas are compatible.
func TestARegistryWithoutModesOrCompatibilityMayTakeSchemas(t *testing.T) {
	r := load(t).Get("orders")
	older := strings.Replace(r.ValueSchema(), `"name":"status"`, `"name":"state"`, 1)
	for status, body := range map[int]string{403: `{"error_code":40301,"message":"User is denied"}`,
		404: `{"error_code":404,"message":"HTTP 404 Not Found"}`, 405: "", 501: "", 500: "<html>no</html>"} {
		fake, g := registryFor(t)
		seed(fake, "store.orders-value", 1, 8, older)
		refuse(fake, http.MethodGet, "/mode", status, body)
		if status < 500 && status != 403 || status == 501 {
			refuse(fake, http.MethodPost, "/compatibility/subjects/store.orders-value/versions/latest", status, body)
		}
		if _, _, err := g.Ensure(t.Context(), "store.orders", r, true, true); err != nil {
			t.Errorf("%d: %v", status, err)
		}
	}
}

// The registry's words come first, with the request. What is guessed comes last.
func TestAnErrorOfARegistryBeginsWithWhatItAnswered(t *testing.T) {
	r := load(t).Get("orders")
	for _, c := range []struct {
		status int
		body   string
		want   Fault
		text   string
	}{
		{401, "", Unauthorized,
			`POST /subjects/store.orders-key answered 401 (code 0, "no response"): it refuses`},
		{401, `{"message":"Bearer expired"}`, Unauthorized, `answered 401 (code 0, "Bearer expired"): it refuses`},
		{407, "", Unauthorized, "answered 407"},
		{406, "", NotARegistry,
			`answered 406 (code 0, "no response"): it does not answer as a schema registry`},
		{415, `{"error_code":415,"message":"HTTP 415 Unsupported Media Type"}`, NotARegistry,
			"answered 415 (code 415, "},
		{404, `{"error_code":404,"message":"No artifact 'store.orders-key'"}`, NotARegistry,
			"answered 404 (code 404, \"No artifact 'store.orders-key'\")"},
		{422, `{"message":"Invalid schema"}`, Refused,
			`answered 422 (code 0, "Invalid schema"): it refuses the schema`},
		{501, "", NotARegistry, "answered 501"},
		{502, "<html>Bad Gateway</html>", Unreachable, `answered 502 (code 0, ""): it cannot serve this now`},
		{400, "<html>Bad Request</html>", NotARegistry, "answered 400"},
		{400, `{"error_code":40001,"message":"odd"}`, Refused, "answered 400 (code 40001"},
	} {
		_, _, err := answers(t, c.status, "application/json", c.body).Ensure(t.Context(), "store.orders", r, false,
			false)
		faultIs(t, err, c.want, c.text)
		if strings.Contains(err.Error(), "<html>") {
			t.Errorf("a page is repeated: %v", err)
		}
	}
}
