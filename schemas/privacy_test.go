package schemas

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/jackc/pgx/v5/pgtype"
)

// testKey is privacy.key, and fieldKeys are what Python's hmac makes of it for fields.
var (
	testKey   = [32]byte([]byte("a key of thirty-two bytes or mor"))
	fieldKeys = map[string]string{
		"users.email":   "044f1357a94048bc411eb5bbfada3c3adc861e7da46eda5c6d6375194ef28ea2",
		"users.city":    "5592e32e289fdbb4161cfe1e4b4705786177b6562538bbe64892c89ba1bd7081",
		"orders.status": "d3b42b54dfa84d04298b8b1f95bec97959cc3a7c615f8560889c35b77e729f8c",
	}
)

// protected is the built-in schemas under these policies.
func protected(t testing.TB, fields map[string]Policy) *Set {
	t.Helper()
	set := load(t)
	if mistakes := set.Protect(Privacy{Fields: fields, Key: testKey}); mistakes != nil {
		t.Fatal(mistakes)
	}
	return set
}

// hashOf is the hash of a field's text.
func hashOf(t testing.TB, field, text string) string {
	t.Helper()
	key, err := hex.DecodeString(fieldKeys[field])
	if err != nil || len(key) != sha256.Size {
		t.Fatalf("the key of %s: %d bytes, %v", field, len(key), err)
	}
	mac := hmac.New(sha256.New, key)
	_, _ = mac.Write([]byte(text))
	return hex.EncodeToString(mac.Sum(nil))
}

func jsonOf(t testing.TB, r *Resource, value []byte) map[string]any {
	t.Helper()
	reader, err := NewValueReader(r, "")
	if err != nil {
		t.Fatal(err)
	}
	v, err := reader.Read(value)
	if err != nil {
		t.Fatal(err)
	}
	var row map[string]any
	if err := json.Unmarshal(v.AppendJSON(nil, false), &row); err != nil {
		t.Fatal(err)
	}
	return row
}

func TestAPolicySaysWhatOfAFieldIsEncoded(t *testing.T) {
	users := protected(t, map[string]Policy{"users.email": PolicyHash, "users.first_name": PolicyMask,
		"users.last_name": PolicyHash, "users.postal_code": PolicyMask, "users.street_address": PolicyMask,
		"users.age": PolicyDrop, "users.latitude": PolicyDrop, "users.city": PolicyClear}).Get("users")
	long := strings.Repeat("Ä1", 100) // its length takes two bytes, and half as many when it is masked
	row := `{"id":7,"email":"ana@example.org","first_name":"Ana-Lúcia 2nd","last_name":null,` +
		`"postal_code":"` + long + `","street_address":"","age":34,"latitude":-23.5,"city":"Olinda",` +
		`"country":"Brasil",` + times + `}`
	rec, rej := NewRowParser(users).Parse([]byte(row))
	if rej != nil {
		t.Fatal(rej.Field, rej.Err)
	}
	got := jsonOf(t, users, rec.Value)
	for field, want := range map[string]any{"id": 7.0, "email": hashOf(t, "users.email", "ana@example.org"),
		"first_name": "xxx-xxxxx 9xx", "last_name": nil, "postal_code": strings.Repeat("x9", 100),
		"street_address": "", "age": nil, "latitude": nil, "city": "Olinda", "country": "Brasil",
		"updated_at": "2026-11-20T17:02:31.123Z"} {
		if got[field] != want {
			t.Errorf("%s is %v, expected %v", field, got[field], want)
		}
	}
}

