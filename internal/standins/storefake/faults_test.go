package storefake_test

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/storestream/storestream/internal/standins/storefake"
)

// always makes every data request meet one fault.
func always(t *testing.T, f *storefake.Fake, fault storefake.Fault) {
	t.Helper()
	err := f.SetFaults(func(s *storefake.Faults) {
		*s = storefake.Faults{Shares: map[storefake.Fault]float64{fault: 1}, SlowFor: 20 * time.Millisecond}
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestEachFaultLooksAsItShould(t *testing.T) {
	f := start(t, storefake.Config{Size: small})
	for fault, right := range map[storefake.Fault]func(answer) bool{
		storefake.ServerError: func(a answer) bool { return a.status == 500 && a.Error == "internal_error" },
		storefake.ServerErrorHTML: func(a answer) bool {
			return a.status == 500 &&
				strings.HasPrefix(string(a.body), "<html>")
		},
		storefake.TooMany: func(a answer) bool {
			return a.status == 429 &&
				a.header.Get("Retry-After") == "1"
		},
		storefake.Unauthorized: func(a answer) bool { return a.status == 401 },
		storefake.Revoke:       func(a answer) bool { return a.status == 401 },
		storefake.Truncated: func(a answer) bool {
			return a.status == 200 &&
				errors.Is(a.err, io.ErrUnexpectedEOF)
		},
		storefake.Cut: func(a answer) bool {
			var e *json.SyntaxError
			return a.status == 200 &&
				errors.As(a.err, &e)
		},
		storefake.Endless: func(a answer) bool { return a.status == 200 && len(a.body) == 4<<20 },
		storefake.Slow:    func(a answer) bool { return a.err == nil && len(a.Data) == small.Users },
		storefake.Reset:   func(a answer) bool { return errors.Is(a.err, syscall.ECONNRESET) },
		storefake.Redirect: func(a answer) bool {
			return a.status == 302 &&
				a.header.Get("Location") == "/elsewhere"
		},
		storefake.MoreForever: func(a answer) bool { return len(a.Data) == small.Users && a.Meta.HasMore },
		storefake.WrongDate: func(a answer) bool {
			date, err := http.ParseTime(a.header.Get("Date"))
			return err == nil && len(a.Data) == small.Users &&
				date.Sub(f.Clock().Now()).Round(time.Minute) == time.Hour
		},
	} {
		always(t, f, fault)
		key := f.Key()
		if a := get(t, f, "/store-users?"+everything); !right(a) {
			t.Errorf("%s: %d %v, %d bytes", fault, a.status, a.err, len(a.body))
		}
		if revoked := f.Key() != key; revoked != (fault == storefake.Revoke) {
			t.Errorf("%s: the key was revoked: %v", fault, revoked)
		}
		if a := ask(t, f, http.MethodGet, "/store-api-keys", ""); a.status != 200 {
			t.Errorf("%s: the key endpoint answered %d", fault, a.status)
		}
	}
}

func TestAHangingRequestEndsWithItsClient(t *testing.T) {
	f := start(t, storefake.Config{Size: small})
	always(t, f, storefake.Hang)
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, f.BaseURL()+"/store-users?"+everything,
		nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+f.Key())
	if response, err := (&http.Client{Timeout: 50 * time.Millisecond}).Do(r); err == nil {
		response.Body.Close()
		t.Errorf("answered %d", response.StatusCode)
	}
}

func TestFaultsAreDrawnFromTheSeedAndChosenByTests(t *testing.T) {
	draw := func(seed uint64) (statuses []int) {
		f := start(t, storefake.Config{Seed: seed, Size: small,
			Faults: storefake.Faults{Shares: map[storefake.Fault]float64{storefake.ServerError: .3,
				storefake.TooMany: .3}}})
		for range 40 {
			statuses = append(statuses, get(t, f, "/store-products?"+everything).status)
		}
		return statuses
	}
	if a, b := draw(1), draw(1); !equal(a, b) {
		t.Errorf("one seed, two plans: %v and %v", a, b)
	}
	if a, b := draw(1), draw(2); equal(a, b) {
		t.Errorf("two seeds, one plan: %v", a)
	}
	f := start(t, storefake.Config{Size: small})
	err := f.SetFaults(func(s *storefake.Faults) {
		s.Choose = func(r *http.Request) storefake.Fault {
			if r.URL.Query().Get("page") == "3" {
				return storefake.ServerError
			}
			return storefake.NoFault
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	for page, want := range []int{200, 200, 200, 500, 200} {
		if got := get(t, f, "/store-products?"+everything+"&page_size=9&page="+itoa(page)).status; got != want {
			t.Errorf("page %d: %d, expected %d", page, got, want)
		}
	}
}

func equal(a, b []int) bool {
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}

func TestGarbledRowsBreakTheContractInTheirWay(t *testing.T) {
	f := start(t, storefake.Config{Size: small})
	for id, g := range map[int64]storefake.Garbling{1: storefake.NoID, 2: storefake.TextID,
		3: storefake.BadTimestamp, 4: storefake.NoTimestamp,
		5: storefake.HugeMoney, 6: storefake.WordMoney, 7: storefake.NotAnObject} {
		f.Garble(storefake.Orders, id, g)
	}
	var listing struct{ Data []json.RawMessage }
	if err := json.Unmarshal(get(t, f, "/store-orders?"+everything+"&page_size=8").body, &listing); err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{
		`{"user_id":`, `{"id":"abc",`, `"updated_at":"yesterday"}`, `"updated_at":null}`,
		`"total_amount":` + strings.Repeat("9", 60), `"total_amount":"a lot"`, `"garbled"`, `{"id":8,`} {
		if !strings.Contains(string(listing.Data[i]), want) {
			t.Errorf("row %d: %s, expected %s in it", i+1, listing.Data[i], want)
		}
	}
	if err := f.SetFaults(func(s *storefake.Faults) { s.GarbledRows = .5 }); err != nil {
		t.Fatal(err)
	}
	body := string(get(t, f, "/store-users?"+everything).body)
	if !strings.Contains(body, "yesterday") || !strings.Contains(body, `"abc"`) {
		t.Error("half of the rows should be garbled, none is")
	}
}
