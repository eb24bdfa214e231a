package client

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/storestream/storestream/internal/rotation"
)

// A body is read as UTF-8, whatever character set the service names beside it. If it is in another, the error
// says so.
func TestABodyInAnotherCharacterSetIsTold(t *testing.T) {
	latin := strings.Replace(emptyPage, "[]", "[\"\xe9\"]", 1)
	utf8 := strings.Replace(emptyPage, "[]", `["é"]`, 1)
	for name, test := range map[string]struct{ contentType, body, wrong string }{
		"UTF-8 with a mark":    {"application/json", "\ufeff" + emptyPage, ""},
		"UTF-8, misspelled":    {"application/json; charset=UTF8", latin, ""},
		"said to be ISO 8859":  {"application/json;charset=ISO-8859-1", utf8, ""},
		"in fact ISO 8859":     {"text/json; charset=iso-8859-1", latin, `character set "iso-8859-1"`},
		"UTF-16":               {"application/json; charset=utf-16", "\xff\xfe{\x00\"\x00", `set "utf-16"`},
		"UTF-16 without a set": {"application/json", "{\x00\"\x00d\x00", "UTF-16"},
		"one bad row":          {"application/json", latin, ""},
	} {
		c := ask(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", test.contentType)
			fmt.Fprint(w, test.body)
		})
		c.cfg.Attempts = 1
		_, err := c.Endpoint("/store-orders", uncounted, unwaited).Page(t.Context(), "page=0", 0)
		if (err != nil) != (test.wrong != "") || err != nil && !strings.Contains(err.Error(), test.wrong) {
			t.Errorf("%s: %v, want %q", name, err, test.wrong)
		}
	}
}

// hangs is a way to a service that never answers, without a network.
type hangs func()

// RoundTrip implements http.RoundTripper.
func (h hangs) RoundTrip(r *http.Request) (*http.Response, error) {
	h()
	<-r.Context().Done()
	return nil, r.Context().Err()
}

// A service that does not answer is reported after two timeouts. Short ones leave room for more tries.
func TestAServiceThatHangsIsReportedAfterTwoTimeouts(t *testing.T) {
	for timeout, tries := range map[time.Duration]int{
		30 * time.Second: 2, 60 * time.Second: 2, 10 * time.Second: 3,
	} {
		synctest.Test(t, func(t *testing.T) {
			asked := 0
			c, err := New(Config{BaseURL: "http://service", APIKey: rotation.Literal("key"), RequestTimeout: timeout,
				HTTP: &http.Client{Transport: hangs(func() { asked++ })}})
			if err != nil {
				t.Fatal(err)
			}
			began := time.Now()
			_, err = c.Endpoint("/store-orders", uncounted, unwaited).Page(t.Context(), "page=0", 0)
			want := fmt.Sprintf("no complete answer within %s (store.request_timeout)", timeout)
			if err == nil || !strings.Contains(err.Error(), want) || asked != tries {
				t.Errorf("asked %d times: %v, want %q", asked, err, want)
			}
			if took := time.Since(began); took > time.Duration(tries)*timeout+5*time.Second {
				t.Errorf("it took %s", took)
			}
		})
	}
}

// late is a way to a service that answers 504 after so long, without a network.
type late time.Duration

// RoundTrip implements http.RoundTripper.
func (d late) RoundTrip(*http.Request) (*http.Response, error) {
	<-time.After(time.Duration(d))
	return &http.Response{StatusCode: http.StatusGatewayTimeout, Body: http.NoBody}, nil
}

// A gateway gives up after a while, and never after the same. The error tells that it took long, and is the
// same each time, so it is written and logged once.
func TestAnErrorThatTakesLongIsTheSameEachTime(t *testing.T) {
	for took, want := range map[time.Duration]string{
		time.Second: "504 Gateway Timeout", 14 * time.Second: "504 Gateway Timeout",
		16 * time.Second: "504 Gateway Timeout after more than 15s",
		29 * time.Second: "504 Gateway Timeout after more than 15s",
	} {
		synctest.Test(t, func(t *testing.T) {
			c, err := New(Config{BaseURL: "http://service", APIKey: rotation.Literal("key"),
				HTTP: &http.Client{Transport: late(took)}})
			if err != nil {
				t.Fatal(err)
			}
			_, err = c.Endpoint("/store-orders", uncounted, unwaited).Page(t.Context(), "page=0", 0)
			if want := "/store-orders?page=0 answered " + want; err == nil || err.Error() != want {
				t.Errorf("after %s: %v, want %q", took, err, want)
			}
		})
	}
}