func TestPoliciesEncodeARowFromEitherSourceToTheSameBytes(t *testing.T) {
	for _, policy := range []Policy{PolicyClear, PolicyMask, PolicyHash, PolicyDrop} {
		orders := protected(t, map[string]Policy{"orders.status": policy}).Get("orders")
		fromREST, rej := NewRowParser(orders).Parse([]byte(`{"id":1,"status":"Shipped",` +
			`"created_at":"2000-01-01T00:00:00Z","updated_at":"2000-01-01T00:00:00Z"}`))
		d, err := NewColumnDecoder(orders, []column{col("id", pgtype.Int8OID), col("status", pgtype.TextOID),
			col("created_at", pgtype.TimestamptzOID), col("updated_at", pgtype.TimestamptzOID)})
		if err != nil || rej != nil {
			t.Fatal(err, rej)
		}
		epoch := make([]byte, 8)
		fromPostgres, rej := d.Decode([][]byte{{0, 0, 0, 0, 0, 0, 0, 1}, []byte("Shipped"), epoch, epoch})
		if rej != nil || string(fromREST.Value) != string(fromPostgres.Value) {
			t.Errorf("%s: %x from REST, %x from PostgreSQL (%+v)", policy, fromREST.Value, fromPostgres.Value,
				rej)
		}
	}
}

func TestAPolicyThatCannotBeIsNamedWithWhatToDo(t *testing.T) {
	for name, c := range map[string]struct {
		policy Policy
		say    string
	}{
		"users.emial":      {PolicyHash, "no such field: expected one of id, first_name"},
		"user.email":       {PolicyHash, "no such resource: expected resource.field with one of orders, "},
		"email":            {PolicyHash, "no such resource"},
		"users.email":      {"encrypt", `policy "encrypt": expected clear, mask, hash or drop`},
		"users.age":        {PolicyHash, "hash is for text, and this is an integer: expected drop or clear"},
		"users.latitude":   {PolicyMask, "mask is for text, and this is a double: expected drop or clear"},
		"users.id":         {PolicyDrop, "storestream needs it"},
		"users.updated_at": {PolicyMask, "storestream needs it"},
		"users.created_at": {PolicyDrop, "storestream needs it"},
	} {
		set := load(t)
		got := set.Protect(Privacy{Fields: map[string]Policy{name: c.policy, "users.city": PolicyDrop}})
		if len(got) != 1 || !strings.HasPrefix(got[0], name+": ") || !strings.Contains(got[0], c.say) {
			t.Errorf("%s: %q", name, got)
		}
		if set.Get("users").PolicyFingerprint() != "" {
			t.Errorf("%s: other policies are applied", name)
		}
	}
}

func TestTheFingerprintTellsPoliciesAndKeysFromOthers(t *testing.T) {
	of := func(key [32]byte, fields map[string]Policy) string {
		set := load(t)
		set.Protect(Privacy{Fields: fields, Key: key})
		return set.Get("users").PolicyFingerprint()
	}
	one := of(testKey, map[string]Policy{"users.email": PolicyHash, "users.city": PolicyDrop})
	if one == "" || one != of(testKey, map[string]Policy{"users.city": PolicyDrop, "users.email": PolicyHash,
		"users.age": PolicyClear, "orders.status": PolicyDrop}) {
		t.Error("the same policies have two fingerprints, or none")
	}
	another := testKey
	another[31]++
	seen := map[string]bool{one: true}
	for _, other := range []string{
		of(another, map[string]Policy{"users.email": PolicyHash, "users.city": PolicyDrop}),
		of(testKey, map[string]Policy{"users.email": PolicyHash}), of(testKey, nil),
		of(testKey, map[string]Policy{"users.email": PolicyMask, "users.city": PolicyDrop})} {
		if seen[other] {
			t.Errorf("%q is the fingerprint of two policies", other)
		}
		seen[other] = true
	}
	dropped := map[string]Policy{"users.city": PolicyDrop}
	if of(testKey, dropped) != of(another, dropped) {
		t.Error("the key changes the fingerprint although no field is hashed")
	}
}

