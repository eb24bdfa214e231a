package e2e

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/storestream/storestream/internal/standins/storefake"
)

// A policy that comes after the rows: the topic says that it holds them in clear, until a sweep has published
// all of them again.
func TestAPolicyForFieldsHoldsForEveryRowOnceASweepHasGoneThrough(t *testing.T) {
	t.Parallel()
	const key = "a key of thirty-two bytes or more"
	s := start(t, setup{noPostgres: true, fake: smallShop(20), yaml: quick + "privacy: {key: " + key + "}\n"})
	first := s.spawn("run")
	first.isReady()
	s.quiet()
	s.verify(0, storefake.Users)
	first.stop()
	if said, _, _ := s.do("watermark", "list"); strings.Contains(said, "other policies") {
		t.Errorf("nothing has changed:\n%s", said)
	}

	fields := "users.email=hash,users.last_name=mask,users.street_address=drop"
	policies := []string{"--set", "privacy.fields=" + fields}
	with := func(args ...string) []string { return append(args, policies...) }
	if said, _, _ := s.do(with("check")...); !strings.Contains(said, "published under other policies") {
		t.Errorf("check does not say that the rows are in clear:\n%s", said)
	}
	ids := slices.Sorted(maps.Keys(s.fake.Rows(storefake.Users)))
	row := with("row", storefake.Users, strconv.FormatInt(ids[0], 10))
	if said, _, code := s.do(row...); code != 3 || !strings.Contains(said, "published under other policies") {
		t.Errorf("row under other policies than the instances have (%d):\n%s", code, said)
	}
	second := s.spawn(with("run")...)
	second.isReady()
	second.owns(storefake.Users)
	eventually(t, "the page says that rows of other policies may remain", func() (bool, string) {
		policies := second.resource(storefake.Users).Privacy
		return len(policies) > 1, fmt.Sprint(policies)
	})
	s.eventuallySays("users: holds rows as other policies for fields let them through", "watermark", "list")
	if _, errs, code := s.do("sweep", storefake.Users, "--wait", "--yes"); code != 0 {
		t.Fatalf("the sweep: %s", errs)
	}
	if said, _, _ := s.do("watermark", "list"); strings.Contains(said, "other policies") {
		t.Errorf("after the sweep:\n%s", said)
	}
	if policies := second.resource(storefake.Users).Privacy; len(policies) > 1 {
		t.Errorf("after the sweep: %q", policies)
	}
	if said, errs, code := s.do(with("verify", storefake.Users)...); code != 0 {
		t.Errorf("verify under the policies: %s %s", said, errs)
	}
	if said, errs, code := s.do(row...); code != 0 {
		t.Errorf("row under the policies: %s %s", said, errs)
	}
	newest := map[int64]record{}
	for _, r := range s.topic(storefake.Users) {
		newest[r.id] = r
	}
	for id, row := range s.fake.Rows(storefake.Users) {
		value, mac := newest[id].value, hmac.New(sha256.New, []byte(key))
		_, _ = fmt.Fprint(mac, row["email"])
		if want := hex.EncodeToString(mac.Sum(nil)); row["email"] != nil && value["email"] != want ||
			value["street_address"] != nil || row["last_name"] != nil && value["last_name"] == row["last_name"] {
			t.Errorf("user %d is %v", id, value)
		}
	}
}
