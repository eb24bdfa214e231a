package storefake_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/storestream/storestream/internal/standins/storefake"
)

// fresh asks with a Cache-Control header.
func fresh(t *testing.T, f *storefake.Fake, path, control string) int {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, f.BaseURL()+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+f.Key())
	r.Header.Set("Cache-Control", control)
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	return len(response.Header["Age"])
}

func TestAnAnswerFromTheCacheIsOldAndShowsItAsItMay(t *testing.T) {
	path := "/store-products?" + everything
	for name, c := range map[string]struct {
		rules     storefake.Cache
		age, date string // of an answer that is 40 s old
	}{
		"with Age":             {storefake.Cache{}, "40", "Fri, 20 Nov 2026 09:30:00 GMT"},
		"without Age":          {storefake.Cache{NoAge: true}, "", "Fri, 20 Nov 2026 09:30:00 GMT"},
		"with a Date of now":   {storefake.Cache{NewDate: true}, "40", "Fri, 20 Nov 2026 09:30:40 GMT"},
		"without any trace":    {storefake.Cache{NoAge: true, NewDate: true}, "", "Fri, 20 Nov 2026 09:30:40 GMT"},
		"deaf to what clients": {storefake.Cache{Deaf: true}, "40", "Fri, 20 Nov 2026 09:30:00 GMT"},
	} {
		t.Run(name, func(t *testing.T) {
			config := still
			config.Readings.Cache = c.rules
			config.Readings.Cache.For = time.Minute
			f := start(t, config)
			first := get(t, f, path)
			f.Clock().Advance(40 * time.Second)
			price(t, f, "1")
			a := get(t, f, path)
			if string(a.body) != string(first.body) || a.header.Get("Age") != c.age ||
				a.header.Get("Date") != c.date {
				t.Errorf("Age %q, Date %q, the first answer once more: %v", a.header.Get("Age"), a.header.Get("Date"),
					string(a.body) == string(first.body))
			}
			if got := f.Requests(); !got[1].Cached || got[0].Cached {
				t.Errorf("journal: %+v", got)
			}
			if a := get(t, f, path+"&page_size=500"); string(a.body) == string(first.body) {
				t.Error("another URL got the same answer")
			}
			f.Clock().Advance(21 * time.Second)
			if a := get(t, f, path); string(a.body) == string(first.body) || a.header.Get("Age") != "" {
				t.Error("an answer is given longer than the cache may keep it")
			}
			f.Clock().Advance(time.Second)
			if fresh := fresh(t, f, path, "no-cache") == 0; fresh == c.rules.Deaf {
				t.Errorf("asked for a fresh answer and got one: %v", fresh)
			}
		})
	}
}

func TestTheCacheKeepsNothingThatWentWrongAndAsksForTheKey(t *testing.T) {
	config := still
	config.Readings.Cache.For = time.Minute
	f := start(t, config)
	path := "/store-products?" + everything
	always(t, f, storefake.MoreForever)
	get(t, f, path)
	always(t, f, storefake.ServerError)
	get(t, f, path)
	if err := f.SetFaults(func(s *storefake.Faults) { s.Shares = nil }); err != nil {
		t.Fatal(err)
	}
	if a := get(t, f, path); a.status != 200 || a.Meta.HasMore || a.header.Get("Age") != "" {
		t.Errorf("%d, has_more %v, Age %q: expected a good answer from the service itself", a.status,
			a.Meta.HasMore, a.header.Get("Age"))
	}
	if a := ask(t, f, http.MethodGet, path, "Bearer wrong"); a.status != 401 {
		t.Errorf("with a wrong key the cache answered %d", a.status)
	}
}
