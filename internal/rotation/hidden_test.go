package rotation_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/storestream/storestream/internal/rotation"
)

func TestASecretIsHiddenInEveryFormInWhichItTravels(t *testing.T) {
	const secret = `pass<wörd>/"\1?`
	h := rotation.NewHidden("kafka.sasl.username\nstorestream", "ru", "")
	h.Add("registry.password", secret)
	inJSON, _ := json.Marshal(secret)
	twice, _ := json.Marshal(string(inJSON))
	for _, text := range []string{secret, string(inJSON), string(twice), fmt.Sprintf("%q", secret),
		"pass%3Cw%C3%B6rd%3E%2F%22%5C1%3F", "cGFzczx3w7ZyZD4vIlwxPw==", "cnU6cGFzczx3w7ZyZD4vIlwxPw==",
		"cnU6cGFzczx3w7ZyZD4vIlwxPw"} {
		got := h.Hide("said <" + text + "> and more")
		if rest := strings.Trim(got[len("said <"):len(got)-len("> and more")], `"\=`); rest != rotation.Mask {
			t.Errorf("%s becomes %s", text, got)
		}
	}
}

func TestWhatIsNoSecretIsShownAsItIs(t *testing.T) {
	h := rotation.NewHidden("postgres://student_ro@host\nstorestream")
	h.Add("postgres.dsn", "storestream") // stands in every message
	h.Add("kafka.sasl.password", "short")
	h.Add("registry.token", "")
	const text = "storestream: student_ro, short"
	if got := h.Hide(text); got != text {
		t.Errorf("%s becomes %s", text, got)
	}
	if got := (&rotation.Set{}).Hide(text); got != text {
		t.Errorf("%s becomes %s", text, got)
	}
}

func TestASecretThatWasReplacedStaysHidden(t *testing.T) {
	path := filepath.Join(t.TempDir(), "key")
	set := &rotation.Set{Hidden: rotation.NewHidden("")}
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("first-secret")
	secret, err := rotation.Follow(set, "store.api_key", path, nil)
	if err != nil {
		t.Fatal(err)
	}
	write("second-secret\n")
	_ = secret.Get()
	if got := set.Hide("first-secret second-secret"); got != "****** ******" {
		t.Error(got)
	}
	for i := range 100 { // of hundreds the latest are known, and other settings' stay
		set.Hidden.Add("registry.token", fmt.Sprintf("token-%04d", i))
	}
	if got := set.Hide("second-secret token-0099 token-0001"); got != "****** ****** token-0001" {
		t.Error(got)
	}
}

func TestANumberOfJSONThatReadsLikeASecretStays(t *testing.T) {
	h := rotation.NewHidden("")
	h.Add("registry.password", "47114711")
	h.Add("store.api_key", `a "key" \ of it`)
	const text = `{"id":47114711,"of":[47114711],"47114711":"47114711, \"47114711\", a \"key\" \\ of it"}`
	const want = `{"id":47114711,"of":[47114711],"******":"******, \"******\", ******"}`
	if got := h.HideJSON(text); got != want {
		t.Errorf("%s\nexpected %s", got, want)
	}
}
