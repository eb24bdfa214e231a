package client

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// An error says what the service says of it, in whatever form its stack writes that, and nothing of a row or
// a key that the message quotes.
func TestAnErrorHasTheServicesWordsWithoutPersonalData(t *testing.T) {
	for _, test := range []struct {
		body string
		want string
	}{
		{"", `answered 500 Internal Server Error`},
		{`{"error":"internal_error","message":"division by zero"}`,
			`answered 500 internal_error ("division by zero")`},
		{`{"timestamp":"2026-11-26T10:00:00Z","status":500,"error":"Bad Gateway"}`,
			`answered 500 Internal Server Error ("Bad Gateway")`},
		{`{"type":"about:blank","title":"Year out of range","status":500}`, `("Year out of range")`},
		{`{"statusCode":500,"code":"ORA-01555","message":"snapshot \"no 7\" too old"}`,
			`answered 500 ORA-01555 ("snapshot \"no 7\" too old")`},
		{`{"detail":[{"type":"date_parsing","loc":["query"],"msg":"Invalid date"}]}`,
			`answered 500 date_parsing ("Invalid date")`},
		{`{"errors":[{"status":"500","code":"20068","detail":"Page 11 is too high."}]}`,
			`answered 500 20068 ("Page 11 is too high.")`},
		{`{"error":{"code":500,"message":"Result window is too large: [10010]"}}`,
			`("Result window is too large: [10010]")`},
		{"upstream request timeout\n", `answered 500 Internal Server Error ("upstream request timeout")`},
		{"<html>upstream request timeout", `answered 500 Internal Server Error`},
		{"\ufeff" + `{"error":"e","message":"no database"}`, `answered 500 e ("no database")`},
		{`{"message":"dates up to 2026-11-26, not 9999-12-31"}`,
			`("dates up to 2026-11-26, not 9999-12-31")`},
		{`{"message":"created_* and updated_* cannot be combined"}`,
			`("created_* and updated_* cannot be combined")`},
		{`{"message":"result window is too large, from + size must be <= 10,000, updated_to=9999-12-31 isn't"}`,
			`("result window is too large, from + size must be <= 10,000, updated_to=9999-12-31 isn't")`},
		{`{"message":["page_size must not be greater than 100","'page' must be an integer"]}`,
			`("page_size must not be greater than 100")`},
		{`{"message":"planted must be updated by planted Planted of planted"}`,
			`("… must be updated by … of …")`},
		{`{"message":"value PLANTED or o'planted or müller is invalid"}`, `("value … or … or … is invalid")`},
		{`{"message":"user 030 123 456 or 030 - 123 - 456"}`, `("… or 030 - …")`},
		{`{"message":"cannot write Planted Person, planted@example.org"}`, `("cannot write …")`},
		{`{"message":"key (email)=(planted@example.org) already exists"}`, `("key (…) already exists")`},
		{`{"message":"row \u0027planted planted\u0027 (planted, planted) [planted, 1]"}`, `("row …]")`},
		{`{"message":"unclosed \"planted planted"}`, `("…")`},
		{`{"message":"<b>Planted</b> {planted planted} ` + "`planted planted`" + `"}`, `("<…`},
		{`{"message":"call 06012345678 or +49-555-1234 of 12 Planted Street"}`, `("… or … of 12 …")`},
		{`{"message":"first_name=planted was not written"}`, `("… was not written")`},
		{`{"error":"planted@example.org","message":"planted"}`, `answered 500 Internal Server Error`},
		{`{"error":"` + strings.Repeat("planted", 20) + `"}`, `answered 500 Internal Server Error`},
		{`{"data":[{"first_name":"planted","email":"planted@example.org"}]}`,
			`answered 500 Internal Server Error`},
		{`{"message":"` + strings.Repeat("too late ", 1000) + `"}`, `("too late too`},
	} {
		body, want := test.body, test.want
		c := ask(t, func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusInternalServerError)
			fmt.Fprint(w, body)
		})
		c.cfg.Attempts = 1
		e := c.Endpoint("/store-orders", uncounted, unwaited)
		_, err := e.Page(t.Context(), "updated_from=2026-11-20&page=7", 0)
		if err == nil || !strings.Contains(err.Error(), want) || len(err.Error()) > 500 ||
			!strings.HasPrefix(err.Error(), "/store-orders?updated_from=2026-11-20&page=7 answered 500 ") {
			t.Errorf("%s: %v, want %q", body, err, want)
		}
		for _, secret := range []string{
			"planted", "Planted", "PLANTED", "müller", "123", "Person", "Street", "12345678", "1234 ",
		} {
			if err != nil && strings.Contains(err.Error(), secret) {
				t.Errorf("%s: %v shows %q", body, err, secret)
			}
		}
	}
}

// The words of an error with status 200 are the service's as well. Those of a page are rows.
func TestAnErrorWithStatus200HasItsWordsAndAPageNone(t *testing.T) {
	for _, test := range []struct {
		body string
		want string
	}{
		{`{"error":"internal_error","message":"no database"}`,
			`answered 200 internal_error ("no database"): the answer says`},
		{`{"data":[{"id":1,"code":"planted","title":"planted planted"}],"meta":7}`,
			`answered 200 OK: the answer is no page`},
		{`{"error":"e","data":[{"id":1,"title":"planted planted"}],"meta":7}`,
			`answered 200 OK: the answer says`},
	} {
		body, want := test.body, test.want
		c := ask(t, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, body) })
		_, err := c.Endpoint("/store-orders", uncounted, unwaited).Page(t.Context(), "page=0", 0)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "planted") ||
			Refusal(err) != nil {
			t.Errorf("%s: %v, want %q", body, err, want)
		}
	}
}
