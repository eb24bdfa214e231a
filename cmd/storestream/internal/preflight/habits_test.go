package preflight

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/storestream/storestream/cmd/storestream/internal/stage"
	"github.com/storestream/storestream/internal/standins/storefake"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// habit is what a service does beside the document, and what check should say of it.
type habit struct {
	size storefake.Size
	// edit changes an answer. path is the last part of the request's path. A status other than 0 refuses it.
	edit func(path string, q url.Values, body []byte) (status int, edited []byte)
	// warns are words of the warnings about users. Nil: there are none.
	warns []string
	// fails: the finding about users is a failure.
	fails bool
}

// replaced edits every answer of the data endpoints by pairs of an expression and its replacement.
func replaced(pairs ...string) func(string, url.Values, []byte) (int, []byte) {
	return func(path string, _ url.Values, body []byte) (int, []byte) {
		for i := 0; i < len(pairs) && path != "store-api-keys"; i += 2 {
			body = regexp.MustCompile(pairs[i]).ReplaceAll(body, []byte(pairs[i+1]))
		}
		return 0, body
	}
}

// refusing refuses requests with a status.
func refusing(status int, which func(q url.Values) bool) func(string, url.Values, []byte) (int, []byte) {
	return func(path string, q url.Values, body []byte) (int, []byte) {
		if path != "store-api-keys" && which(q) {
			return status, nil
		}
		return 0, body
	}
}

// dated reports whether one of the dates of q is such.
func dated(q url.Values, is func(date string) bool) bool {
	for _, name := range []string{"updated_from", "updated_to", "created_from", "created_to"} {
		if q.Has(name) && is(q.Get(name)) {
			return true
		}
	}
	return false
}

var habits = map[string]habit{
	"A: counts as strings":             {edit: replaced(`"(count|page|page_size)":\s*(\d+)`, `"$1":"$2"`)},
	"A: counts as 1e0":                 {edit: replaced(`"(count|page|page_size)":\s*(\d+)`, `"$1":${2}e0`)},
	"A: data is null on an empty page": {edit: replaced(`"data":\s*\[\s*\]`, `"data":null`)},
	"A: no data on an empty page":      {edit: replaced(`"data":\s*\[\s*\],?`, ``)},
	"A: has_more as a string":          {edit: replaced(`"has_more":\s*(true|false)`, `"has_more":"$1"`)},
	"A: has_more as a number": {edit: replaced(`"has_more":\s*true`, `"has_more":1`,
		`"has_more":\s*false`, `"has_more":0`)},
	"A: other case of keys": {edit: replaced(`"data":`, `"Data":`, `"has_more":`, `"HasMore":`, `"meta":`,
		`"Meta":`)},
	"A: a byte order mark": {edit: func(_ string, _ url.Values, body []byte) (int, []byte) {
		return 0, append([]byte("\xef\xbb\xbf"), body...)
	}},
	"B: one row makes its page a 500": {warns: []string{"settling is delayed", "500"},
		edit: func(path string, _ url.Values, body []byte) (int, []byte) {
			if path == "store-users" && regexp.MustCompile(`"id":\s*7,`).Match(body) {
				return http.StatusInternalServerError, nil
			}
			return 0, body
		}},
	"B: one day, before many others": {warns: []string{"settling is delayed", "500"},
		size: storefake.Size{Users: 30_000}, edit: func(path string, _ url.Values, body []byte) (int, []byte) {
			day := time.Now().UTC().AddDate(0, 0, -1000).Format(time.DateOnly)
			if path == "store-users" && bytes.Contains(body, []byte(day)) {
				return http.StatusInternalServerError, nil
			}
			return 0, body
		}},
	"C: 1,000 rows are too heavy": {edit: refusing(http.StatusGatewayTimeout, func(q url.Values) bool {
		return number(q, "page_size") > 100
	})},
	"D: times without seconds": {edit: replaced(`T(\d\d:\d\d):\d\d(\.\d+)?Z`, `T${1}Z`)},
	"D: NaN for null":          {edit: replaced(`"(\w+_at)":\s*null`, `"$1":NaN`)},
	"I: one resource is refused": {warns: []string{"403", "/store-users"}, fails: true,
		edit: func(path string, _ url.Values, body []byte) (int, []byte) {
			if path == "store-users" {
				return http.StatusForbidden, nil
			}
			return 0, body
		}},
	"B: 9999 is a 500": {size: storefake.Size{Products: 10}, edit: refusing(500, func(q url.Values) bool {
		return dated(q, func(date string) bool { return date > "2100" })
	})},
	"B: dates after tomorrow are refused": {edit: refusing(400, func(q url.Values) bool {
		tomorrow := time.Now().UTC().Add(24 * time.Hour).Format(time.DateOnly)
		return dated(q, func(date string) bool { return date > tomorrow })
	})},
}