// Parsers of one resource run at once, so each needs hashes of its own.
func TestAHashIsTheHMACByTheFieldsKeyInEveryParser(t *testing.T) {
	users := protected(t, map[string]Policy{"users.email": PolicyHash, "users.city": PolicyHash}).Get("users")
	for text, want := range map[string][2]string{
		"Hi There": {"cc49becd73e64351157ca1a006fa5b7b2d96cdace70cf08df14c2c68aac21445",
			"93c188dc6c244c64a81a225af00436fb1a4a031f8847c64173009922a61a5a52"},
		"": {"44f6685f831b97fa081e37bc136c1c9c0fcb6c0170d431fa522f3d4dbb61a8b4",
			"8b50930c66ab6a7b609b9881a0ebd7fcce85adfd9ec4c695d571263bfefa29ed"},
		"Übergrößenträger": {"b5beba5a5d7d89af19a2c230a634619c7b62ebc6916ed5949d8176c1c9f3043f",
			"f740ea47d13ced984d245f040db52424ba5089657fff1f23256c14feed842d8f"},
		strings.Repeat("This is a test using a larger than block-size data. ", 3): {
			"467e83f8a48db70636f5757650e2526d0e681b9f842940e1093f21999bd49d98",
			"2086ae410516e5cfc4e50326b3b0010b90719540bcd6d47e5d5c8720f1fc3124"},
	} {
		row := []byte(`{"id":7,"email":"` + text + `","city":"` + text + `",` + times + `}`)
		var parsers sync.WaitGroup
		for range 4 {
			parsers.Go(func() {
				for p, i := NewRowParser(users), 0; i < 100; i++ {
					rec, rej := p.Parse(row)
					if rej != nil {
						t.Error(rej.Field, rej.Err)
						return
					}
					if got := jsonOf(t, users, rec.Value); got["email"] != want[0] || got["city"] != want[1] {
						t.Errorf("%q: got %s and %s, want %s", text, got["email"], got["city"], want)
					}
				}
			})
		}
		parsers.Wait()
	}
}

// An id is the key's alone: the same in all resources that hash a field, whichever it is, and none without.
func TestTheKeysIDIsThatOfTheKeyInEveryResourceWithAHash(t *testing.T) {
	set := protected(t, map[string]Policy{"users.email": PolicyHash, "users.city": PolicyDrop,
		"orders.status": PolicyHash, "products.name": PolicyMask})
	const id = "66bca349748c66d4"
	for name, want := range map[string]string{"users": id, "orders": id, "products": "", "shipments": ""} {
		if got := set.Get(name).KeyID(); got != want {
			t.Errorf("%s: %q, expected %q", name, got, want)
		}
	}
	set.Protect(Privacy{Fields: map[string]Policy{"users.email": PolicyMask}, Key: testKey})
	if got := set.Get("users").KeyID(); got != "" {
		t.Errorf("no field is hashed any more, and the id is %q", got)
	}
}

// Releases that hashed all fields by the key itself, the text of privacy.key, left this fingerprint.
func TestHashesOfAnEarlierReleaseAreRowsOfAnotherPolicy(t *testing.T) {
	mac := hmac.New(sha256.New, testKey[:])
	_, _ = mac.Write([]byte("storestream: which key is it"))
	before := sha256.Sum256(fmt.Appendf(nil, "email=hash\nkey=%x\n", mac.Sum(nil)))
	users := protected(t, map[string]Policy{"users.email": PolicyHash}).Get("users")
	if now := users.PolicyFingerprint(); now == hex.EncodeToString(before[:8]) {
		t.Errorf("%s is the fingerprint of an earlier release, too", now)
	}
}

