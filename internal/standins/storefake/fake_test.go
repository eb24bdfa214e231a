package storefake_test

import (
	"encoding/json"
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/storestream/storestream/internal/standins/storefake"
)

var small = storefake.Size{Users: 200, Orders: 500, Products: 60, Days: 90}

// start runs a fake for the length of a test.
func start(t *testing.T, c storefake.Config) *storefake.Fake {
	t.Helper()
	f, err := storefake.Start(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(f.Close)
	return f
}

// answer is a response that was read to its end, or to err.
type answer struct {
	status int
	header http.Header
	body   []byte
	err    error

	Data []map[string]any `json:"data"`
	Meta struct {
		Page     int  `json:"page"`
		PageSize int  `json:"page_size"`
		Count    int  `json:"count"`
		HasMore  bool `json:"has_more"`
	} `json:"meta"`
	Error   string `json:"error"`
	Message string `json:"message"`
	APIKey  string `json:"api_key"`
}

// ids of the rows.
func (a answer) ids() []int64 {
	var ids []int64
	for _, row := range a.Data {
		ids = append(ids, int64(row["id"].(float64)))
	}
	return ids
}

// get asks with the good key.
func get(t *testing.T, f *storefake.Fake, path string) answer {
	t.Helper()
	return ask(t, f, http.MethodGet, path, "Bearer "+f.Key())
}

func ask(t *testing.T, f *storefake.Fake, method, path, authorization string) answer {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, f.BaseURL()+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	if authorization != "" {
		r.Header.Set("Authorization", authorization)
	}
	client := http.Client{CheckRedirect: func(*http.Request,
		[]*http.Request) error {
		return http.ErrUseLastResponse
	},
		// no connection of an earlier request that could be closed
		Transport: &http.Transport{DisableKeepAlives: true}}
	response, err := client.Do(r)
	if err != nil {
		return answer{err: err}
	}
	defer response.Body.Close()
	a := answer{status: response.StatusCode, header: response.Header}
	a.body, a.err = io.ReadAll(io.LimitReader(response.Body, 4<<20))
	if a.err == nil && response.Header.Get("Content-Type") == "application/json" {
		a.err = json.Unmarshal(a.body, &a)
	}
	return a
}

// waitForChanges waits until n more rows have changed.
func waitForChanges(t *testing.T, f *storefake.Fake, n int64) {
	t.Helper()
	deadline, tick := time.After(30*time.Second), time.NewTicker(5*time.Millisecond)
	defer tick.Stop()
	for enough := f.Changes() + n; f.Changes() < enough; {
		select {
		case <-tick.C:
		case <-deadline:
			_, err := f.TrafficErrors()
			t.Fatalf("no %d changes within 30 s; traffic's last error: %v", n, err)
		}
	}
}
