package e2e

import (
	"cmp"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/storestream/storestream/internal/standins/storefake"
)

// Two privacy.keys, as openssl rand -hex 32 prints them.
const (
	oneKey     = "f3a9c1d27e5b48608d14b7e20c6f93a5185bd0472fe69c3be8417a05d62c9f30"
	anotherKey = "0b61e8f4973ad25c1fb8607ea3549dc2d07f18b6e52a43990cc87b1d34fe6a85"
)

// hashUnder is a field's hash under a key, as the documents say that it is made.
func hashUnder(t *testing.T, key, field string, value any) string {
	t.Helper()
	sum, err := hex.DecodeString(key)
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{field, fmt.Sprint(value)} {
		mac := hmac.New(sha256.New, sum)
		_, _ = mac.Write([]byte(text))
		sum = mac.Sum(nil)
	}
	return hex.EncodeToString(sum)
}

// The steps are those of docs/security.md, "Custody of privacy.key".
func TestAKeyIsRotatedAndEachRecordSaysWhichOneMadeItsHashes(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "privacy-key")
	replace := func(key string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(key+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	replace(oneKey)
	s := start(t, setup{noPostgres: true, fake: smallShop(20), yaml: quick + "privacy: {key: 'file:" + file +
		"', fields: {users.email: hash, users.first_name: hash}}\n"})
	first := s.spawn("run")
	first.isReady()
	s.fake.StartTraffic(0)
	s.fake.Quiesce()
	s.verify(0, storefake.Users)
	// all checks the newest record of each user, and returns the id of the key by which it is hashed.
	newest := map[int64]record{}
	all := func(key string) (id string) {
		t.Helper()
		for _, r := range s.topic(storefake.Users) {
			newest[r.id] = r
		}
		for user, row := range s.fake.Rows(storefake.Users) {
			r := newest[user]
			id = cmp.Or(id, r.keyID)
			for _, field := range []string{"email", "first_name"} {
				want := hashUnder(t, key, "users."+field, row[field])
				if r.keyID == "" || r.keyID != id || row[field] != nil && r.value[field] != want {
					t.Errorf("user %d has %v under the key %q, expected %q under %q", user, r.value[field], r.keyID,
						want, id)
				}
			}
		}
		for _, r := range s.topic(storefake.Products) {
			if r.keyID != "" {
				t.Errorf("product %d has no hash, and names the key %q", r.id, r.keyID)
			}
		}
		return id
	}
	before := all(oneKey)

	replace(anotherKey) // what runs goes on with the key that it has
	user := slices.Min(slices.Collect(maps.Keys(newest)))
	if err := s.fake.Update(t.Context(), storefake.Users, user, func(r storefake.Row) {
		r["city"] = "Nowhere"
	}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the change of a user is published", func() (bool, string) {
		all(oneKey)
		return newest[user].value["city"] == "Nowhere", fmt.Sprint(newest[user].value)
	})
	if id := all(oneKey); id != before {
		t.Errorf("the key's id was %q and is %q without a restart", before, id)
	}
	said, _, code := s.do("check")
	after := regexp.MustCompile(`privacy\.key with the id ([0-9a-f]{16})`).FindStringSubmatch(said)
	if code != 0 || after == nil || after[1] == before ||
		!strings.Contains(said, "published under other policies") {
		t.Fatalf("check names another key than %q, and says that its rows are there (%d):\n%s", before, code, said)
	}
	first.stop()
	second := s.spawn("run")
	second.isReady()
	second.owns(storefake.Users)
	s.eventuallySays("users: holds rows as other policies for fields let them through", "watermark", "list")
	if _, errs, code := s.do("sweep", storefake.Users, "--wait", "--yes"); code != 0 {
		t.Fatalf("the sweep: %s", errs)
	}
	if id := all(anotherKey); id != after[1] {
		t.Errorf("the records have the id %q, and check says %q", id, after[1])
	}
	if said, errs, code := s.do("verify", storefake.Users); code != 0 {
		t.Errorf("verify with the new key: %s %s", said, errs)
	}
}

// A policy that comes after the rows: the topic says that it holds them in clear, until a sweep has published
// all of them again.
func TestAPolicyForFieldsHoldsForEveryRowOnceASweepHasGoneThrough(t *testing.T) {
	t.Parallel()
	s := start(t, setup{noPostgres: true, fake: smallShop(20), yaml: quick + "privacy: {key: " + oneKey + "}\n"})
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
		value := newest[id].value
		if row["email"] != nil && value["email"] != hashUnder(t, oneKey, "users.email", row["email"]) ||
			value["street_address"] != nil || row["last_name"] != nil && value["last_name"] == row["last_name"] {
			t.Errorf("user %d is %v", id, value)
		}
	}
}