// A row that cannot be published goes to the dead letters. More people may read them than the topic.
func TestARejectShowsNoMoreThanTheTopicWould(t *testing.T) {
	fields := map[string]Policy{"users.email": PolicyHash, "users.city": PolicyDrop, "users.state": PolicyMask,
		"users.country": PolicyHash}
	const row = `{"id":7,"first_name":"Ana","email":"ana@example.org","age":34.5,"city":"Olinda",` +
		`"state":"PE 1","country":12,"postal_code":null,"gender":{"a":"F"},"tax_number":"123",` +
		`"traffic_source":{"contact_email":"ana@example.org"},` + times + `}`
	set := protected(t, fields)
	_, rej := NewRowParser(set.Get("users")).Parse([]byte(row))
	want := `{"id":7,"first_name":"xxx","email":"` + hashOf(t, "users.email", "ana@example.org") +
		`","age":"99.9","city":null,"state":"xx 9","country":"99","postal_code":null,` +
		`"gender":"(9 bytes, left out)",` +
		`"traffic_source":"(35 bytes, left out)",` +
		times + `}`
	if rej == nil || string(rej.Row) != want {
		t.Errorf("got  %s\nwant %s", rej.Row, want)
	}

	set.Protect(Privacy{FullRejects: true})
	_, rej = NewRowParser(set.Get("users")).Parse([]byte(row))
	want = strings.NewReplacer(`"tax_number":"123",`, "", `{"a":"F"}`, `"(9 bytes, left out)"`,
		`{"contact_email":"ana@example.org"}`, `"(35 bytes, left out)"`).Replace(row)
	if string(rej.Row) != want {
		t.Errorf("in full: got  %s\nwant %s", rej.Row, want)
	}

	fields = map[string]Policy{"orders.status": PolicyHash, "orders.user_id": PolicyDrop}
	d, err := NewColumnDecoder(protected(t, fields).Get("orders"), []column{col("id", pgtype.Int8OID),
		col("status", pgtype.TextOID), col("user_id", pgtype.Int8OID), col("created_at", pgtype.TimestamptzOID),
		col("updated_at", pgtype.TimestamptzOID)})
	if err != nil {
		t.Fatal(err)
	}
	eight := make([]byte, 8)
	_, rej = d.Decode([][]byte{eight, []byte("Shipped"), eight, nil, eight})
	want = `{"id":"0","status":"` + hashOf(t, "orders.status", "Shipped") + `","user_id":null,` +
		`"created_at":null,"updated_at":"2000-01-01T00:00:00.000000Z"}`
	if rej == nil || string(rej.Row) != want {
		t.Errorf("got  %s\nwant %s", rej.Row, want)
	}
}

// A service, or a view, whose columns have moved shows each value in the place of another field, which has no
// mark and no policy.
func TestWhereverAShiftedColumnPutsAPersonalValueARejectDoesNotShowIt(t *testing.T) {
	personal := map[string]string{"first_name": `"Eulalia"`, "last_name": `"Planted"`,
		"email": `"jane.doe@example.org"`, "street_address": `"12 Rose Street"`, "postal_code": `"SW1A 2AA"`,
		"city": `"Olinda"`, "gender": `"Quince"`, "latitude": `-23.5505`,
		"longitude": `"-46.6333"`}
	for name, policies := range map[string]map[string]Policy{"no policy": nil,
		"policies": {"users.email": PolicyHash, "users.city": PolicyDrop, "users.last_name": PolicyMask}} {
		users := protected(t, policies).Get("users")
		columns := users.Columns()
		for shift := range columns {
			row := map[string]json.RawMessage{}
			for i, column := range columns {
				to := columns[(i+shift)%len(columns)]
				row[to] = json.RawMessage(`"2026-11-20T17:02:31Z"`)
				if value, is := personal[column]; is {
					row[to] = json.RawMessage(value)
				}
			}
			raw, _ := json.Marshal(row)
			_, rej := NewRowParser(users).Parse(raw)
			if rej == nil {
				t.Fatalf("%s, by %d: %s is taken", name, shift, raw)
			}
			for field, value := range personal {
				if strings.Contains(string(rej.Row)+rej.Err, strings.Trim(value, `"`)) || rej.HasID {
					t.Errorf("%s, by %d: %s is shown, or an id is read: %s: %s", name, shift, field, rej.Err,
						rej.Row)
				}
			}
		}
	}

	// Policies hold where personal fields are wanted whole.
	const row = `{"id":"jane@example.org","first_name":"Ana","created_at":"jane@example.org",` +
		`"updated_at":{"is":"jane@example.org"}}`
	const want = `{"id":"xxxx@xxxxxxx.xxx","first_name":"Ana","created_at":"xxxx@xxxxxxx.xxx",` +
		`"updated_at":"(25 bytes, left out)"}`
	set := load(t)
	set.Protect(Privacy{Fields: map[string]Policy{"users.email": PolicyHash}, Key: testKey,
		FullRejects: true})
	if _, rej := NewRowParser(set.Get("users")).Parse([]byte(row)); string(rej.Row) != want {
		t.Errorf("in full: %s", rej.Row)
	}
	set.Protect(Privacy{FullRejects: true})
	whole := strings.Replace(row, `{"is":"jane@example.org"}`, `"(25 bytes, left out)"`, 1)
	if _, rej := NewRowParser(set.Get("users")).Parse([]byte(row)); string(rej.Row) != whole {
		t.Errorf("in full and without policies: %s", rej.Row)
	}

	// A column of text takes anything. orders have no personal field of their own.
	d, err := NewColumnDecoder(load(t).Get("orders"), []column{col("id", pgtype.Int8OID),
		col("user_id", pgtype.TextOID), col("status", pgtype.TextOID), col("created_at", pgtype.TextOID),
		col("updated_at", pgtype.TimestamptzOID)})
	if err != nil {
		t.Fatal(err)
	}
	eight := make([]byte, 8)
	_, rej := d.Decode([][]byte{eight, []byte("Eulalia"), []byte("Shipped"), []byte("jane@example.org"), eight})
	if got := `{"id":"0","user_id":"xxxxxxx","status":"Shipped","created_at":"xxxx@xxxxxxx.xxx",` +
		`"updated_at":"2000-01-01T00:00:00.000000Z"}`; rej == nil || string(rej.Row) != got {
		t.Errorf("%s", rej.Row)
	}
}