func init() {
	for _, status := range []int{400, 403, 406, 422} {
		habits["B: dates before 2000 are refused with "+strconv.Itoa(status)] = habit{
			edit: refusing(status, func(q url.Values) bool {
				return dated(q, func(date string) bool { return date < "2000" })
			})}
	}
	for _, status := range []int{422, 403, 500} {
		habits["B: pages after 10,000 rows are refused with "+strconv.Itoa(status)] = habit{
			size: storefake.Size{Users: 18_000, Days: 4}, edit: refusing(status, func(q url.Values) bool {
				return (number(q, "page")+1)*number(q, "page_size") > 10_000
			})}
	}
}

// check says of each habit what run makes of it.
func TestCheckPassesWhereRunWorks(t *testing.T) {
	for name, h := range habits {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := stage.New(t)
			fake := s.Serve(func(c *storefake.Config) {
				if h.size != (storefake.Size{}) {
					c.Size = h.size
				}
			})
			front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				got := httptest.NewRecorder()
				fake.ServeHTTP(got, r)
				status, body := h.edit(r.URL.Path[strings.LastIndex(r.URL.Path, "/")+1:], r.URL.Query(),
					bytes.Clone(got.Body.Bytes()))
				if status != 0 {
					w.WriteHeader(status)
					return
				}
				w.Header().Set("Date", got.Header().Get("Date"))
				w.WriteHeader(got.Code)
				_, _ = w.Write(body)
			}))
			t.Cleanup(front.Close)
			found := try(t, s, "store.base_url="+front.URL+"/v1", "store.request_timeout=1m")
			for _, f := range found {
				switch bad := f.Level == Failure || f.Level == Warning; {
				case !bad:
				case f.About != "users" || f.Part != "service" || h.warns == nil || f.Level == Failure && !h.fails:
					t.Errorf("%+v", f)
				}
			}
			text := complaints(found, "service", "users")
			for _, word := range h.warns {
				if !strings.Contains(text, word) {
					t.Errorf("a complaint about users: %q, expected one with %q", text, word)
				}
			}
		})
	}
}

// A statement that one row makes fail costs that row.
func TestCheckCountsTheRowThatMakesAStatementFail(t *testing.T) {
	s := withDatabase(t, nil)
	s.exec(t, "ALTER TABLE orders RENAME TO orders_all; CREATE VIEW orders AS SELECT id, user_id, status, "+
		"total_amount + 0 / (id - 5) AS total_amount, created_at, updated_at FROM orders_all; "+
		"GRANT SELECT ON orders TO "+storefake.ReaderRole)
	says(t, passing(t, s.Stage), Warning, "database", "orders", "1 row cannot be published; the first: row 5")
}

// Aurora has the functions, and they raise.
func TestCheckPassesOnAServerWithoutWAL(t *testing.T) {
	s := withDatabase(t, nil)
	s.exec(t, `SET allow_system_table_mods = on; CREATE OR REPLACE FUNCTION pg_catalog.pg_walfile_name(pg_lsn)
		RETURNS text LANGUAGE plpgsql STRICT AS $$BEGIN
		RAISE EXCEPTION 'not supported' USING ERRCODE = '0A000'; END$$`)
	says(t, passing(t, s.Stage), OK, "database", "orders", "can be read")
}

// A registry that writes schemas in its own form does not find ours by its text.
func TestCheckPassesWithARegistryThatDoesNotFindASchemaByItsText(t *testing.T) {
	s := withService(t, nil)
	s.Publish("orders", nil, nil, nil)
	s.Registry.Fake.Intercept(func(w http.ResponseWriter, r *http.Request) bool {
		subject, lookup := strings.CutPrefix(r.URL.Path, "/subjects/")
		if r.Method != http.MethodPost || !lookup || !s.Registry.Fake.SubjectExists(subject) {
			return false
		}
		w.Header().Set("Content-Type", "application/vnd.schemaregistry.v1+json")
		w.WriteHeader(http.StatusNotFound)
		_, _ = w.Write([]byte(`{"error_code":40403,"message":"Schema not found"}`))
		return true
	})
	says(t, passing(t, s), OK, "kafka", "store.orders", "can be taken over")
}

// Some managed brokers leave settings out.
func TestCheckPassesWithABrokerThatLeavesSettingsOut(t *testing.T) {
	s := withService(t, nil)
	s.Publish("orders", nil, nil, nil)
	s.Broker.ControlKey(int16(kmsg.DescribeConfigs), func(req kmsg.Request) (kmsg.Response, error, bool) {
		s.Broker.KeepControl()
		resp := req.ResponseKind().(*kmsg.DescribeConfigsResponse)
		for _, asked := range req.(*kmsg.DescribeConfigsRequest).Resources {
			one := kmsg.NewDescribeConfigsResponseResource()
			one.ResourceType, one.ResourceName = asked.ResourceType, asked.ResourceName
			size := kmsg.NewDescribeConfigsResponseResourceConfig()
			size.Name, size.Value = "max.message.bytes", kmsg.StringPtr("1048588")
			one.Configs = append(one.Configs, size)
			resp.Resources = append(resp.Resources, one)
		}
		return resp, nil, true
	})
	found := passing(t, s)
	if !slices.ContainsFunc(found, func(f Finding) bool { return f.About == "store.orders" }) {
		t.Errorf("%+v", found)
	}
}