func TestOfARowThatIsNotWellFormedTheFieldsBeforeTheFaultAreShown(t *testing.T) {
	const row = `{"id":7,"email":"ana@example.org","age":1 "city":"Olinda"`
	set := load(t)
	_, rej := NewRowParser(set.Get("users")).Parse([]byte(row))
	if want := `{"id":7,"email":"xxx@xxxxxxx.xxx","age":"9"}`; string(rej.Row) != want {
		t.Errorf("%s", rej.Row)
	}
	set.Protect(Privacy{FullRejects: true})
	_, rej = NewRowParser(set.Get("users")).Parse([]byte(row))
	if want := `{"id":7,"email":"ana@example.org","age":1}`; string(rej.Row) != want {
		t.Errorf("in full: %s", rej.Row)
	}
}

func TestPoliciesAllocateNothing(t *testing.T) {
	set := protected(t, map[string]Policy{"users.email": PolicyHash, "users.first_name": PolicyMask,
		"users.last_name": PolicyHash, "users.street_address": PolicyHash, "users.age": PolicyDrop})
	most := .1
	if info, _ := debug.ReadBuildInfo(); slices.Contains(info.Settings,
		debug.BuildSetting{Key: "-race", Value: "true"}) {
		// There the compiler makes a slice for append(b, make([]byte, n)...), with which crypto/sha256 writes its
		// state: twice for a hash. make test-long looks without the race detector.
		most = 6
	}
	p, raw := NewRowParser(set.Get("users")), []byte(benchUser)
	if n := testing.AllocsPerRun(1000, func() { _, _ = p.Parse(raw) }); n > most {
		t.Errorf("a row takes %v allocations", n)
	}
}

// A mask keeps the number of characters, and no letter or digit.
func FuzzMask(f *testing.F) {
	f.Add([]byte("Ana-Lúcia 2nd"))
	f.Add([]byte("\xff\xfe e\u0301 \U0001F600"))
	f.Fuzz(func(t *testing.T, text []byte) {
		got := string(appendMasked(nil, text))
		if len(got) != utf8.RuneCount(text) {
			t.Fatalf("%q became %q", text, got)
		}
		kept := func(c rune) bool {
			return c == 'x' || c == '9' || c < utf8.RuneSelf && !unicode.IsLetter(c) && !unicode.IsDigit(c)
		}
		if strings.ContainsFunc(got, func(c rune) bool { return !kept(c) }) {
			t.Fatalf("%q became %q", text, got)
		}
	})
}
